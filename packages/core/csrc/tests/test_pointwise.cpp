// Pointwise loops, casts, copies and ranges against the C library in long double and plain loops, over edges, layouts
// and odd lengths.
#include "../kernels/pointwise.h"

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "../kernels/copy.h"
#include "../kernels/half.h"
#include "../kernels/isa.h"
#include "../kernels/iterator.h"
#include "../parallel.h"

namespace {

using rl::DType;
using rl::Loop;

int g_failures = 0;

#define CHECK(condition, ...)                                                \
  do {                                                                       \
    if (!(condition)) {                                                      \
      if (++g_failures <= 40) {                                              \
        std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
        std::fprintf(stderr, __VA_ARGS__);                                   \
        std::fprintf(stderr, "\n");                                          \
      }                                                                      \
    }                                                                        \
  } while (0)

uint64_t g_seed = 1;
uint64_t random_bits() {
  g_seed ^= g_seed << 13;
  g_seed ^= g_seed >> 7;
  g_seed ^= g_seed << 17;
  return g_seed;
}
double random_unit() { return static_cast<double>(random_bits() >> 11) * 0x1p-53; }

template <class T>
constexpr DType kType = DType::Bool;
template <>
constexpr DType kType<uint8_t> = DType::UInt8;
template <>
constexpr DType kType<int8_t> = DType::Int8;
template <>
constexpr DType kType<int16_t> = DType::Int16;
template <>
constexpr DType kType<int32_t> = DType::Int32;
template <>
constexpr DType kType<int64_t> = DType::Int64;
template <>
constexpr DType kType<float> = DType::Float32;
template <>
constexpr DType kType<double> = DType::Float64;
template <>
constexpr DType kType<std::complex<float>> = DType::Complex64;
template <>
constexpr DType kType<std::complex<double>> = DType::Complex128;

Loop loop_of(const char* op, DType dtype) {
  const Loop loop = rl::find_loop(op, dtype);
  if (loop == nullptr) {
    std::fprintf(stderr, "no loop %s %s\n", op, rl::name(dtype));
    std::abort();
  }
  return loop;
}

// Runs a loop over dense vectors.
template <class R, class... A>
std::vector<R> run(const char* op, DType dtype, const void* params, const std::vector<A>&... inputs) {
  const size_t sizes[] = {inputs.size()...};
  std::vector<R> out(sizes[0]);
  char* data[] = {reinterpret_cast<char*>(out.data()),
                  const_cast<char*>(reinterpret_cast<const char*>(inputs.data()))...};
  const int64_t strides[] = {sizeof(R), sizeof(A)...};
  loop_of(op, dtype)(data, strides, static_cast<int64_t>(out.size()), params);
  return out;
}

// ---- Accuracy ----

template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> v = {
      T(0),          L::denorm_min(), L::min() / 2, L::min(),     T(1e-10), L::epsilon(),  T(0.25),
      T(0.41421356), T(0.5),          T(1),         T(1.5),       T(2),     T(2.5),        T(3),
      T(10),         T(88.7),         T(88.8),      T(104),       T(709.7), T(709.9),      T(745.5),
      T(1e6),        T(1e10),         T(1e30),      L::max() / 2, L::max(), L::infinity(), L::quiet_NaN()};
  for (size_t i = 0, n = v.size(); i < n; ++i) v.push_back(-v[i]);
  for (int k = 1; k < 40; ++k) v.push_back(static_cast<T>(k * M_PI_2));
  return v;
}

// Values over [low, high], over all exponents, and the edges.
template <class T>
std::vector<T> samples(double low, double high) {
  std::vector<T> v = edges<T>();
  for (int i = 0; i < 20000; ++i) v.push_back(static_cast<T>(low + (high - low) * random_unit()));
  for (int i = 0; i < 20000; ++i) {
    const int range = sizeof(T) == 4 ? 120 : 1000;
    const T x =
        static_cast<T>(std::ldexp(1 + random_unit(), static_cast<int>((random_unit() - 0.5) * (i % 2 ? range : 20))));
    v.push_back(i % 3 ? x : -x);
  }
  return v;
}

