// Resampling of images, compiled once per instruction set.
#include "image.h"

#include "runtime.h"
#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kGrain = 1 << 14;  // products that are worth a thread

// The elements of p at the places of a vector.
template <class T>
RL_INLINE inline Vec<T> gather(const T* p, Vec<IntOf<T>> at) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<Vec<T>>(_mm512_i32gather_ps(reinterpret_cast<__m512i>(at), p, 4));
  } else {
    return reinterpret_cast<Vec<T>>(_mm512_i64gather_pd(reinterpret_cast<__m512i>(at), p, 8));
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<Vec<T>>(_mm256_i32gather_ps(p, reinterpret_cast<__m256i>(at), 4));
  } else {
    return reinterpret_cast<Vec<T>>(_mm256_i64gather_pd(p, reinterpret_cast<__m256i>(at), 8));
  }
#else
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = p[at[i]];
  return v;
#endif
}

// The same where the place is not negative, and 0 elsewhere.
template <class T>
RL_INLINE inline Vec<T> gather_inside(const T* p, Vec<IntOf<T>> at) {
#if defined(__AVX512F__)
  const __m512i places = reinterpret_cast<__m512i>(at);
  if constexpr (sizeof(T) == 4) {
    const __mmask16 inside = _mm512_cmpge_epi32_mask(places, _mm512_setzero_si512());
    return reinterpret_cast<Vec<T>>(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, places, p, 4));
  } else {
    const __mmask8 inside = _mm512_cmpge_epi64_mask(places, _mm512_setzero_si512());
    return reinterpret_cast<Vec<T>>(_mm512_mask_i64gather_pd(_mm512_setzero_pd(), inside, places, p, 8));
  }
#elif defined(__AVX2__)
  const __m256i places = reinterpret_cast<__m256i>(at), inside = reinterpret_cast<__m256i>(at >= 0);
  if constexpr (sizeof(T) == 4) {
    const __m256 mask = reinterpret_cast<__m256>(inside);
    return reinterpret_cast<Vec<T>>(_mm256_mask_i32gather_ps(_mm256_setzero_ps(), p, places, mask, 4));
  } else {
    const __m256d mask = reinterpret_cast<__m256d>(inside);
    return reinterpret_cast<Vec<T>>(_mm256_mask_i64gather_pd(_mm256_setzero_pd(), p, places, mask, 8));
  }
#else
  Vec<T> v;
  for (int i = 0; i < kLanes<T>; ++i) v[i] = at[i] < 0 ? T(0) : p[at[i]];
  return v;
