#include "random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "../allocator.h"
#include "../kernels/half.h"
#include "../parallel.h"
#include "random_isa.h"

namespace rl {
namespace {

using base::BHalf;
using base::Half;

constexpr int64_t kChunk = 624;
constexpr double kPi = 3.14159265358979323846;

template <class T>
T narrowed(double v) {
  if constexpr (std::is_same_v<T, Half>) {
    return base::to_half(static_cast<float>(v));
  } else if constexpr (std::is_same_v<T, BHalf>) {
    return base::to_bhalf(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

[[noreturn]] void unsupported(const char* what, DType dtype) {
  throw std::invalid_argument(std::string(what) + ": no such random numbers of dtype " + name(dtype) + ".");
}

// f(T{}) with the type of the elements.
template <class F>
void with_floating(const char* what, DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float16: return f(Half{});
    case DType::BFloat16: return f(BHalf{});
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    default: unsupported(what, dtype);
  }
}

template <class F>
void with_real(const char* what, DType dtype, F&& f) {
  switch (dtype) {
    case DType::UInt8: return f(uint8_t{});
    case DType::Int8: return f(int8_t{});
    case DType::Int16: return f(int16_t{});
    case DType::Int32: return f(int32_t{});
    case DType::Int64: return f(int64_t{});
    case DType::Bool: return f(bool{});
    default: return with_floating(what, dtype, f);
  }
}

// Calls f(begin, words, m) for runs of elements, each drawn as `words_each` words.
template <class F>
void for_bits(Generator& g, int64_t n, int words_each, F&& f) {
  uint32_t bits[kChunk];
  const int64_t run = kChunk / words_each;
  for (int64_t i = 0; i < n; i += run) {
    const int64_t m = std::min(run, n - i);
    g.random(bits, m * words_each);
    f(i, static_cast<const uint32_t*>(bits), m);
  }
}

uint64_t word64(const uint32_t* bits, int64_t i) { return static_cast<uint64_t>(bits[2 * i]) << 32 | bits[2 * i + 1]; }

// Elements that are a function of one double in [0, 1).
template <class F>
void fill_by_uniform(Generator& g, const char* what, DType dtype, void* out, int64_t n, F&& f) {
  with_real(what, dtype, [&](auto zero) {
    using T = decltype(zero);
    T* o = static_cast<T*>(out);
    for_bits(g, n, 2, [&](int64_t begin, const uint32_t* bits, int64_t m) {
      double u[kChunk / 2];
      random_table().uniform_double(bits, u, m, 0.0, 1.0);
      for (int64_t i = 0; i < m; ++i) o[begin + i] = narrowed<T>(f(u[i], begin + i));
    });
  });
}

void uniform_floats(Generator& g, float* out, int64_t n, float from, float range) {
  for_bits(g, n, 1, [&](int64_t begin, const uint32_t* bits, int64_t m) {
    random_table().uniform(bits, out + begin, m, from, range);
  });
}

// All groups of 16, then the last 16 elements once more where they are not a whole group.
void normal_floats(Generator& g, float* out, int64_t n, float mean, float std) {
  uniform_floats(g, out, n, 0, 1);
  parallel_for(0, n / 16, 4096, [&](int64_t b, int64_t e) { random_table().normal(out + b * 16, e - b, mean, std); });
  if (n % 16 == 0) return;
  uniform_floats(g, out + n - 16, 16, 0, 1);
  random_table().normal(out + n - 16, 1, mean, std);
}

void normal_doubles(Generator& g, double* out, int64_t n, double mean, double std) {
  const auto groups = [=](double* v, int64_t count) {
    for (int64_t k = 0; k < count; ++k, v += 16) {
      for (int j = 0; j < 8; ++j) {
        const double radius = std::sqrt(-2 * std::log(1 - v[j])), theta = 2 * kPi * v[j + 8];
        v[j] = std::fma(radius * std::cos(theta), std, mean);
        v[j + 8] = std::fma(radius * std::sin(theta), std, mean);
      }
    }
  };
  fill_uniform(g, DType::Float64, out, n, 0, 1);
  parallel_for(0, n / 16, 512, [&](int64_t b, int64_t e) { groups(out + b * 16, e - b); });
  if (n % 16 == 0) return;
  fill_uniform(g, DType::Float64, out + n - 16, 16, 0, 1);
  groups(out + n - 16, 1);
}

template <class T>
constexpr uint64_t highest_integer() {
  if constexpr (std::is_same_v<T, Half>) return 1 << 11;
  if constexpr (std::is_same_v<T, BHalf>) return 1 << 8;
  if constexpr (std::is_same_v<T, float>) return 1 << 24;
  if constexpr (std::is_same_v<T, double>) return uint64_t{1} << 53;
  if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(std::numeric_limits<T>::max());
}

template <class T>
T from_integer(int64_t v) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(v);
  return narrowed<T>(static_cast<double>(v));
}

}  // namespace

void fill_uniform(Generator& g, DType dtype, void* out, int64_t n, double from, double to) {
  with_floating("uniform", dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, double>) {
      for_bits(g, n, 2, [&](int64_t begin, const uint32_t* bits, int64_t m) {
        random_table().uniform_double(bits, static_cast<double*>(out) + begin, m, from, to - from);
      });
    } else if constexpr (std::is_same_v<T, float>) {
      uniform_floats(g, static_cast<float*>(out), n, static_cast<float>(from),
                     static_cast<float>(to) - static_cast<float>(from));
    } else {
      const float low = static_cast<float>(from), range = static_cast<float>(to) - low;
      const T lowest = narrowed<T>(from);
      const float end = base::to_float(narrowed<T>(to));
      for_bits(g, n, 1, [&](int64_t begin, const uint32_t* bits, int64_t m) {
        float u[kChunk];
        T* o = static_cast<T*>(out) + begin;
        random_table().uniform(bits, u, m, low, range);
        base::narrow(u, o, m);
        for (int64_t i = 0; i < m; ++i) {
          if (base::to_float(o[i]) >= end) o[i] = lowest;  // rounded up to the open end
        }
      });
    }
  });
}

