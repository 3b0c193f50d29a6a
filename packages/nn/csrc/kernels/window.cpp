#include "window.h"

#include <algorithm>
#include <cstring>

#include "runtime.h"

namespace rl {
namespace {

constexpr int64_t kGrain = 1 << 15;

int64_t product(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// Windows [first, end) of a line have a tap at `offset` from their beginning inside the image.
struct Inside {
  int64_t first, end;
  Inside(const PoolShape& s, int d, int64_t offset) {
    const int64_t step = s.stride[d];
    first = offset < 0 ? std::min((-offset + step - 1) / step, s.out[d]) : 0;
    end = offset >= s.in[d] ? first : std::max(first, std::min(s.out[d], (s.in[d] - offset + step - 1) / step));
  }
};

// f(row of the image or null, first window and end in it, step, row of windows) over the taps of a plane, in order.
template <class T, class F>
void each_row(const PoolShape& s, T* image, F f) {
  int64_t row = 0;
  for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
        const int64_t offset = kw * s.dilation[2] - s.padding[2];
        const Inside inside(s, 2, offset);
        for (int64_t d = 0; d < s.out[0]; ++d) {
          const int64_t id = d * s.stride[0] - s.padding[0] + kd * s.dilation[0];
          for (int64_t h = 0; h < s.out[1]; ++h, ++row) {
            const int64_t ih = h * s.stride[1] - s.padding[1] + kh * s.dilation[1];
            const bool outside = id < 0 || id >= s.in[0] || ih < 0 || ih >= s.in[1] || inside.first == inside.end;
            T* from = outside ? nullptr : image + (id * s.in[1] + ih) * s.in[2] + offset;
            f(from, inside.first, inside.end, s.stride[2], row);
          }
        }
      }
    }
  }
}

// f(plane of the image, its windows) over the planes, on the thread pool.
template <class F>
void each_plane(const PoolShape& s, F f) {
  const int64_t in = product(s.in), out = product(s.out) * product(s.kernel);
  parallel_for(0, s.planes, kGrain / (in + out + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) f(p * in, p * out);
  });
}

template <class T>
void unfold_typed(const PoolShape& s, const T* x, T* y) {
  const int64_t width = s.out[2];
  each_plane(s, [&](int64_t image, int64_t windows) {
    each_row(s, x + image, [&](const T* from, int64_t first, int64_t end, int64_t step, int64_t row) {
      T* to = y + windows + row * width;
      if (from == nullptr) first = end = width;
      std::fill_n(to, first, T(0));
      if (step == 1) {
        std::memcpy(to + first, from + first, static_cast<size_t>(end - first) * sizeof(T));
      } else {
        for (int64_t w = first; w < end; ++w) to[w] = from[w * step];
      }
      std::fill(to + end, to + width, T(0));
    });
  });
}

template <class T>
void fold_typed(const PoolShape& s, const T* dy, T* dx) {
  const int64_t width = s.out[2];
  each_plane(s, [&](int64_t image, int64_t windows) {
    std::fill_n(dx + image, product(s.in), T(0));
    each_row(s, dx + image, [&](T* to, int64_t first, int64_t end, int64_t step, int64_t row) {
      const T* from = dy + windows + row * width;
      if (to == nullptr) return;
      if (step == 1) {
        for (int64_t w = first; w < end; ++w) to[w] += from[w];
      } else {
        for (int64_t w = first; w < end; ++w) to[w * step] += from[w];
      }
    });
  });
}