#endif
}

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
void resample_row(int64_t taps, int64_t out, const IntOf<T>* places, const T* weights, const T* x, T* y) {
  const int64_t count = Taps != 0 ? Taps : taps;
  for (int64_t j = 0; j < out; j += kLanes<T>) {
    const int64_t n = least(kLanes<T>, out - j);
    Vec<T> sum{};
    for (int64_t k = 0; k < count; ++k) {
      const int64_t first = k * out + j;
      if (n == kLanes<T>) {
        sum += load(weights + first) * gather(x, load(places + first));
      } else {
        sum += load(weights + first, n) * gather(x, load(places + first, n));
      }
    }
    if (n == kLanes<T>) {
      store<T>(y + j, sum);
    } else {
      store<T>(y + j, sum, n);
    }
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
  const Buffer<IntOf<T>> places(r.out * r.taps);
  const Buffer<T> by(r.out * r.taps);
  for (int64_t j = 0; j < r.out; ++j) {
    for (int64_t k = 0; k < r.taps; ++k) {
      places[k * r.out + j] = static_cast<IntOf<T>>(r.places[j * r.taps + k]);
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

// -- at the places of a grid

constexpr int64_t kBlock = 64;  // points whose places are found together: whole vectors

// The places of a block of points along one dimension, -1 outside, with their weights and the slopes of these.
template <class T>
struct Line {
  T weight[4][kBlock], slope[4][kBlock];
  IntOf<T> place[4][kBlock];
};

template <class T>
RL_INLINE inline T floor(T x) {
  if constexpr (sizeof(T) == 4) return __builtin_floorf(x);
  return __builtin_floor(x);
}
template <class T>
RL_INLINE inline T round(T x) {
  if constexpr (sizeof(T) == 4) return __builtin_rintf(x);
  return __builtin_rint(x);
}

// A coordinate in elements, moved into the image as the padding says, and by what its derivative is multiplied.
template <GridPadding padding, class T>
RL_INLINE inline T fold_in(T at, T last, T low, T span, T* factor) {
  if constexpr (padding == GridPadding::Zeros) return at;
  if constexpr (padding == GridPadding::Reflection) {
    const T before = at - low, distance = before < 0 ? -before : before;
    const T turns = floor(distance / span), extra = distance - turns * span;
    const bool odd = turns - 2 * floor(turns / 2) != 0;
    *factor = (before < 0) != odd ? -*factor : *factor;
    at = (odd ? span - extra : extra) + low;
  }
  *factor = at > 0 && at < last ? *factor : T(0);
  at = at > 0 ? at : T(0);
  return at < last ? at : last;
}

template <class T>
RL_INLINE inline IntOf<T> inside(T place, T last) {
  return static_cast<IntOf<T>>(place >= 0 && place <= last ? place : T(-1));
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

// Fills the line of dimension d for `count` points.
template <GridMode mode, GridPadding padding, class T>
void locate(const GridShape& s, int d, const T* grid, int64_t count, Line<T>* line) {
  const T last = static_cast<T>(s.size[d] - 1), scale = (s.align_corners ? last : last + 1) / 2;
  const T half = s.align_corners ? T(0) : T(0.5), low = -half;
  const T span = s.align_corners && s.size[d] > 1 ? last : last + 1;
  const int64_t step = s.n, c = s.n - 1 - d;
  for (int64_t b = 0; b < count; ++b) {
    T factor = scale, at = (grid[b * step + c] + 1) * scale - half;
    if constexpr (mode != GridMode::Cubic) at = fold_in<padding>(at, last, low, span, &factor);
    if constexpr (mode == GridMode::Nearest) {
      line->place[0][b] = inside(round(at), last);
      line->weight[0][b] = 1, line->slope[0][b] = 0;
    } else if constexpr (mode == GridMode::Linear) {
      const T first = floor(at), share = at - first;
      line->place[0][b] = inside(first, last), line->place[1][b] = inside(first + 1, last);
      line->weight[0][b] = 1 - share, line->weight[1][b] = share;
      line->slope[0][b] = -factor, line->slope[1][b] = factor;
    } else {
      const T first = floor(at);
      T weight[4], slope[4], unused = 1;
      cubic(at - first, weight, slope);
      for (int k = 0; k < 4; ++k) {
        const T place = fold_in<padding>(first + static_cast<T>(k - 1), last, low, span, &unused);
        line->place[k][b] = inside(place, last);
        line->weight[k][b] = weight[k], line->slope[k][b] = slope[k] * factor;
      }
    }
  }
}

template <GridMode mode, class T>
void locate(const GridShape& s, int d, const T* grid, int64_t count, Line<T>* line) {
  switch (s.padding) {
    case GridPadding::Zeros: return locate<mode, GridPadding::Zeros>(s, d, grid, count, line);
    case GridPadding::Border: return locate<mode, GridPadding::Border>(s, d, grid, count, line);
    case GridPadding::Reflection: return locate<mode, GridPadding::Reflection>(s, d, grid, count, line);
  }
}

// The elements around a block of points: flat positions in a plane, -1 outside, and weights.
template <class T, int N, GridMode mode>
struct Corners {
  static constexpr int taps = mode == GridMode::Nearest ? 1 : mode == GridMode::Linear ? 2 : 4;
  static constexpr int count = N == 2 ? taps * taps : taps * taps * taps;
  Line<T> lines[N];
  IntOf<T> place[count][kBlock];
  T weight[count][kBlock];

  static constexpr int tap(int corner, int d) {  // of dimension d; the last one runs fastest
    for (int e = N - 1; e > d; --e) corner /= taps;
    return corner % taps;
  }

  void find(const GridShape& s, const T* grid, int64_t points) {
    for (int d = 0; d < N; ++d) locate<mode>(s, d, grid, points, &lines[d]);
    IntOf<T> sizes[N];
    for (int d = 0; d < N; ++d) sizes[d] = static_cast<IntOf<T>>(s.size[d]);
    for (int k = 0; k < count; ++k) {
      for (int64_t b = 0; b < points; ++b) {
        IntOf<T> at = 0, outside = 0;
        T by = 1;
        for (int d = 0; d < N; ++d) {
          const IntOf<T> i = lines[d].place[tap(k, d)][b];
          outside |= i;
          at = at * sizes[d] + i;
          by *= lines[d].weight[tap(k, d)][b];
        }
        place[k][b] = outside < 0 ? -1 : at;
        weight[k][b] = outside < 0 ? T(0) : by;  // of what is not finite the weight is no number
      }
      for (int64_t b = points; b < kBlock; ++b) place[k][b] = 0, weight[k][b] = 0;
    }
  }

  // Corner k of the points from b on, in a plane of the image; 0 outside.
  RL_INLINE Vec<T> value(const T* plane, int k, int64_t b) const { return gather_inside(plane, load(place[k] + b)); }
};

// f(Corners) for the dimensions and the mode.
template <class T, class F>
void with_corners(const GridShape& s, F f) {
  if (s.n == 2) {
    switch (s.mode) {
      case GridMode::Nearest: return f(static_cast<Corners<T, 2, GridMode::Nearest>*>(nullptr));
      case GridMode::Linear: return f(static_cast<Corners<T, 2, GridMode::Linear>*>(nullptr));
      case GridMode::Cubic: return f(static_cast<Corners<T, 2, GridMode::Cubic>*>(nullptr));
    }
  }
  if (s.mode == GridMode::Nearest) return f(static_cast<Corners<T, 3, GridMode::Nearest>*>(nullptr));
  f(static_cast<Corners<T, 3, GridMode::Linear>*>(nullptr));
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
        for (int64_t b = 0; b < points; b += kLanes<T>) {
          Vec<T> sum{};
          for (int k = 0; k < Found::count; ++k) sum += load(at.weight[k] + b) * at.value(from, k, b);
          store<T>(to + b, sum, least(kLanes<T>, points - b));
        }
      }
    });
  });
}

