// The forward passes of pooling, compiled once per instruction set. Where the stride along a row is one or two, a whole
// row of windows is reduced at a time, tap by tap.
#include "pool.h"
#include "runtime.h"
#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements of input that are worth a thread

// Windows [first, end) of a row have tap `offset` inside the image.
struct Inside {
  int64_t first, end;
  Inside(int64_t offset, int64_t stride, int64_t in, int64_t out)
      : first(offset < 0 ? least(parts(-offset, stride), out) : 0),
        end(offset >= in ? first : most(first, least(out, parts(in - offset, stride)))) {}
};

// Positions as wide as T where they fit, so that values and positions share vectors.
template <class T, class Index>
void max_plane(const PoolShape& s, const T* x, T* y, int64_t* out_index, Index* index) {
  const int64_t width = s.out[2];
  Vec<Index> steps;  // of a vector of windows, in the input
  for (int i = 0; i < kLanes<Index>; ++i) steps[i] = static_cast<Index>(i * s.stride[2]);
  for (int64_t d = 0; d < s.out[0]; ++d) {
    for (int64_t h = 0; h < s.out[1]; ++h, y += width, out_index += width) {
      for (int64_t w = 0; w < width; ++w) y[w] = T(0), index[w] = -1;  // no tap seen
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
        const int64_t id = d * s.stride[0] - s.padding[0] + kd * s.dilation[0];
        if (id < 0 || id >= s.in[0]) continue;
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
          const int64_t ih = h * s.stride[1] - s.padding[1] + kh * s.dilation[1];
          if (ih < 0 || ih >= s.in[1]) continue;
          const int64_t row = (id * s.in[1] + ih) * s.in[2];
          for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
            const int64_t offset = kw * s.dilation[2] - s.padding[2];
            const Inside inside(offset, s.stride[2], s.in[2], width);
            const int64_t base = row + offset;
            int64_t w = inside.first;
            if constexpr (sizeof(Index) == sizeof(T)) {
              const auto take = [&](Vec<T> v) RL_INLINE {
                const Vec<T> best = load(y + w);
                const Vec<Index> at = load(index + w), here = steps + static_cast<Index>(base + w * s.stride[2]);
                const auto better = (v > best) | (v != v) | (at < 0);
                store<T>(y + w, better ? v : best);
                store<Index>(index + w, better ? here : at);
              };
              if (s.stride[2] == 1) {
                for (; w + kLanes<T> <= inside.end; w += kLanes<T>) take(load(x + base + w));
              } else if (s.stride[2] == 2) {
                for (; w + kLanes<T> < inside.end; w += kLanes<T>) take(load_even(x + base + 2 * w));
              }
            }
            for (; w < inside.end; ++w) {
              const T v = x[base + w * s.stride[2]];
              if (v > y[w] || v != v || index[w] < 0) y[w] = v, index[w] = static_cast<Index>(base + w * s.stride[2]);
            }
          }
        }
      }
      for (int64_t w = 0; w < width; ++w) {  // a dilated window may miss a small image altogether
        if (index[w] < 0) y[w] = -static_cast<T>(__builtin_inf()), index[w] = 0;
        out_index[w] = index[w];
      }
    }
  }
}

template <class T>
void max(const PoolShape& s, const void* x, void* y, int64_t* index) {
  const int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
  parallel_for(0, s.planes, kGrain / (in + 1) + 1, [&](int64_t begin, int64_t end) {
    const Buffer<int64_t> row(s.out[2]);
    for (int64_t p = begin; p < end; ++p) {
      const T* from = static_cast<const T*>(x) + p * in;
      T* to = static_cast<T*>(y) + p * out;
      in < INT32_MAX ? max_plane<T>(s, from, to, index + p * out, reinterpret_cast<IntOf<T>*>(row.data()))
                     : max_plane<T>(s, from, to, index + p * out, row.data());
    }
  });
}

// Elements of a window that the divisor counts, along one dimension.
inline int64_t extent(const PoolShape& s, PoolDivisor kind, int d, int64_t i) {
  const int64_t begin = i * s.stride[d] - s.padding[d], low = kind == PoolDivisor::Padded ? -s.padding[d] : 0;
  const int64_t high = s.in[d] + (kind == PoolDivisor::Padded ? s.padding[d] : 0);
  return least(begin + s.kernel[d], high) - most(begin, low);
}

template <class T>
void mean_plane(const PoolShape& s, PoolDivisor kind, int64_t divisor, const T* x, T* y) {
  const int64_t width = s.out[2];
  for (int64_t d = 0; d < s.out[0]; ++d) {
    for (int64_t h = 0; h < s.out[1]; ++h, y += width) {
      for (int64_t w = 0; w < width; ++w) y[w] = T(0);
      for (int64_t kd = 0; kd < s.kernel[0]; ++kd) {
        const int64_t id = d * s.stride[0] - s.padding[0] + kd;
        if (id < 0 || id >= s.in[0]) continue;
        for (int64_t kh = 0; kh < s.kernel[1]; ++kh) {
          const int64_t ih = h * s.stride[1] - s.padding[1] + kh;
          if (ih < 0 || ih >= s.in[1]) continue;
          for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
            const int64_t offset = kw - s.padding[2];
            const Inside inside(offset, s.stride[2], s.in[2], width);
            const T* row = x + (id * s.in[1] + ih) * s.in[2] + offset;
            const auto take = [&](auto stride) RL_INLINE {
              for (int64_t w = inside.first; w < inside.end; ++w) y[w] += row[w * stride];
            };
            if (s.stride[2] == 1) {
              take(Constant<1>::value);
            } else if (s.stride[2] == 2) {
              take(Constant<2>::value);
            } else {
              take(s.stride[2]);
            }
          }
        }
      }
      const int64_t area = extent(s, kind, 0, d) * extent(s, kind, 1, h);
      for (int64_t w = 0; w < width; ++w) {
        y[w] /= static_cast<T>(kind == PoolDivisor::Given ? divisor : area * extent(s, kind, 2, w));
      }
    }
  }
}

template <class T>
void mean(const PoolShape& s, PoolDivisor kind, int64_t divisor, const void* x, void* y) {
  const int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
  parallel_for(0, s.planes, kGrain / (in + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      mean_plane<T>(s, kind, divisor, static_cast<const T*>(x) + p * in, static_cast<T*>(y) + p * out);
    }
  });
}

}  // namespace

void fill_pool(PoolTable& table) {
  table.max[0] = max<float>;
  table.max[1] = max<double>;
  table.mean[0] = mean<float>;
  table.mean[1] = mean<double>;
}

}  // namespace RL_ISA
}  // namespace rl
