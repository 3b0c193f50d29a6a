// Resampling of images, compiled once per instruction set.
#include "image.h"

#include "runtime.h"
#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kGrain = 1 << 14;  // products that are worth a thread

// -- along lines

// f(Constant<taps>) where that many taps are unrolled, f(Constant<0>) for any number.
template <class F>
void with_taps(int64_t taps, F f) {
  switch (taps) {
    case 1: return f(Constant<1>{});
    case 2: return f(Constant<2>{});
    case 4: return f(Constant<4>{});
    default: return f(Constant<0>{});
  }
}

// Rows that lie apart: the places of a tap are next to each other in `places`, as are its weights.
template <class T, int Taps>
void resample_row(int64_t taps, int64_t out, const int32_t* places, const T* weights, const T* x, T* y) {
  const int64_t count = Taps != 0 ? Taps : taps;
  for (int64_t j = 0; j < out; ++j) {
    T sum = weights[j] * x[places[j]];
    for (int64_t k = 1; k < count; ++k) sum += weights[k * out + j] * x[places[k * out + j]];
    y[j] = sum;
  }
}

// Lines that lie side by side, `inner` of them.
template <class T, int Taps>
void resample_lines(int64_t taps, int64_t inner, const int64_t* places, const T* weights, const T* x, T* y) {
  if constexpr (Taps != 0) {
    const T* from[Taps];
    T by[Taps];
    for (int k = 0; k < Taps; ++k) from[k] = x + places[k] * inner, by[k] = weights[k];
    for (int64_t i = 0; i < inner; ++i) {
      T sum = by[0] * from[0][i];
      for (int k = 1; k < Taps; ++k) sum += by[k] * from[k][i];
      y[i] = sum;
    }
  } else {
    const T* first = x + places[0] * inner;
    for (int64_t i = 0; i < inner; ++i) y[i] = weights[0] * first[i];
    for (int64_t k = 1; k < taps; ++k) {
      const T* from = x + places[k] * inner;
      for (int64_t i = 0; i < inner; ++i) y[i] += weights[k] * from[i];
    }
  }
}

template <class T>
void resample(const Resample& r, const void* x_, void* y_) {
  const T *x = static_cast<const T*>(x_), *weights = static_cast<const T*>(r.weights);
  T* y = static_cast<T*>(y_);
  if (r.inner > 1 || r.in > INT32_MAX) {
    const int64_t grain = kGrain / (r.inner * r.taps + 1) + 1;
    with_taps(r.taps, [&](auto taps) {
      parallel_for(0, r.outer * r.out, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t o = row / r.out, j = row % r.out;
          resample_lines<T, decltype(taps)::value>(r.taps, r.inner, r.places + j * r.taps, weights + j * r.taps,
                                                   x + o * r.in * r.inner, y + row * r.inner);
        }
      });
    });
    return;
  }
  const Buffer<int32_t> places(r.out * r.taps);
  const Buffer<T> by(r.out * r.taps);
  for (int64_t j = 0; j < r.out; ++j) {
    for (int64_t k = 0; k < r.taps; ++k) {
      places[k * r.out + j] = static_cast<int32_t>(r.places[j * r.taps + k]);
      by[k * r.out + j] = weights[j * r.taps + k];
    }
  }
  with_taps(r.taps, [&](auto taps) {
    parallel_for(0, r.outer, kGrain / (r.out * r.taps + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        resample_row<T, decltype(taps)::value>(r.taps, r.out, places.data(), by.data(), x + o * r.in, y + o * r.out);
      }
    });
  });
}

template <class T>
void resample_adjoint(const Resample& r, const void* dy_, void* dx_) {
  const T *dy = static_cast<const T*>(dy_), *weights = static_cast<const T*>(r.weights);
  T* dx = static_cast<T*>(dx_);
  // Lines side by side fall into pieces where there are too few others for the threads.
  const int64_t width = r.outer >= 8 ? r.inner : most(parts(r.inner, 8), least(r.inner, int64_t{64}));
  const int64_t pieces = r.inner == 0 ? 0 : parts(r.inner, width);
  const int64_t grain = kGrain / (r.out * r.taps * width + 1) + 1;
  parallel_for(0, r.outer * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / pieces, first = task % pieces * width, count = least(width, r.inner - first);
      T* to = dx + o * r.in * r.inner + first;
      const T* from = dy + o * r.out * r.inner + first;
      for (int64_t i = 0; i < r.in; ++i) {
        for (int64_t l = 0; l < count; ++l) to[i * r.inner + l] = T(0);
      }
      for (int64_t j = 0; j < r.out; ++j) {
        for (int64_t k = 0; k < r.taps; ++k) {
          const T by = weights[j * r.taps + k];
          T* row = to + r.places[j * r.taps + k] * r.inner;
          for (int64_t l = 0; l < count; ++l) row[l] += by * from[j * r.inner + l];
        }
      }
    }
  });
}

