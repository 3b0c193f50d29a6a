#include "random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "../allocator.h"
#include "../parallel.h"
#include "random_isa.h"
#include "rushlight/half.h"

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

template <class T>
double widened(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BHalf>) {
    return base::to_float(v);
  } else {
    return static_cast<double>(v);
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

// Calls f(begin, words, m) for runs of elements, each drawn as `words_each` words; on several threads where the
// generator counts.
template <class F>
void for_bits(Generator& g, int64_t n, int words_each, F&& f) {
  const auto draw = [&](Generator& from, int64_t begin, int64_t end) {
    uint32_t bits[kChunk];
    const int64_t run = kChunk / words_each;
    for (int64_t i = begin; i < end; i += run) {
      const int64_t m = std::min(run, end - i);
      from.random(bits, m * words_each);
      f(i, static_cast<const uint32_t*>(bits), m);
    }
  };
  if (!g.counts()) return draw(g, 0, n);
  const uint64_t each = static_cast<uint64_t>(words_each), offset = g.offset();
  parallel_for(0, n, 16384, [&](int64_t b, int64_t e) {
    Generator part = g;
    part.set_offset(offset + static_cast<uint64_t>(b) * each);
    draw(part, b, e);
  });
  g.set_offset(offset + static_cast<uint64_t>(n) * each);
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

// The z below which a normal number is with probability (bits + 1/2) / 2^64: algorithm AS 241 (Wichura, 1988).
double normal_quantile(uint64_t bits) {
  const auto ratio = [](double r, const double (&p)[8], const double (&q)[8]) {
    double above = p[7], below = q[7];
    for (int i = 6; i >= 0; --i) above = above * r + p[i], below = below * r + q[i];
    return above / below;
  };
  static constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                 1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double b[] = {1,
                                 4.2313330701600911252e+1,
                                 6.8718700749205790830e+2,
                                 5.3941960214247511077e+3,
                                 2.1213794301586595867e+4,
                                 3.9307895800092710610e+4,
                                 2.8729085735721942674e+4,
                                 5.2264952788528545610e+3};
  static constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                 3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[] = {1,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  static constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[] = {1,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  const uint64_t half = uint64_t{1} << 63, magnitude = bits & (half - 1);
  const double q = (static_cast<double>(half - 1 - magnitude) + 0.5) * 0x1p-64;  // from the middle
  double z;
  if (q <= 0.425) {
    z = q * ratio(0.180625 - q * q, a, b);
  } else {
    const double r = std::sqrt(-std::log((static_cast<double>(magnitude) + 0.5) * 0x1p-64));
    z = r <= 5 ? ratio(r - 1.6, c, d) : ratio(r - 5, e, f);
  }
  return bits & half ? z : -z;
}

// For generators that count: one word an element, two of float64, wherever the draw begins.
template <class T>
void normal_by_inversion(Generator& g, T* out, int64_t n, double mean, double std) {
  if constexpr (std::is_same_v<T, double>) {
    for_bits(g, n, 2, [=](int64_t begin, const uint32_t* bits, int64_t m) {
      for (int64_t i = 0; i < m; ++i) out[begin + i] = std::fma(normal_quantile(word64(bits, i)), std, mean);
    });
  } else {
    for_bits(g, n, 1, [=](int64_t begin, const uint32_t* bits, int64_t m) {
      float z[kChunk];
      random_table().normal_quantile(bits, z, m, static_cast<float>(mean), static_cast<float>(std));
      for (int64_t i = 0; i < m; ++i) out[begin + i] = narrowed<T>(z[i]);
    });
  }
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
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(v);
  else
    return narrowed<T>(static_cast<float>(v));
}

}  // namespace

void fill_uniform(Generator& g, DType dtype, void* out, int64_t n, double from, double to) {
  if (is_complex(dtype)) return fill_uniform(g, real_of(dtype), out, 2 * n, from, to);
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
    if (g.counts()) {
      normal_by_inversion(g, o, n, mean, std);
    } else if (n < 16 || strided) {
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
                  [=](double u, int64_t) { return std::fma(sigma, std::tan(kPi * (u - 0.5)), median); });
}

void fill_log_normal(Generator& g, DType dtype, void* out, int64_t n, double mean, double std) {
  with_floating("log_normal", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* o = static_cast<T*>(out);
    if (g.counts()) {
      normal_by_inversion(g, o, n, mean, std);
      for (int64_t i = 0; i < n; ++i) o[i] = narrowed<T>(std::exp(widened(o[i])));
    } else {
      for (int64_t i = 0; i < n; ++i) o[i] = narrowed<T>(std::exp(std::fma(g.normal(), std, mean)));
    }
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

// Geometric gaps between successes (Devroye, 1986) where few are expected, else transformed rejection with squeeze
// (Hoermann, 1993: BTRS), its constants in T as PyTorch's. `chance` is in (0, 1/2].
template <class T>
static double binomial(Generator& g, T count, T chance) {
  if (count * chance < 10) {
    const double log_failure = std::log1p(static_cast<double>(-chance));
    double trials = 0;
    for (double k = 0;; ++k) {
      trials += std::ceil(std::log(g.uniform()) / log_failure);
      if (!(trials <= count)) return k;
    }
  }
  const T root = std::sqrt(count * chance * (1 - chance));
  const T b = static_cast<T>(1.15 + 2.53 * root), a = static_cast<T>(-0.0873 + 0.0248 * b + 0.01 * chance);
  const T c = static_cast<T>(count * chance + 0.5), accepted = static_cast<T>(0.92 - 4.2 / b);
  const T alpha = static_cast<T>((2.83 + 5.1 / b) * root);
  const double n = count, mode = std::floor((count + 1) * chance), odds = chance / (1 - chance);
  const auto stirling_error = [](double k) {
    static constexpr double tail[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                      0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                      0.00925546218271273, 0.00833056343336287};
    if (k <= 9) return tail[static_cast<int>(k)];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
  };
  for (;;) {
    const double u = g.uniform() - 0.5, us = 0.5 - std::fabs(u);
    double v = g.uniform();
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= accepted) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) +
                         (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_error(mode) +
                         stirling_error(n - mode) - stirling_error(k) - stirling_error(n - k);
    if (v <= bound) return k;
  }
}

template <class T>
static void binomials(Generator& g, T* counts, const T* chances, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T count = counts[i], p = chances[i];
    if (std::isnan(count) || std::isnan(p)) {
      counts[i] = count + p;
    } else if (count <= 0 || p <= 0) {
      counts[i] = 0;
    } else if (p < 1) {
      counts[i] = static_cast<T>(p <= T(0.5) ? binomial(g, count, p) : count - binomial(g, count, 1 - p));
    }
  }
}

void fill_binomial(Generator& g, DType dtype, void* counts, const void* chances, int64_t n) {
  dtype == DType::Float64 ? binomials(g, static_cast<double*>(counts), static_cast<const double*>(chances), n)
                          : binomials(g, static_cast<float*>(counts), static_cast<const float*>(chances), n);
}

namespace {

// A gamma number is value * exp(log_scale): for small shapes that is below the smallest double.
struct Gamma {
  double value, log_scale;
};
constexpr double kThird = 1.0f / 3.0f;  // rounded as PyTorch's

// Squeeze and rejection (Marsaglia and Tsang, 2000), and a power of a uniform number that lifts shapes below 1.
Gamma standard_gamma(Generator& g, double shape) {
  if (!(shape >= 0)) return {NAN, 0};
  if (shape == 0 || std::isinf(shape)) return {shape, 0};
  double log_scale = 0;
  if (shape < 1) {
    log_scale = std::log1p(-g.uniform()) / shape;
    shape += 1;
  }
  const double d = shape - kThird, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, root;
    do {
      x = g.normal();
      root = 1 + c * x;
    } while (root <= 0);
    const double v = root * root * root, u = 1 - g.uniform(), square = x * x;
    if (u < 1 - 0.0331 * square * square || std::log(u) < 0.5 * square + d * (1 - v + std::log(v)))
      return {d * v, log_scale};
  }
}

// NaN stays.
template <class T>
T bounded(double v, T low, T high) {
  const T x = static_cast<T>(v);
  return x < low ? low : x > high ? high : x;
}

template <class T>
void gammas(Generator& g, T* out, const T* shapes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const Gamma drawn = standard_gamma(g, shapes[i]);
    const double x = drawn.log_scale == 0 ? drawn.value : drawn.value * std::exp(drawn.log_scale);
    out[i] = bounded(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::infinity());
  }
}

template <class T>
void dirichlets(Generator& g, T* out, const T* shapes, int64_t rows, int64_t k) {
  Scratch scratch(static_cast<size_t>(k) * sizeof(Gamma));
  Gamma* drawn = scratch.as<Gamma>();
  for (int64_t r = 0; r < rows; ++r, out += k, shapes += k) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      drawn[i] = standard_gamma(g, shapes[i]);
      largest = std::max(largest, drawn[i].log_scale);
    }
    for (int64_t i = 0; i < k; ++i) sum += drawn[i].value *= std::exp(drawn[i].log_scale - largest);
    const T below_one = std::nextafter(T(1), T(0));
    for (int64_t i = 0; i < k; ++i)
      out[i] = bounded(sum == 0 ? 1.0 / static_cast<double>(k) : drawn[i].value / sum, std::numeric_limits<T>::min(),
                       below_one);
  }
}

}  // namespace