template <class T>
double ulps(T got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  const T rounded = static_cast<T>(want);
  if (std::isinf(rounded) || std::isinf(got) || rounded == 0 || got == 0) {
    if (got == rounded && std::signbit(got) == std::signbit(rounded)) return 0;
  }
  if (std::isinf(got) || std::isnan(got)) return 1e9;
  int exponent;
  std::frexp(std::fabs(rounded), &exponent);
  const int least = std::numeric_limits<T>::min_exponent;
  const long double ulp = std::ldexp(1.0L, (exponent < least ? least : exponent) - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / ulp);
}

using Reference1 = long double (*)(long double);
using Reference2 = long double (*)(long double, long double);

bool g_report = false;

template <class T>
void check_unary(const char* op, Reference1 want, double low, double high, double allowed = 2) {
  const std::vector<T> x = samples<T>(low, high);
  const std::vector<T> y = run<T>(op, kType<T>, nullptr, x);
  double worst = 0;
  T at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], want(x[i]));
    if (error > worst) worst = error, at = x[i];
    CHECK(error <= allowed, "%s %s(%.17g) = %.17g, not %.17Lg: %g ulp", op, rl::name(kType<T>),
          static_cast<double>(x[i]), static_cast<double>(y[i]), want(x[i]), error);
  }
  if (g_report) std::printf("%-12s %s %.3f ulp at %.9g\n", op, rl::name(kType<T>), worst, static_cast<double>(at));
}

template <class T>
void check_binary(const char* op, Reference2 want, double low, double high, double allowed = 2) {
  std::vector<T> x, y;
  const std::vector<T> edge = edges<T>();
  for (T a : edge) {
    for (T b : edge) x.push_back(a), y.push_back(b);
  }
  const std::vector<T> more = samples<T>(low, high), other = samples<T>(low, high);
  for (size_t i = edge.size(); i < more.size(); ++i) x.push_back(more[i]), y.push_back(other[i]);
  const std::vector<T> z = run<T>(op, kType<T>, nullptr, x, y);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(z[i], want(x[i], y[i]));
    if (error > worst) worst = error, at = i;
    CHECK(error <= allowed, "%s %s(%.17g, %.17g) = %.17g, not %.17Lg: %g ulp", op, rl::name(kType<T>),
          static_cast<double>(x[i]), static_cast<double>(y[i]), static_cast<double>(z[i]), want(x[i], y[i]), error);
  }
  if (g_report) {
    std::printf("%-12s %s %.3f ulp at %.9g, %.9g\n", op, rl::name(kType<T>), worst, static_cast<double>(x[at]),
                static_cast<double>(y[at]));
  }
}

long double python_mod(long double a, long double b) {
  const long double m = std::fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}