// -- at the places of a grid

constexpr int64_t kBlock = 64;  // points whose places are found together

// The places of a block of points along one dimension, -1 outside, with their weights and the slopes of these.
template <class T>
struct Line {
  int taps;
  T weight[4][kBlock], slope[4][kBlock];
  int32_t place[4][kBlock];
};

// A coordinate in elements, moved into the image as the padding says, and by what its derivative is multiplied.
template <class T>
RL_INLINE inline T fold_in(T at, int64_t size, GridPadding padding, bool align_corners, T* factor) {
  if (padding == GridPadding::Zeros) return at;
  if (padding == GridPadding::Reflection) {
    const T low = align_corners ? T(0) : T(-0.5), span = static_cast<T>(align_corners ? size - 1 : size);
    if (span == 0) {
      *factor = 0;
      return 0;
    }
    T distance = at - low;
    if (distance < 0) distance = -distance, *factor = -*factor;
    const T turns = __builtin_floor(distance / span), extra = distance - turns * span;
    const bool odd = turns - 2 * __builtin_floor(turns / 2) != 0;
    if (odd) *factor = -*factor;
    at = (odd ? span - extra : extra) + low;
  }
  const T last = static_cast<T>(size - 1);
  if (!(at > 0)) *factor = 0, at = 0;
  if (at >= last) *factor = 0, at = last;
  return at;
}

template <class T>
RL_INLINE inline int32_t inside(T place, int64_t size) {
  return place >= 0 && place < static_cast<T>(size) ? static_cast<int32_t>(place) : -1;
}