constexpr int64_t kChannels = 8;  // that share the search for places

// Adds a block of points to planes of the image. Several channels in turn keep additions to one place apart.
template <class T, class Found>
void scatter_block(const GridShape& s, const Found& at, int64_t points, int64_t channels, int64_t plane, const T* dy,
                   T* dx) {
  for (int64_t b = 0; b < points; ++b) {
    for (int k = 0; k < Found::count; ++k) {
      if (at.place[k][b] < 0) continue;
      T* to = dx + at.place[k][b];
      const T by = at.weight[k][b];
      if (channels == kChannels) {
        for (int64_t c = 0; c < kChannels; ++c) to[c * plane] += by * dy[c * s.points + b];
      } else {
        for (int64_t c = 0; c < channels; ++c) to[c * plane] += by * dy[c * s.points + b];
      }
    }
  }
}

template <class T>
void grid_backward_input(const GridShape& s, const void* grid_, const void* dy_, void* dx_) {
  const T *grid = static_cast<const T*>(grid_), *dy = static_cast<const T*>(dy_);
  T* dx = static_cast<T*>(dx_);
  const int64_t plane = plane_of(s), groups = parts(s.channels, kChannels);
  with_corners<T>(s, [&](auto* kind) {
    using Found = std::remove_pointer_t<decltype(kind)>;
    const int64_t grain = kGrain / (s.points * Found::count * kChannels + 1) + 1;
    parallel_for(0, s.batch * groups, grain, [&](int64_t begin, int64_t end) {
      Found at;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t image = task / groups, channel = task % groups * kChannels;
        const int64_t channels = least(kChannels, s.channels - channel), number = image * s.channels + channel;
        T* to = dx + number * plane;
        for (int64_t i = 0; i < channels * plane; ++i) to[i] = T(0);
        for (int64_t first = 0; first < s.points; first += kBlock) {
          const int64_t points = least(kBlock, s.points - first);
          at.find(s, grid + (image * s.points + first) * s.n, points);
          scatter_block(s, at, points, channels, plane, dy + number * s.points + first, to);
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
        for (int64_t b = 0; b < points; b += kLanes<T>) {
          const Vec<T> by = load(slope + b, least(kLanes<T>, points - b));
          for (int k = 0; k < Found::count; ++k) store<T>(sum[k] + b, load(sum[k] + b) + by * at.value(from, k, b));
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
  table.grid[0] = grid<float>;
  table.grid[1] = grid<double>;
  table.grid_backward_input[0] = grid_backward_input<float>;
  table.grid_backward_input[1] = grid_backward_input<double>;
  table.grid_backward_grid[0] = grid_backward_grid<float>;
  table.grid_backward_grid[1] = grid_backward_grid<double>;
}

}  // namespace RL_ISA
}  // namespace rl