void fill_normal(Generator& g, DType dtype, void* out, int64_t n, double mean, double std, bool strided) {
  if (is_complex(dtype)) return fill_normal(g, real_of(dtype), out, 2 * n, mean, std / std::sqrt(2.0), strided);
  with_floating("normal", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* o = static_cast<T*>(out);
    if (n < 16 || strided) {
      for (int64_t i = 0; i < n; ++i) o[i] = narrowed<T>(std::fma(g.normal(), std, mean));
    } else if constexpr (std::is_same_v<T, double>) {
      normal_doubles(g, o, n, mean, std);
    } else if constexpr (std::is_same_v<T, float>) {
      normal_floats(g, o, n, static_cast<float>(mean), static_cast<float>(std));
    } else {
      // Here a tail is drawn right after the whole groups.
      const int64_t whole = n / 16 * 16;
      const float m = static_cast<float>(mean), s = static_cast<float>(std);
      Scratch wide(static_cast<size_t>(whole) * sizeof(float));
      normal_floats(g, wide.as<float>(), whole, m, s);
      base::narrow(wide.as<float>(), o, whole);
      if (n == whole) return;
      normal_floats(g, wide.as<float>(), 16, m, s);
      base::narrow(wide.as<float>(), o + n - 16, 16);
    }
  });
}

void fill_random_range(Generator& g, DType dtype, void* out, int64_t n, uint64_t range, int64_t base) {
  with_real("random_", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* o = static_cast<T*>(out);
    const auto value = [=](uint64_t r) {
      return from_integer<T>(static_cast<int64_t>(r + static_cast<uint64_t>(base)));
    };
    if (range != 0 && range < (uint64_t{1} << 28)) {
      // Remainders by multiplication (Lemire, Kaser and Kurz, 2019).
      const uint64_t inverse = range == 1 ? 0 : ~uint64_t{0} / range + 1;
      for_bits(g, n, 1, [&](int64_t begin, const uint32_t* bits, int64_t m) {
        for (int64_t i = 0; i < m; ++i) {
          const auto product = static_cast<unsigned __int128>(inverse * bits[i]) * range;
          o[begin + i] = value(static_cast<uint64_t>(product >> 64));
        }
      });
    } else {
      for_bits(g, n, 2, [&](int64_t begin, const uint32_t* bits, int64_t m) {
        for (int64_t i = 0; i < m; ++i) {
          const uint64_t word = word64(bits, i);
          o[begin + i] = range == 0 ? from_integer<T>(static_cast<int64_t>(word)) : value(word % range);
        }
      });
    }
  });
}