// The cubic convolution kernel of Keys (1981), a = -0.75, for the four elements around a position; and its slopes.
template <class T>
RL_INLINE inline void cubic(T share, T* weight, T* slope) {
  constexpr T a = T(-0.75);
  const auto far = [&](T x) RL_INLINE { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near = [&](T x) RL_INLINE { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far_slope = [&](T x) RL_INLINE { return (3 * a * x - 10 * a) * x + 8 * a; };
  const auto near_slope = [&](T x) RL_INLINE { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  weight[0] = far(share + 1), weight[1] = near(share), weight[2] = near(1 - share), weight[3] = far(2 - share);
  slope[0] = far_slope(share + 1), slope[1] = near_slope(share);
  slope[2] = -near_slope(1 - share), slope[3] = -far_slope(2 - share);
}

// Fills the line of coordinate c of `count` points.
template <class T>
void locate(const GridShape& s, int d, const T* grid, int64_t count, Line<T>* line) {
  const int64_t size = s.size[d];
  const int c = s.n - 1 - d;
  const T scale = static_cast<T>(s.align_corners ? size - 1 : size) / 2;
  for (int64_t b = 0; b < count; ++b) {
    T factor = scale, at = (grid[b * s.n + c] + 1) * scale - (s.align_corners ? T(0) : T(0.5));
    if (s.mode != GridMode::Cubic) at = fold_in(at, size, s.padding, s.align_corners, &factor);
    if (s.mode == GridMode::Nearest) {
      line->place[0][b] = inside(__builtin_rint(at), size);
      line->weight[0][b] = 1, line->slope[0][b] = 0;
      continue;
    }
    const T first = __builtin_floor(at), share = at - first;
    if (s.mode == GridMode::Linear) {
      line->place[0][b] = inside(first, size), line->place[1][b] = inside(first + 1, size);
      line->weight[0][b] = 1 - share, line->weight[1][b] = share;
      line->slope[0][b] = -factor, line->slope[1][b] = factor;
      continue;
    }
    T weight[4], slope[4], unused = 1;
    cubic(share, weight, slope);
    for (int k = 0; k < 4; ++k) {
      const T place = fold_in(first + static_cast<T>(k - 1), size, s.padding, s.align_corners, &unused);
      line->place[k][b] = inside(place, size);
      line->weight[k][b] = weight[k], line->slope[k][b] = slope[k] * factor;
    }
  }
}

// The elements around a block of points: flat positions in a plane, -1 outside, and weights.
template <class T, int N, int Taps>
struct Corners {
  static constexpr int count = N == 2 ? Taps * Taps : Taps * Taps * Taps;
  Line<T> lines[N];
  int32_t place[count][kBlock];
  T weight[count][kBlock];
  bool all_inside;

  static constexpr int tap(int corner, int d) {  // of dimension d; the last one runs fastest
    for (int e = N - 1; e > d; --e) corner /= Taps;
    return corner % Taps;
  }

  void find(const GridShape& s, const T* grid, int64_t points) {
    for (int d = 0; d < N; ++d) locate(s, d, grid, points, &lines[d]);
    all_inside = true;
    for (int k = 0; k < count; ++k) {
      int32_t lowest = 0;
      for (int64_t b = 0; b < points; ++b) {
        int32_t at = 0, outside = 0;
        T by = 1;
        for (int d = 0; d < N; ++d) {
          const int32_t i = lines[d].place[tap(k, d)][b];
          outside |= i;
          at = at * static_cast<int32_t>(s.size[d]) + i;
          by *= lines[d].weight[tap(k, d)][b];
        }
        place[k][b] = outside < 0 ? -1 : at;
        weight[k][b] = by;
        lowest = place[k][b] < lowest ? place[k][b] : lowest;
      }
      all_inside = all_inside && lowest == 0;
    }
  }
};

// f(Corners) for the dimensions and the mode.
template <class T, class F>
void with_corners(const GridShape& s, F f) {
  static_assert(sizeof(T) >= 4);
  if (s.n == 2) {
    switch (s.mode) {
      case GridMode::Nearest: return f(static_cast<Corners<T, 2, 1>*>(nullptr));
      case GridMode::Linear: return f(static_cast<Corners<T, 2, 2>*>(nullptr));
      case GridMode::Cubic: return f(static_cast<Corners<T, 2, 4>*>(nullptr));
    }
  }
  if (s.mode == GridMode::Nearest) return f(static_cast<Corners<T, 3, 1>*>(nullptr));
  f(static_cast<Corners<T, 3, 2>*>(nullptr));
}

int64_t plane_of(const GridShape& s) { return s.size[0] * s.size[1] * (s.n == 3 ? s.size[2] : 1); }

// f(image, first point, points) over blocks of points, on the thread pool.
template <class F>
void each_block(const GridShape& s, int64_t cost, F f) {
  const int64_t blocks = parts(s.points, kBlock);
  parallel_for(0, s.batch * blocks, kGrain / (kBlock * cost + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kBlock;
      f(task / blocks, first, least(kBlock, s.points - first));
    }
  });
}

template <class T>
void grid(const GridShape& s, const void* x_, const void* grid_, void* y_) {
  const T *x = static_cast<const T*>(x_), *grid = static_cast<const T*>(grid_);
  T* y = static_cast<T*>(y_);
  const int64_t plane = plane_of(s);
  with_corners<T>(s, [&](auto* kind) {
    using Found = std::remove_pointer_t<decltype(kind)>;
    each_block(s, s.channels * Found::count, [&](int64_t image, int64_t first, int64_t points) {
      Found at;
      at.find(s, grid + (image * s.points + first) * s.n, points);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* from = x + (image * s.channels + c) * plane;
        T* to = y + (image * s.channels + c) * s.points + first;
        if (at.all_inside) {
          for (int64_t b = 0; b < points; ++b) {
            T sum = 0;
            for (int k = 0; k < Found::count; ++k) sum += at.weight[k][b] * from[at.place[k][b]];
            to[b] = sum;
          }
        } else {
          for (int64_t b = 0; b < points; ++b) {
            T sum = 0;
            for (int k = 0; k < Found::count; ++k) {
              const int32_t place = at.place[k][b];
              const T value = from[place < 0 ? 0 : place];
              sum += place < 0 ? T(0) : at.weight[k][b] * value;
            }
            to[b] = sum;
          }
        }
      }
    });
  });
}

template <class T>
void grid_backward_input(const GridShape& s, const void* grid_, const void* dy_, void* dx_) {
  const T *grid = static_cast<const T*>(grid_), *dy = static_cast<const T*>(dy_);
  T* dx = static_cast<T*>(dx_);
  const int64_t plane = plane_of(s);
  constexpr int64_t kChannels = 8;  // that share the search for places
  const int64_t groups = parts(s.channels, kChannels);
  with_corners<T>(s, [&](auto* kind) {
    using Found = std::remove_pointer_t<decltype(kind)>;
    parallel_for(0, s.batch * groups, kGrain / (s.points * Found::count * kChannels + 1) + 1,
                 [&](int64_t begin, int64_t end) {
                   Found at;
                   for (int64_t task = begin; task < end; ++task) {
                     const int64_t image = task / groups, channel = task % groups * kChannels;
                     const int64_t last = least(channel + kChannels, s.channels);
                     T* to = dx + image * s.channels * plane;
                     for (int64_t i = channel * plane; i < last * plane; ++i) to[i] = T(0);
                     for (int64_t first = 0; first < s.points; first += kBlock) {
                       const int64_t points = least(kBlock, s.points - first);
                       at.find(s, grid + (image * s.points + first) * s.n, points);
                       for (int64_t c = channel; c < last; ++c) {
                         const T* from = dy + (image * s.channels + c) * s.points + first;
                         for (int k = 0; k < Found::count; ++k) {
                           for (int64_t b = 0; b < points; ++b) {
                             if (at.place[k][b] >= 0) to[c * plane + at.place[k][b]] += at.weight[k][b] * from[b];
                           }
                         }
                       }
                     }
                   }
                 });
  });
}

template <class T>
void grid_backward_grid(const GridShape& s, const void* x_, const void* grid_, const void* dy_, void* dgrid_) {
  const T *x = static_cast<const T*>(x_), *grid = static_cast<const T*>(grid_), *dy = static_cast<const T*>(dy_);
  T* dgrid = static_cast<T*>(dgrid_);
  const int64_t plane = plane_of(s);
  with_corners<T>(s, [&](auto* kind) {
    using Found = std::remove_pointer_t<decltype(kind)>;
    each_block(s, s.channels * Found::count, [&](int64_t image, int64_t first, int64_t points) {
      Found at;
      at.find(s, grid + (image * s.points + first) * s.n, points);
      T sum[Found::count][kBlock] = {};  // over the channels
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* from = x + (image * s.channels + c) * plane;
        const T* slope = dy + (image * s.channels + c) * s.points + first;
        for (int k = 0; k < Found::count; ++k) {
          for (int64_t b = 0; b < points; ++b) {
            const int32_t place = at.place[k][b];
            const T value = from[place < 0 ? 0 : place];
            sum[k][b] += place < 0 ? T(0) : slope[b] * value;
          }
        }
      }
      T* to = dgrid + (image * s.points + first) * s.n;
      for (int64_t b = 0; b < points; ++b) {
        for (int d = 0; d < s.n; ++d) {
          T total = 0;
          for (int k = 0; k < Found::count; ++k) {
            T by = sum[k][b];
            for (int e = 0; e < s.n; ++e) {
              const Line<T>& line = at.lines[e];
              by *= (e == d ? line.slope : line.weight)[Found::tap(k, e)][b];
            }
            total += by;
          }
          to[b * s.n + s.n - 1 - d] = total;
        }
      }
    });
  });
}

}  // namespace

void fill_image(ImageTable& table) {
  table.resample[0] = resample<float>;
  table.resample[1] = resample<double>;
  table.resample_adjoint[0] = resample_adjoint<float>;
  table.resample_adjoint[1] = resample_adjoint<double>;
  table.grid[0] = grid<float>;
  table.grid[1] = grid<double>;
  table.grid_backward_input[0] = grid_backward_input<float>;
  table.grid_backward_input[1] = grid_backward_input<double>;
  table.grid_backward_grid[0] = grid_backward_grid<float>;
  table.grid_backward_grid[1] = grid_backward_grid<double>;
}

}  // namespace RL_ISA
}  // namespace rl