template <class T>
void max_regions_typed(const PoolShape& s, int n, const int64_t* begin, const int64_t* end, int64_t stride, const T* x,
                       T* y, int64_t* index) {
  const int64_t in = product(s.in), out = product(s.out);
  const int64_t depths = n == 3 ? s.out[0] : 0, first[3] = {0, depths, depths + (n >= 2 ? s.out[1] : 0)};
  struct Bounds {
    int64_t begin, end;
  };
  parallel_for(0, s.planes, kGrain / (in + out + 1) + 1, [&](int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p) {
      const T* plane = x + p * in;
      int64_t at = p * out;
      // Region i of dimension d; a dimension of size 1 in front of the others has no bounds.
      const auto region = [&](int d, int64_t i) {
        if (d < 3 - n) return Bounds{0, 1};
        const int64_t at = p * stride + first[d] + i;
        return Bounds{begin[at], end[at]};
      };
      for (int64_t d = 0; d < s.out[0]; ++d) {
        const Bounds depth = region(0, d);
        for (int64_t h = 0; h < s.out[1]; ++h) {
          const Bounds height = region(1, h);
          for (int64_t w = 0; w < s.out[2]; ++w, ++at) {
            const Bounds width = region(2, w);
            int64_t best = (depth.begin * s.in[1] + height.begin) * s.in[2] + width.begin;
            T most = plane[best];
            for (int64_t id = depth.begin; id < depth.end; ++id) {
              for (int64_t ih = height.begin; ih < height.end; ++ih) {
                const int64_t row = (id * s.in[1] + ih) * s.in[2];
                for (int64_t i = row + width.begin; i < row + width.end; ++i) {
                  if (plane[i] > most || plane[i] != plane[i]) most = plane[i], best = i;
                }
              }
            }
            y[at] = most, index[at] = best;
          }
        }
      }
    }
  });
}

struct Bytes16 {
  uint64_t low, high;
};

template <class T>
void shuffle(const PixelShape& s, bool back, const T* x, T* y) {
  const int64_t r = s.factor, rows = s.blocks * s.height, plane = s.height * s.width;
  parallel_for(0, rows, kGrain / (r * r * s.width + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t block = row / s.height, h = row % s.height;
      for (int64_t i = 0; i < r; ++i) {
        const int64_t whole = ((block * s.height + h) * r + i) * r * s.width;
        const int64_t part = (block * r + i) * r * plane + h * s.width;
        if (r == 2 && !back) {  // both at once, as vectors
          const T *first = x + part, *second = first + plane;
          for (int64_t w = 0; w < s.width; ++w) y[whole + 2 * w] = first[w], y[whole + 2 * w + 1] = second[w];
          continue;
        }
        for (int64_t j = 0; j < r; ++j) {
          for (int64_t w = 0; w < s.width; ++w) {
            if (back) {
              y[part + j * plane + w] = x[whole + w * r + j];
            } else {
              y[whole + w * r + j] = x[part + j * plane + w];
            }
          }
        }
      }
    }
  });
}

template <class T>
const T* cast(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* cast(void* p) {
  return static_cast<T*>(p);
}

}  // namespace

void unfold(DType dtype, const PoolShape& s, const void* x, void* y) {
  if (dtype == DType::Float64) return unfold_typed(s, cast<double>(x), cast<double>(y));
  unfold_typed(s, cast<float>(x), cast<float>(y));
}
void fold(DType dtype, const PoolShape& s, const void* dy, void* dx) {
  if (dtype == DType::Float64) return fold_typed(s, cast<double>(dy), cast<double>(dx));
  fold_typed(s, cast<float>(dy), cast<float>(dx));
}
void max_regions(DType dtype, const PoolShape& s, int n, const int64_t* begin, const int64_t* end, int64_t stride,
                 const void* x, void* y, int64_t* index) {
  if (dtype == DType::Float64)
    return max_regions_typed(s, n, begin, end, stride, cast<double>(x), cast<double>(y), index);
  max_regions_typed(s, n, begin, end, stride, cast<float>(x), cast<float>(y), index);
}

void pixel_shuffle(const PixelShape& s, bool back, const void* x, void* y) {
  switch (s.itemsize) {
    case 1: return shuffle(s, back, cast<uint8_t>(x), cast<uint8_t>(y));
    case 2: return shuffle(s, back, cast<uint16_t>(x), cast<uint16_t>(y));
    case 4: return shuffle(s, back, cast<uint32_t>(x), cast<uint32_t>(y));
    case 8: return shuffle(s, back, cast<uint64_t>(x), cast<uint64_t>(y));
    default: return shuffle(s, back, cast<Bytes16>(x), cast<Bytes16>(y));
  }
}

}  // namespace rl
