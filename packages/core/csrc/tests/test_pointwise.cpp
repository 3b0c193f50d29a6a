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
#include "../kernels/iterator.h"
#include "../parallel.h"
#include "rushlight/half.h"
#include "rushlight/isa.h"

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
  check_unary<T>("tanh", [](L x) { return std::tanh(x); }, -4, 4, 2.5);
  check_unary<T>("asinh", [](L x) { return std::asinh(x); }, -4, 4);
  check_unary<T>("acosh", [](L x) { return std::acosh(x); }, 1, 4);
  check_unary<T>("atanh", [](L x) { return std::atanh(x); }, -1, 1);
  check_unary<T>("sigmoid", [](L x) { return 1 / (1 + std::exp(-x)); }, -20, 20, 2.5);
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

// ---- Layouts: an element has the same bits whatever the strides and the length ----

// Copies `dense` (elements of `size` bytes) to a layout with byte stride `stride`, negative ones from the end.
struct Strided {
  std::vector<char> memory;
  char* start;
  int64_t stride;
  Strided(const char* dense, int64_t n, int64_t size, int64_t step) : stride(step) {
    const int64_t extent = (step < 0 ? -step : step) * (n > 0 ? n - 1 : 0) + size;
    memory.resize(static_cast<size_t>(extent));
    start = memory.data() + (step < 0 ? -step * (n - 1) : 0);
    for (int64_t i = 0; i < n; ++i) std::memcpy(start + i * step, dense + (step == 0 ? 0 : i * size), size);
  }
};

void check_layouts(const char* op, DType in_type, DType out_type, int inputs, const void* params,
                   const std::vector<double>& values, bool first_is_bool = false) {
  const Loop loop = loop_of(op, in_type);
  constexpr int64_t kMost = 1100;
  const int64_t in_size = rl::itemsize(in_type), out_size = rl::itemsize(out_type);
  std::vector<char> dense[3];
  for (int k = 0; k < inputs; ++k) {
    dense[k].resize(kMost * 16);
    const bool flag = first_is_bool && k == 0;
    std::vector<double> source(kMost);
    for (int64_t i = 0; i < kMost; ++i) source[i] = flag ? i % 3 == 0 : values[(i * (k + 3) + k) % values.size()];
    char* const data[] = {dense[k].data(), reinterpret_cast<char*>(source.data())};
    const int64_t strides[] = {flag ? 1 : in_size, 8};
    rl::find_cast(DType::Float64, flag ? DType::Bool : in_type)(data, strides, kMost, nullptr);
  }
  const auto size_of = [&](int k) { return first_is_bool && k == 0 ? 1 : in_size; };
  // Element by element is the reference.
  std::vector<char> want(kMost * out_size), got(kMost * out_size);
  for (unsigned broadcast = 0; broadcast < (1u << inputs); ++broadcast) {
    for (int64_t i = 0; i < kMost; ++i) {
      char* data[4] = {want.data() + i * out_size};
      int64_t strides[4] = {out_size};
      for (int k = 0; k < inputs; ++k) {
        data[k + 1] = dense[k].data() + (broadcast >> k & 1 ? 0 : i * size_of(k));
        strides[k + 1] = size_of(k);
      }
      loop(data, strides, 1, params);
    }
    for (int64_t n :
         {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 256, 257, 511, 513, 1023, 1025}) {
      for (int64_t step : {1, 2, 3, -1, -2}) {
        for (int64_t out_step : {1, 2, -1}) {
          if (n > 300 && step == 3) continue;
          std::vector<Strided> in;
          Strided out(got.data(), n, out_size, out_step * out_size);
          char* data[4] = {out.start};
          int64_t strides[4] = {out.stride};
          for (int k = 0; k < inputs; ++k)
            in.emplace_back(dense[k].data(), n, size_of(k), broadcast >> k & 1 ? 0 : step * size_of(k));
          for (int k = 0; k < inputs; ++k) data[k + 1] = in[k].start, strides[k + 1] = in[k].stride;
          loop(data, strides, n, params);
          for (int64_t i = 0; i < n; ++i) {
            const bool same = std::memcmp(out.start + i * out.stride, want.data() + i * out_size, out_size) == 0;
            CHECK(same, "%s %s n=%ld step=%ld out=%ld broadcast=%u element %ld", op, rl::name(in_type), n, step,
                  out_step, broadcast, i);
            if (!same) return;
          }
          if (n == 0 || out_step != 1 || step != 1 || broadcast != 0 || in_size != out_size || first_is_bool) continue;
          // In place.
          data[0] = data[1];
          strides[0] = strides[1];
          loop(data, strides, n, params);
          CHECK(std::memcmp(data[0], want.data(), n * out_size) == 0, "%s %s in place, n=%ld", op, rl::name(in_type),
                n);
        }
      }
    }
  }
}