template <class T>
void check_math() {
  using L = long double;
  check_unary<T>("exp", [](L x) { return std::exp(x); }, -110, 95);
  check_unary<T>("exp2", [](L x) { return std::exp2(x); }, -160, 130);
  check_unary<T>("expm1", [](L x) { return std::expm1(x); }, -3, 3);
  check_unary<T>("log", [](L x) { return std::log(x); }, 0, 3);
  check_unary<T>("log2", [](L x) { return std::log2(x); }, 0, 3);
  check_unary<T>("log10", [](L x) { return std::log10(x); }, 0, 3);
  check_unary<T>("log1p", [](L x) { return std::log1p(x); }, -1, 2);
  check_unary<T>("sin", [](L x) { return std::sin(x); }, -100, 100);
  check_unary<T>("cos", [](L x) { return std::cos(x); }, -100, 100);
  check_unary<T>("tan", [](L x) { return std::tan(x); }, -100, 100);
  check_unary<T>("asin", [](L x) { return std::asin(x); }, -1, 1);
  check_unary<T>("acos", [](L x) { return std::acos(x); }, -1, 1);
  check_unary<T>("atan", [](L x) { return std::atan(x); }, -4, 4);
  check_unary<T>("sinh", [](L x) { return std::sinh(x); }, -4, 4);
  check_unary<T>("cosh", [](L x) { return std::cosh(x); }, -4, 4);
  check_unary<T>("tanh", [](L x) { return std::tanh(x); }, -4, 4);
  check_unary<T>("asinh", [](L x) { return std::asinh(x); }, -4, 4);
  check_unary<T>("acosh", [](L x) { return std::acosh(x); }, 1, 4);
  check_unary<T>("atanh", [](L x) { return std::atanh(x); }, -1, 1);
  check_unary<T>("sigmoid", [](L x) { return 1 / (1 + std::exp(-x)); }, -20, 20);
  check_unary<T>("erf", [](L x) { return std::erf(x); }, -6, 6);
  check_unary<T>("sqrt", [](L x) { return std::sqrt(x); }, 0, 10, 0.5);
  check_unary<T>("rsqrt", [](L x) { return 1 / std::sqrt(x); }, 0, 10);
  check_unary<T>("reciprocal", [](L x) { return 1 / x; }, 0, 10, 0.5);
  check_unary<T>("floor", [](L x) { return std::floor(x); }, -10, 10, 0);
  check_unary<T>("ceil", [](L x) { return std::ceil(x); }, -10, 10, 0);
  check_unary<T>("round", [](L x) { return std::nearbyint(x); }, -10, 10, 0);
  check_unary<T>("trunc", [](L x) { return std::trunc(x); }, -10, 10, 0);
  check_unary<T>("neg", [](L x) { return -x; }, -10, 10, 0);
  check_unary<T>("abs", [](L x) { return std::fabs(x); }, -10, 10, 0);
  check_unary<T>("square", [](L x) { return x * x; }, -10, 10, 0.5);

  check_binary<T>("pow", [](L x, L y) { return std::pow(x, y); }, 0, 20);
  check_binary<T>("atan2", [](L y, L x) { return std::atan2(y, x); }, -5, 5);
  check_binary<T>("hypot", [](L x, L y) { return std::hypot(x, y); }, -5, 5);
  check_binary<T>("add", [](L x, L y) { return x + y; }, -5, 5, 0.51);
  check_binary<T>("sub", [](L x, L y) { return x - y; }, -5, 5, 0.51);
  check_binary<T>("mul", [](L x, L y) { return x * y; }, -5, 5, 0.51);
  check_binary<T>("div", [](L x, L y) { return x / y; }, -5, 5, 0.51);
  check_binary<T>("fmod", [](L x, L y) { return std::fmod(x, y); }, -50, 50, 0);
  check_binary<T>("remainder", python_mod, -50, 50, 1);
  check_binary<T>("fmax", [](L x, L y) { return std::isnan(y) || x >= y ? x : y; }, -5, 5, 0);
  check_binary<T>("fmin", [](L x, L y) { return std::isnan(y) || x <= y ? x : y; }, -5, 5, 0);
  check_binary<T>("maximum", [](L x, L y) { return std::isnan(x) || x > y ? x : y; }, -5, 5, 0);
  check_binary<T>("minimum", [](L x, L y) { return std::isnan(x) || x < y ? x : y; }, -5, 5, 0);
  check_binary<T>("copysign", [](L x, L y) { return std::copysign(x, y); }, -5, 5, 0);
}

}  // namespace

int main() {
  g_report = std::getenv("REPORT") != nullptr;
  check_math<float>();
  check_math<double>();
  if (g_failures != 0) std::fprintf(stderr, "%d failures\n", g_failures);
  return g_failures != 0;
}