void fill_gamma(Generator& g, DType dtype, void* out, const void* shapes, int64_t n) {
  dtype == DType::Float64 ? gammas(g, static_cast<double*>(out), static_cast<const double*>(shapes), n)
                          : gammas(g, static_cast<float*>(out), static_cast<const float*>(shapes), n);
}

void fill_dirichlet(Generator& g, DType dtype, void* out, const void* shapes, int64_t rows, int64_t k) {
  dtype == DType::Float64 ? dirichlets(g, static_cast<double*>(out), static_cast<const double*>(shapes), rows, k)
                          : dirichlets(g, static_cast<float*>(out), static_cast<const float*>(shapes), rows, k);
}

// Sums are in T, as PyTorch's: the intervals of the numbers depend on their roundings.
template <class T>
static void multinomial(Generator& g, int64_t* out, int64_t rows, int64_t samples, const T* weights, int64_t n) {
  if (!n) return;
  Scratch cumulative(static_cast<size_t>(n) * sizeof(T));
  T* c = cumulative.as<T>();
  for (int64_t r = 0; r < rows; ++r, weights += n) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) c[i] = sum += weights[i];
    for (int64_t i = 0; i < n; ++i) c[i] /= sum;
    c[n - 1] = 1;
    for (int64_t s = 0; s < samples; ++s) *out++ = std::lower_bound(c, c + n, g.uniform()) - c;
  }
}

void fill_multinomial(Generator& g, int64_t* out, int64_t rows, int64_t samples, DType dtype, const void* weights,
                      int64_t n) {
  dtype == DType::Float64 ? multinomial(g, out, rows, samples, static_cast<const double*>(weights), n)
                          : multinomial(g, out, rows, samples, static_cast<const float*>(weights), n);
}

}  // namespace rl
