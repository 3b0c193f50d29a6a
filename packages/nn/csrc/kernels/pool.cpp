#include "pool.h"

#include <algorithm>

#include "runtime.h"

namespace rl {
namespace {

constexpr int64_t kGrain = 1 << 15;

const PoolTable& table() {
  static const PoolTable filled = [] {
    PoolTable t{};
    RL_ISA_CALL(fill_pool, t);
    return t;
  }();
  return filled;
}
int type_index(DType dtype) { return dtype == DType::Float64; }

int64_t product(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// f(from, to) for each plane of an input and an output of the given sizes.
template <class T, class F>
void each_plane(int64_t planes, int64_t from_size, int64_t to_size, const void* from, void* to, F f) {
  parallel_for(0, planes, kGrain / (from_size + to_size + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      f(static_cast<const T*>(from) + p * from_size, static_cast<T*>(to) + p * to_size, p);
    }
  });
}

// The part of window i of dimension d that lies in the image.
struct Window {
  int64_t begin, end;
};

Window strided_window(const PoolShape& s, int d, int64_t i) {
  const int64_t begin = i * s.stride[d] - s.padding[d];
  return {std::max<int64_t>(begin, 0), std::min(begin + s.kernel[d], s.in[d])};
}
Window adaptive_window(const PoolShape& s, int d, int64_t i) {
  return {i * s.in[d] / s.out[d], ((i + 1) * s.in[d] + s.out[d] - 1) / s.out[d]};
}

int64_t divisor_of(const PoolShape& s, PoolDivisor kind, int64_t given, const int64_t* o) {
  if (kind == PoolDivisor::Given) return given;
  int64_t count = 1;
  for (int d = 0; d < 3; ++d) {
    const int64_t begin = o[d] * s.stride[d] - s.padding[d], pad = kind == PoolDivisor::Padded ? s.padding[d] : 0;
    count *= std::min(begin + s.kernel[d], s.in[d] + pad) - std::max(begin, -pad);
  }
  return count;
}

// f(output position, windows of the three dimensions) over a plane.
template <class W, class F>
void each_window(const PoolShape& s, W window, F f) {
  int64_t o[3], index = 0;
  for (o[0] = 0; o[0] < s.out[0]; ++o[0]) {
    for (o[1] = 0; o[1] < s.out[1]; ++o[1]) {
      for (o[2] = 0; o[2] < s.out[2]; ++o[2]) {
        const Window windows[3] = {window(s, 0, o[0]), window(s, 1, o[1]), window(s, 2, o[2])};
        f(index++, o, windows);
      }
    }
  }
}

template <class T>
void spread(const PoolShape& s, const Window* w, T value, T* dx) {
  for (int64_t d = w[0].begin; d < w[0].end; ++d) {
    for (int64_t h = w[1].begin; h < w[1].end; ++h) {
      T* row = dx + (d * s.in[1] + h) * s.in[2];
      for (int64_t x = w[2].begin; x < w[2].end; ++x) row[x] += value;
    }
  }
}

template <class T>
void avg_backward(const PoolShape& s, PoolDivisor kind, int64_t divisor, const void* dy, void* dx) {
  each_plane<T>(s.planes, product(s.out), product(s.in), dy, dx, [&](const T* from, T* to, int64_t) {
    std::fill_n(to, product(s.in), T(0));
    each_window(s, strided_window, [&](int64_t i, const int64_t* o, const Window* w) {
      spread(s, w, from[i] / static_cast<T>(divisor_of(s, kind, divisor, o)), to);
    });
  });
}

int64_t count(const Window* w) { return (w[0].end - w[0].begin) * (w[1].end - w[1].begin) * (w[2].end - w[2].begin); }

// A sum in 16 lanes, which the compiler turns into vectors.
template <class T>
T sum(const T* x, int64_t n) {
  T lane[16] = {}, total = 0;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int64_t j = 0; j < 16; ++j) lane[j] += x[i + j];
  }
  for (; i < n; ++i) total += x[i];
  for (T x : lane) total += x;
  return total;
}

template <class T>
void adaptive(const PoolShape& s, const void* x, void* y) {
  each_plane<T>(s.planes, product(s.in), product(s.out), x, y, [&](const T* from, T* to, int64_t) {
    if (product(s.out) == 1) {
      *to = sum(from, product(s.in)) / static_cast<T>(product(s.in));
      return;
    }
    each_window(s, adaptive_window, [&](int64_t i, const int64_t*, const Window* w) {
      T total = 0;
      for (int64_t d = w[0].begin; d < w[0].end; ++d) {
        for (int64_t h = w[1].begin; h < w[1].end; ++h) {
          total += sum(from + (d * s.in[1] + h) * s.in[2] + w[2].begin, w[2].end - w[2].begin);
        }
      }
      to[i] = total / static_cast<T>(count(w));
    });
  });
}

template <class T>
void adaptive_backward(const PoolShape& s, const void* dy, void* dx) {
  each_plane<T>(s.planes, product(s.out), product(s.in), dy, dx, [&](const T* from, T* to, int64_t) {
    std::fill_n(to, product(s.in), T(0));
    each_window(s, adaptive_window, [&](int64_t i, const int64_t*, const Window* w) {
      spread(s, w, from[i] / static_cast<T>(count(w)), to);
    });
  });
}

template <class T>
void max_backward(int64_t planes, int64_t in, int64_t out, const void* dy, const int64_t* index, void* dx) {
  each_plane<T>(planes, out, in, dy, dx, [&](const T* from, T* to, int64_t p) {
    std::fill_n(to, in, T(0));
    for (int64_t i = 0; i < out; ++i) to[index[p * out + i]] += from[i];
  });
}

}  // namespace

void max_pool(DType dtype, const PoolShape& s, const void* x, void* y, int64_t* index) {
  table().max[type_index(dtype)](s, x, y, index);
}
void max_pool_backward(DType dtype, int64_t planes, int64_t in, int64_t out, const void* dy, const int64_t* index,
                       void* dx) {
  (dtype == DType::Float64 ? max_backward<double> : max_backward<float>)(planes, in, out, dy, index, dx);
}
void avg_pool(DType dtype, const PoolShape& s, PoolDivisor kind, int64_t divisor, const void* x, void* y) {
  table().mean[type_index(dtype)](s, kind, divisor, x, y);
}
void avg_pool_backward(DType dtype, const PoolShape& s, PoolDivisor kind, int64_t divisor, const void* dy, void* dx) {
  (dtype == DType::Float64 ? avg_backward<double> : avg_backward<float>)(s, kind, divisor, dy, dx);
}
void adaptive_avg_pool(DType dtype, const PoolShape& s, const void* x, void* y) {
  (dtype == DType::Float64 ? adaptive<double> : adaptive<float>)(s, x, y);
}
void adaptive_avg_pool_backward(DType dtype, const PoolShape& s, const void* dy, void* dx) {
  (dtype == DType::Float64 ? adaptive_backward<double> : adaptive_backward<float>)(s, dy, dx);
}

}  // namespace rl