void check_all_layouts() {
  std::vector<double> values = {0, -0.0, 1, -1, 0.5, 2, 1e-40, 3e38, -88.5, 100, 1e7, INFINITY, -INFINITY, NAN};
  for (int i = 0; i < 300; ++i) values.push_back((random_unit() - 0.5) * 8);
  const std::vector<double> whole = {0, 1, 2, 3, 5, 7, 100, 11, 4, 1};
  for (DType d : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
    for (const char* op : {"exp", "log", "sin", "tanh", "erf", "gelu", "neg", "sqrt", "floor", "relu"}) {
      check_layouts(op, d, d, 1, nullptr, values);
    }
    for (const char* op : {"add", "mul", "div", "pow", "fmod", "div_floor", "atan2", "maximum"}) {
      check_layouts(op, d, d, 2, nullptr, values);
    }
    for (const char* op : {"lt", "eq", "ge"}) check_layouts(op, d, DType::Bool, 2, nullptr, values);
    check_layouts("isnan", d, DType::Bool, 1, nullptr, values);
    check_layouts("where", d, d, 3, nullptr, values, true);
    check_layouts("lerp", d, d, 3, nullptr, values);
  }
  for (DType d : {DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
    for (const char* op : {"add", "mul", "div_floor", "pow", "maximum", "bitwise_xor"})
      check_layouts(op, d, d, 2, nullptr, whole);
    check_layouts("lt", d, DType::Bool, 2, nullptr, whole);
    check_layouts("where", d, d, 3, nullptr, whole, true);
  }
  for (DType d : {DType::Complex64, DType::Complex128}) {
    for (const char* op : {"add", "mul", "div"}) check_layouts(op, d, d, 2, nullptr, whole);
    check_layouts("exp", d, d, 1, nullptr, whole);
    check_layouts("abs", d, rl::real_of(d), 1, nullptr, whole);
  }
  check_layouts("logical_and", DType::Bool, DType::Bool, 2, nullptr, whole);
}

// ---- Integers ----

template <class T>
void check_integers() {
  using W = __int128;
  std::vector<T> a, b;
  using L = std::numeric_limits<T>;
  std::vector<T> v = {0,
                      1,
                      2,
                      3,
                      7,
                      31,
                      63,
                      64,
                      100,
                      L::max(),
                      static_cast<T>(L::max() - 1),
                      L::min(),
                      static_cast<T>(L::min() + 1),
                      static_cast<T>(-1),
                      static_cast<T>(-2),
                      static_cast<T>(-7)};
  for (int i = 0; i < 40; ++i) v.push_back(static_cast<T>(random_bits()));
  for (T x : v) {
    for (T y : v) a.push_back(x), b.push_back(y);
  }
  const DType d = kType<T>;
  int zero = 0;
  const auto sum = run<T>("add", d, nullptr, a, b), difference = run<T>("sub", d, nullptr, a, b),
             product = run<T>("mul", d, nullptr, a, b);
  const auto truncated = run<T>("div_trunc", d, &zero, a, b);
  CHECK(zero == 1, "%s: a zero divisor is not reported", rl::name(d));
  const auto floored = run<T>("div_floor", d, &zero, a, b), mod = run<T>("remainder", d, &zero, a, b),
             rem = run<T>("fmod", d, nullptr, a, b);
  const auto left = run<T>("bitwise_left_shift", d, nullptr, a, b),
             right = run<T>("bitwise_right_shift", d, nullptr, a, b);
  const auto power = run<T>("pow", d, nullptr, a, b), highest = run<T>("maximum", d, nullptr, a, b);
  const T alpha = 3;
  const auto scaled = run<T>("sub", d, &alpha, a, b);
  const auto less = run<uint8_t>("lt", d, nullptr, a, b), at_least = run<uint8_t>("ge", d, nullptr, a, b);
  const auto size = run<T>("abs", d, nullptr, a), minus = run<T>("neg", d, nullptr, a);
  for (size_t i = 0; i < a.size(); ++i) {
    const W x = a[i], y = b[i];
    const auto is = [&](const char* op, T got, W want) {
      CHECK(got == static_cast<T>(want), "%s %s(%lld, %lld) = %lld", op, rl::name(d), static_cast<long long>(a[i]),
            static_cast<long long>(b[i]), static_cast<long long>(got));
    };
    is("add", sum[i], x + y);
    is("sub", difference[i], x - y);
    is("mul", product[i], x * y);
    is("sub alpha", scaled[i], x - 3 * y);
    is("abs", size[i], x < 0 ? -x : x);
    is("neg", minus[i], -x);
    is("maximum", highest[i], x > y ? x : y);
    CHECK(less[i] == (x < y) && at_least[i] == (x >= y), "comparison %s", rl::name(d));
    const W q = y == 0 ? 0 : x / y, r = y == 0 ? 0 : x % y;
    const bool down = r != 0 && (r < 0) != (y < 0);
    is("div_trunc", truncated[i], q);
    is("div_floor", floored[i], q - down);
    is("fmod", rem[i], r);
    is("remainder", mod[i], down ? r + y : r);
    const int width = sizeof(T) * 8;
    is("left shift", left[i], y < 0 || y >= width ? 0 : x * (W(1) << static_cast<int>(y)));
    is("right shift", right[i], y < 0 || y >= width ? (x < 0 ? -1 : 0) : x >> static_cast<int>(y));
    W p = 1;
    if (y >= 0 && y < 200) {
      for (W k = 0; k < y; ++k) p = static_cast<T>(p * x);
      is("pow", power[i], p);
    } else if (y < 0) {
      is("pow", power[i], x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0);
    }
  }
  const std::vector<T> ones(10, 1);
  zero = 0;
  run<T>("div_floor", d, &zero, ones, ones);
  CHECK(zero == 0, "%s: the padding of a vector counts as a zero divisor", rl::name(d));
}

// ---- Casts ----

template <class T>
T cast_one(double x) {
  const std::vector<double> in(1, x);
  T out;
  char* const data[] = {reinterpret_cast<char*>(&out), const_cast<char*>(reinterpret_cast<const char*>(in.data()))};
  const int64_t strides[] = {sizeof(T), 8};
  rl::find_cast(DType::Float64, kType<T>)(data, strides, 1, nullptr);
  return out;
}

template <class To, class From>
void check_saturation() {
  using L = std::numeric_limits<To>;
  const long double low = L::min(), high = L::max();
  std::vector<From> in = {0,
                          1,
                          -1,
                          From(0.99),
                          From(-0.99),
                          From(1.5),
                          From(-1.5),
                          100,
                          -100,
                          127,
                          128,
                          255,
                          256,
                          32767,
                          32768,
                          From(2147483647.0),
                          From(2147483648.0),
                          From(-2147483648.0),
                          From(9.2233720368547748e18),
                          From(9.2233720368547758e18),
                          From(-9.2233720368547758e18),
                          From(1e30),
                          From(-1e30),
                          INFINITY,
                          -INFINITY,
                          NAN};
  while (in.size() < 150) in.push_back(in[in.size() % 26]);
  for (int64_t n : {1, 3, 17, 64, 150}) {
    std::vector<To> out(n);
    char* const data[] = {reinterpret_cast<char*>(out.data()), reinterpret_cast<char*>(in.data())};
    const int64_t strides[] = {sizeof(To), sizeof(From)};
    rl::find_cast(kType<From>, kType<To>)(data, strides, n, nullptr);
    for (int64_t i = 0; i < n; ++i) {
      const long double x = in[i];
      const To want = std::isnan(x) ? To(0) : x <= low ? L::min() : x >= high ? L::max() : static_cast<To>(x);
      CHECK(out[i] == want, "cast %s -> %s of %Lg gives %lld", rl::name(kType<From>), rl::name(kType<To>), x,
            static_cast<long long>(out[i]));
    }
  }
}

void check_casts() {
  for (int f = 0; f < rl::kNumDTypes; ++f) {
    for (int t = 0; t < rl::kNumDTypes; ++t) {
      const DType from = static_cast<DType>(f), to = static_cast<DType>(t);
      CHECK(rl::find_cast(from, to) != nullptr, "no cast %s -> %s", rl::name(from), rl::name(to));
      // Small whole numbers survive every way.
      std::vector<double> source(77), back(77);
      std::vector<char> a(77 * 16), b(77 * 16);
      for (int i = 0; i < 77; ++i) source[i] = i;
      const auto convert = [](DType s, void* in, DType d, void* out) {
        char* const data[] = {static_cast<char*>(out), static_cast<char*>(in)};
        const int64_t strides[] = {rl::itemsize(d), rl::itemsize(s)};
        rl::find_cast(s, d)(data, strides, 77, nullptr);
      };
      convert(DType::Float64, source.data(), from, a.data());
      convert(from, a.data(), to, b.data());
      convert(to, b.data(), DType::Float64, back.data());
      for (int i = 0; i < 77; ++i) {
        const double want = from == DType::Bool || to == DType::Bool ? i != 0 : i;
        CHECK(back[i] == want, "cast %s -> %s: %d becomes %g", rl::name(from), rl::name(to), i, back[i]);
      }
    }
  }
  check_saturation<uint8_t, float>(), check_saturation<uint8_t, double>();
  check_saturation<int8_t, float>(), check_saturation<int8_t, double>();
  check_saturation<int16_t, float>(), check_saturation<int16_t, double>();
  check_saturation<int32_t, float>(), check_saturation<int32_t, double>();
  check_saturation<int64_t, float>(), check_saturation<int64_t, double>();
  CHECK(cast_one<uint8_t>(NAN) == 0, "NaN to bool is true, to an integer 0");

  // Every float16 value through float and back; rounding against the next values by hand.
  std::vector<uint16_t> halves(65536), again(65536);
  std::vector<float> floats(65536);
  for (int i = 0; i < 65536; ++i) halves[i] = static_cast<uint16_t>(i);
  for (DType half : {DType::Float16, DType::BFloat16}) {
    char* const widen[] = {reinterpret_cast<char*>(floats.data()), reinterpret_cast<char*>(halves.data())};
    const int64_t widen_strides[] = {4, 2}, narrow_strides[] = {2, 4};
    rl::find_cast(half, DType::Float32)(widen, widen_strides, 65536, nullptr);
    char* const narrow[] = {reinterpret_cast<char*>(again.data()), reinterpret_cast<char*>(floats.data())};
    rl::find_cast(DType::Float32, half)(narrow, narrow_strides, 65536, nullptr);
    const int mantissa = half == DType::Float16 ? 10 : 7, bias = half == DType::Float16 ? 15 : 127;
    for (int i = 0; i < 65536; ++i) {
      const int e = (i & 0x7fff) >> mantissa, m = i & ((1 << mantissa) - 1);
      const bool special = e == 2 * bias + 1;
      const double want =
          special ? (m ? NAN : INFINITY) : std::ldexp(e ? m + (1 << mantissa) : m, (e ? e : 1) - bias - mantissa);
      CHECK(std::isnan(want) ? std::isnan(floats[i]) : floats[i] == (i & 0x8000 ? -want : want), "%s %04x widens to %g",
            rl::name(half), i, floats[i]);
      CHECK(std::isnan(want) || again[i] == i, "%s %04x comes back as %04x", rl::name(half), i, again[i]);
    }
    // Halfway between two neighbours goes to the even one, a little more goes up.
    std::vector<float> middle;
    for (int i = 0; i < 0x7000; ++i) {
      const float x = floats[i], y = floats[i + 1];
      middle.push_back(static_cast<float>((static_cast<double>(x) + y) / 2));
      middle.push_back(std::nextafter(middle[middle.size() - 1], INFINITY));
    }
    std::vector<uint16_t> rounded(middle.size());
    char* const data[] = {reinterpret_cast<char*>(rounded.data()), reinterpret_cast<char*>(middle.data())};
    rl::find_cast(DType::Float32, half)(data, narrow_strides, static_cast<int64_t>(middle.size()), nullptr);
    for (int i = 0; i < 0x7000; ++i) {
      CHECK(rounded[2 * i] == i + (i & 1), "%s: the middle above %04x rounds to %04x", rl::name(half), i,
            rounded[2 * i]);
      CHECK(rounded[2 * i + 1] == i + 1, "%s: above the middle of %04x rounds to %04x", rl::name(half), i,
            rounded[2 * i + 1]);
    }
  }
}

// ---- n dimensions ----

void check_iterator() {
  for (int trial = 0; trial < 400; ++trial) {
    const int ndim = static_cast<int>(random_bits() % 5);
    int64_t shape[5], strides[3][5], total = 1;
    for (int d = 0; d < ndim; ++d)
      shape[d] = static_cast<int64_t>(random_bits() % (trial % 5 == 0 ? 60 : 9)), total *= shape[d];
    std::vector<float> memory[3];
    float* start[3];
    for (int k = 0; k < 3; ++k) {
      // A random order of dimensions in memory, some reversed, some broadcast (not in the output).
      int order[5] = {0, 1, 2, 3, 4};
      for (int d = ndim - 1; d > 0; --d) std::swap(order[d], order[random_bits() % (d + 1)]);
      int64_t step = 1 + random_bits() % 2, offset = 0;
      for (int d = 0; d < ndim; ++d) {
        const bool broadcast = k > 0 && random_bits() % 4 == 0, reversed = random_bits() % 4 == 0;
        strides[k][order[d]] = broadcast ? 0 : reversed ? -step * 4 : step * 4;
        if (!broadcast && reversed && shape[order[d]] > 0) offset += step * (shape[order[d]] - 1);
        if (!broadcast) step *= shape[order[d]] + (random_bits() % 3 == 0);
      }
      memory[k].resize(static_cast<size_t>(step + offset + 1));
      for (float& x : memory[k]) x = static_cast<float>(random_bits() % 1000);
      start[k] = memory[k].data() + offset;
    }
    char* const data[] = {reinterpret_cast<char*>(start[0]), reinterpret_cast<char*>(start[1]),
                          reinterpret_cast<char*>(start[2])};
    const int64_t* const steps[] = {strides[0], strides[1], strides[2]};
    const int64_t sizes[] = {4, 4, 4};
    rl::run_pointwise(loop_of("add", DType::Float32), ndim, shape, 3, data, steps, nullptr,
                      trial % 2 ? sizes : nullptr);
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i, at[3] = {0, 0, 0};
      for (int d = ndim - 1; d >= 0; --d) {
        for (int k = 0; k < 3; ++k) at[k] += rest % shape[d] * strides[k][d] / 4;
        rest /= shape[d];
      }
      CHECK(start[0][at[0]] == start[1][at[1]] + start[2][at[2]], "iterator, trial %d, element %ld", trial, i);
    }
    // The same layouts copied, filled, and converted.
    rl::copy_strided(DType::Float32, data[0], strides[0], DType::Float32, data[1], strides[1], ndim, shape);
    std::vector<int16_t> converted(static_cast<size_t>(total) + 1);
    int64_t dense[5], step = 2;
    for (int d = ndim - 1; d >= 0; --d) dense[d] = step, step *= shape[d];
    rl::copy_strided(DType::Int16, reinterpret_cast<char*>(converted.data()), dense, DType::Float32, data[0],
                     strides[0], ndim, shape);
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i, at[2] = {0, 0};
      for (int d = ndim - 1; d >= 0; --d) {
        for (int k = 0; k < 2; ++k) at[k] += rest % shape[d] * strides[k][d] / 4;
        rest /= shape[d];
      }
      CHECK(start[0][at[0]] == start[1][at[1]], "copy, trial %d, element %ld", trial, i);
      CHECK(converted[i] == start[0][at[0]], "converting copy, trial %d, element %ld", trial, i);
    }
  }
  // Large enough for threads and tiles.
  for (int64_t size : {1, 2, 4, 8, 16}) {
    const DType type = size == 1   ? DType::UInt8
                       : size == 2 ? DType::Int16
                       : size == 4 ? DType::Int32
                       : size == 8 ? DType::Int64
                                   : DType::Complex128;
    const int64_t rows = 333, columns = 517, shape[] = {rows, columns}, out[] = {columns * size, size},
                  in[] = {size, rows * size};
    std::vector<char> source(rows * columns * size), target(rows * columns * size);
    for (char& c : source) c = static_cast<char>(random_bits());
    rl::copy_strided(type, target.data(), out, type, source.data(), in, 2, shape);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        CHECK(std::memcmp(&target[(i * columns + j) * size], &source[(j * rows + i) * size], size) == 0,
              "transposed copy of %ld bytes", size);
      }
    }
    rl::fill_strided(target.data(), static_cast<int>(size), 2, shape, in, source.data());
    for (int64_t i = 0; i < rows * columns; ++i)
      CHECK(std::memcmp(&target[i * size], source.data(), size) == 0, "fill of %ld bytes", size);
  }
  const int64_t many = 1000003, step = 4;
  std::vector<float> x(many), y(many);
  for (int64_t i = 0; i < many; ++i) x[i] = static_cast<float>(i % 7919) * 0.01f;
  char* const data[] = {reinterpret_cast<char*>(y.data()), reinterpret_cast<char*>(x.data())};
  const int64_t* const steps[] = {&step, &step};
  rl::run_pointwise(loop_of("exp", DType::Float32), 1, &many, 2, data, steps, nullptr);
  const std::vector<float> want = run<float>("exp", DType::Float32, nullptr, x);
  CHECK(y == want, "threads change the result of exp");
}