void fill_random(Generator& g, DType dtype, void* out, int64_t n) {
  with_real("random_", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* o = static_cast<T*>(out);
    constexpr uint64_t range = highest_integer<T>() + 1;
    if constexpr (sizeof(T) == 8) {
      for_bits(g, n, 2, [&](int64_t begin, const uint32_t* bits, int64_t m) {
        for (int64_t i = 0; i < m; ++i) o[begin + i] = from_integer<T>(static_cast<int64_t>(word64(bits, i) % range));
      });
    } else {
      for_bits(g, n, 1, [&](int64_t begin, const uint32_t* bits, int64_t m) {
        for (int64_t i = 0; i < m; ++i) o[begin + i] = from_integer<T>(static_cast<int64_t>(bits[i] % range));
      });
    }
  });
}

void fill_randperm(Generator& g, int64_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = i;
  const bool small = n < std::numeric_limits<uint32_t>::max() / 20;
  for (int64_t i = 0; i < n - 1; ++i) {
    const uint64_t left = static_cast<uint64_t>(n - i);
    const uint64_t j = small ? g.random() % static_cast<uint32_t>(left) : g.random64() % left;
    std::swap(out[i], out[i + static_cast<int64_t>(j)]);
  }
}

void fill_bernoulli(Generator& g, DType dtype, void* out, int64_t n, double p) {
  fill_by_uniform(g, "bernoulli", dtype, out, n, [=](double u, int64_t) { return u < p ? 1.0 : 0.0; });
}

void fill_bernoulli(Generator& g, DType dtype, void* out, int64_t n, DType p_dtype, const void* p) {
  if (p_dtype == DType::Float64) {
    const double* chance = static_cast<const double*>(p);
    fill_by_uniform(g, "bernoulli", dtype, out, n, [=](double u, int64_t i) { return u < chance[i] ? 1.0 : 0.0; });
    return;
  }
  if (p_dtype != DType::Float32) unsupported("bernoulli", p_dtype);
  const float* chance = static_cast<const float*>(p);
  with_real("bernoulli", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* o = static_cast<T*>(out);
    for_bits(g, n, 1, [&](int64_t begin, const uint32_t* bits, int64_t m) {
      float u[kChunk];
      random_table().uniform(bits, u, m, 0, 1);
      for (int64_t i = 0; i < m; ++i) o[begin + i] = narrowed<T>(u[i] < chance[begin + i] ? 1.0 : 0.0);
    });
  });
}

void fill_exponential(Generator& g, DType dtype, void* out, int64_t n, double lambda) {
  fill_by_uniform(g, "exponential", dtype, out, n, [=](double u, int64_t) { return -1 / lambda * std::log1p(-u); });
}

void fill_cauchy(Generator& g, DType dtype, void* out, int64_t n, double median, double sigma) {
  fill_by_uniform(g, "cauchy", dtype, out, n,
                  [=](double u, int64_t) { return median + sigma * std::tan(kPi * (u - 0.5)); });
}

void fill_log_normal(Generator& g, DType dtype, void* out, int64_t n, double mean, double std) {
  with_floating("log_normal", dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = narrowed<T>(std::exp(std::fma(g.normal(), std, mean)));
  });
}

void fill_geometric(Generator& g, DType dtype, void* out, int64_t n, double p) {
  const double scale = std::log1p(-p);
  fill_by_uniform(g, "geometric", dtype, out, n, [=](double u, int64_t) { return std::ceil(std::log(u) / scale); });
}

// Products of uniforms (Knuth) for small rates, else transformed rejection (Hoermann, 1993).
static double poisson(Generator& g, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double bound = std::exp(-rate);
    double product = 1;
    for (double k = 0;; ++k) {
      product *= g.uniform();
      if (product <= bound) return k;
    }
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = g.uniform() - 0.5, v = g.uniform(), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

void fill_poisson(Generator& g, double* rates, int64_t n) {
  for (int64_t i = 0; i < n; ++i) rates[i] = std::isfinite(rates[i]) ? poisson(g, rates[i]) : rates[i];
}

void fill_multinomial(Generator& g, int64_t* out, int64_t rows, int64_t samples, const double* weights, int64_t n) {
  Scratch cumulative(static_cast<size_t>(n) * sizeof(double));
  double* c = cumulative.as<double>();
  for (int64_t r = 0; r < rows; ++r, weights += n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) c[i] = sum += weights[i];
    for (int64_t i = 0; i < n; ++i) c[i] /= sum;
    c[n - 1] = 1;
    for (int64_t s = 0; s < samples; ++s) *out++ = std::lower_bound(c, c + n, g.uniform()) - c;
  }
}

}  // namespace rl