// ---- Ranges ----

void check_ranges() {
  std::vector<double> x(1001);
  rl::fill_linspace(DType::Float64, reinterpret_cast<char*>(x.data()), 1001, -3, 7);
  CHECK(x[0] == -3 && x[1000] == 7 && x[500] == 2, "linspace ends");
  for (int i = 0; i <= 1000; ++i) CHECK(std::fabs(x[i] - (-3 + i * 0.01)) < 1e-14, "linspace[%d] = %.17g", i, x[i]);
  rl::fill_arange(DType::Float64, reinterpret_cast<char*>(x.data()), 1001, 0.5, 0.25);
  for (int i = 0; i <= 1000; ++i) CHECK(x[i] == 0.5 + i * 0.25, "arange[%d] = %.17g", i, x[i]);
  std::vector<int64_t> k(100001);
  rl::fill_arange(DType::Int64, reinterpret_cast<char*>(k.data()), 100001, int64_t{-5}, int64_t{3});
  for (int i = 0; i <= 100000; ++i) CHECK(k[i] == -5 + 3 * i, "integer arange[%d]", i);
  std::vector<int32_t> m(7);
  rl::fill_linspace(DType::Int32, reinterpret_cast<char*>(m.data()), 7, -3, 10);
  const std::vector<int32_t> want = {-3, 0, 1, 3, 5, 7, 10};
  CHECK(m == want, "integer linspace");
}

// ---- Ops with parameters, special cases ----

template <class T>
void check_special() {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const DType d = kType<T>;
  const auto same = [&](const char* what, const std::vector<T>& got, const std::vector<T>& want) {
    for (size_t i = 0; i < want.size(); ++i) {
      const bool equal = std::isnan(want[i]) ? std::isnan(got[i])
                                             : std::fabs(got[i] - want[i]) <=
                                                       4 * std::numeric_limits<T>::epsilon() * std::fabs(want[i]) ||
                                                   got[i] == want[i];
      CHECK(equal, "%s %s [%zu] = %.9g, not %.9g", what, rl::name(d), i, static_cast<double>(got[i]),
            static_cast<double>(want[i]));
    }
  };
  const std::vector<T> x = {nan, inf, -inf, 0, T(-0.0), 1, -1, T(2.5), T(-3.5)};
  const T limits[] = {-1, 1}, no_limit[] = {-inf, inf}, nan_limit[] = {nan, 1}, crossed[] = {2, 1};
  same("clamp", run<T>("clamp", d, limits, x), {nan, 1, -1, 0, 0, 1, -1, 1, -1});
  same("clamp open", run<T>("clamp", d, no_limit, x), x);
  same("clamp nan", run<T>("clamp", d, nan_limit, x), std::vector<T>(9, nan));
  same("clamp crossed", run<T>("clamp", d, crossed, x), {nan, 1, 1, 1, 1, 1, 1, 1, 1});
  same("relu", run<T>("relu", d, nullptr, x), {nan, inf, 0, 0, 0, 1, 0, T(2.5), 0});
  const T threshold[] = {0, 7};
  same("threshold", run<T>("threshold", d, threshold, x), {nan, inf, 7, 7, 7, 1, 7, T(2.5), 7});
  const T slope[] = {T(0.5)};
  same("leaky_relu", run<T>("leaky_relu", d, slope, x), {nan, inf, -inf, 0, 0, 1, T(-0.5), T(2.5), T(-1.75)});
  const T fills[] = {9, 8, -8};
  same("nan_to_num", run<T>("nan_to_num", d, fills, x), {9, 8, -8, 0, 0, 1, -1, T(2.5), T(-3.5)});
  same("sign", run<T>("sign", d, nullptr, x), {0, 1, -1, 0, 0, 1, -1, 1, -1});
  same("frac", run<T>("frac", d, nullptr, x), {nan, nan, nan, 0, 0, 0, 0, T(0.5), T(-0.5)});
  same("hardswish", run<T>("hardswish", d, nullptr, x),
       {nan, inf, 0, 0, 0, T(4) / 6, T(-2) / 6, T(2.5) * T(5.5) / 6, 0});
  const T elu[] = {1, 1, 1};
  same("elu", run<T>("elu", d, elu, x), {nan, inf, -1, 0, 0, 1, std::expm1(T(-1)), T(2.5), std::expm1(T(-3.5))});
  const T soft[] = {1, 20};
  same("softplus", run<T>("softplus", d, soft, x),
       {nan, inf, 0, std::log(T(2)), std::log(T(2)), std::log1p(std::exp(T(1))), std::log1p(std::exp(T(-1))),
        std::log1p(std::exp(T(2.5))), std::log1p(std::exp(T(-3.5)))});
  for (T e : {T(2), T(3), T(0.5), T(-0.5), T(-1), T(-2), T(1), T(0), T(2.5)}) {
    std::vector<T> want;
    for (T v : x) want.push_back(e == T(0.5) ? std::sqrt(v) : e == T(-0.5) ? 1 / std::sqrt(v) : std::pow(v, e));
    same("pow_scalar", run<T>("pow_scalar", d, &e, x), want);
    want.clear();
    for (T v : x) want.push_back(std::pow(e, v));
    same("rpow_scalar", run<T>("rpow_scalar", d, &e, x), want);
  }
  const std::vector<T> a = {5, -5, 5, -5, inf, 5, -5, nan, 0, 5, -5, 1, -1},
                       b = {3, 3, -3, -3, 3, inf, inf, 3, 3, 0, 0, inf, -inf};
  same("div_floor", run<T>("div_floor", d, nullptr, a, b), {1, -2, -2, 1, nan, 0, -1, nan, 0, inf, -inf, 0, 0});
  same("logaddexp",
       run<T>("logaddexp", d, nullptr, std::vector<T>{inf, -inf, nan, inf, 0}, std::vector<T>{inf, -inf, 1, -inf, 0}),
       {inf, -inf, nan, inf, std::log(T(2))});
  same("xlogy", run<T>("xlogy", d, nullptr, std::vector<T>{0, 0, 2, 1}, std::vector<T>{0, nan, 3, 0}),
       {0, nan, 2 * std::log(T(3)), -inf});
  const int64_t one = 1, minus_one = -1;
  same("round_decimals", run<T>("round_decimals", d, &one, std::vector<T>{T(1.25), T(-0.06)}), {T(1.2), T(-0.1)});
  same("round_decimals", run<T>("round_decimals", d, &minus_one, std::vector<T>{125, 135}), {120, 140});
}

template <class T>
void check_complex() {
  using C = std::complex<T>;
  const DType d = kType<C>;
  std::vector<C> a, b;
  for (int i = 0; i < 200; ++i) {
    a.emplace_back(static_cast<T>(random_unit() * 4 - 2), static_cast<T>(random_unit() * 4 - 2));
    b.emplace_back(static_cast<T>(random_unit() * 4 - 2), static_cast<T>(random_unit() * 4 - 2));
  }
  const auto near = [&](const char* op, const std::vector<C>& got, const std::function<C(C, C)>& want) {
    for (size_t i = 0; i < a.size(); ++i) {
      const C w = want(a[i], b[i]);
      CHECK(std::abs(got[i] - w) <= 40 * std::numeric_limits<T>::epsilon() * (1 + std::abs(w)), "%s %s [%zu]", op,
            rl::name(d), i);
    }
  };
  near("add", run<C>("add", d, nullptr, a, b), [](C x, C y) { return x + y; });
  near("mul", run<C>("mul", d, nullptr, a, b), [](C x, C y) { return x * y; });
  near("div", run<C>("div", d, nullptr, a, b), [](C x, C y) { return x / y; });
  near("pow", run<C>("pow", d, nullptr, a, b), [](C x, C y) { return std::pow(x, y); });
  near("exp", run<C>("exp", d, nullptr, a), [](C x, C) { return std::exp(x); });
  near("log", run<C>("log", d, nullptr, a), [](C x, C) { return std::log(x); });
  near("sqrt", run<C>("sqrt", d, nullptr, a), [](C x, C) { return std::sqrt(x); });
  near("tanh", run<C>("tanh", d, nullptr, a), [](C x, C) { return std::tanh(x); });
  near("log1p", run<C>("log1p", d, nullptr, a), [](C x, C) { return std::log(C(1) + x); });
  near("expm1", run<C>("expm1", d, nullptr, a), [](C x, C) { return std::exp(x) - C(1); });
  near("reciprocal", run<C>("reciprocal", d, nullptr, a), [](C x, C) { return C(1) / x; });
  near("sgn", run<C>("sgn", d, nullptr, a), [](C x, C) { return x / std::abs(x); });
  near("conj", run<C>("conj", d, nullptr, a), [](C x, C) { return std::conj(x); });
  const auto sizes = run<T>("abs", d, nullptr, a), angles = run<T>("angle", d, nullptr, a);
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(std::fabs(sizes[i] - std::abs(a[i])) < 4 * std::numeric_limits<T>::epsilon() * 3, "abs %s", rl::name(d));
    CHECK(std::fabs(angles[i] - std::arg(a[i])) < 4 * std::numeric_limits<T>::epsilon() * 4, "angle %s", rl::name(d));
  }
}

}  // namespace

int main() {
  g_report = std::getenv("REPORT") != nullptr;
  check_math<float>();
  check_math<double>();
  check_special<float>();
  check_special<double>();
  check_complex<float>();
  check_complex<double>();
  check_integers<uint8_t>();
  check_integers<int8_t>();
  check_integers<int16_t>();
  check_integers<int32_t>();
  check_integers<int64_t>();
  check_casts();
  check_all_layouts();
  check_iterator();
  check_ranges();
  if (g_failures != 0) std::fprintf(stderr, "%d failures\n", g_failures);
  return g_failures != 0;
}
