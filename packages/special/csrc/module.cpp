// rushlight.special._C: pointwise loops of the special functions that core has none for, in float32
// (computed in double) and float64.
#include <rushlight/api.h>

#include <cmath>
#include <limits>

using rl::api;
using rl::DType;

namespace {

constexpr double kPi = 3.141592653589793238462643383279502884;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// B_2, B_4, … of the Euler–Maclaurin expansions.
constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                 5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};

// sin and cos of pi x, exact at multiples of 1/2: the argument is reduced before it is multiplied.
double sinpi(double x) {
  double r = std::fmod(std::fabs(x), 2.0), sign = x < 0 ? -1 : 1;
  if (r >= 1) r -= 1, sign = -sign;
  return r == 0 ? 0 : sign * (r <= 0.5 ? std::sin(kPi * r) : std::sin(kPi * (1 - r)));
}
double cospi(double x) {
  double r = std::fmod(std::fabs(x), 2.0);
  if (r > 1) r = 2 - r;
  return r == 0.5 ? 0 : r < 0.5 ? std::cos(kPi * r) : -std::cos(kPi * (1 - r));
}

double complementary_error_function(double x) { return std::erfc(x); }

double gammaln(double x) {
  if (std::isinf(x)) return kInf;
#if defined(__GLIBC__)
  int sign;  // lgamma itself would write a global
  return lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

// Abramowitz and Stegun 6.3.5 to 6.3.18: recurrence up to x >= 10, then the asymptotic series; reflection below 0.
double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (std::isinf(x)) return x > 0 ? kInf : kNaN;
  double shift = 0;
  if (x < 0) {
    double s = sinpi(x);
    if (s == 0) return kNaN;  // a pole, with a different sign on each side
    shift = -kPi * cospi(x) / s;
    x = 1 - x;
  }
  for (; x < 10; x += 1) shift -= 1 / x;
  double y = 1 / (x * x), power = y, sum = 0;
  for (int k = 0; k < 8; ++k, power *= y) sum += kBernoulli[k] / (2 * (k + 1)) * power;
  return shift + std::log(x) - 0.5 / x - sum;
}

// The n-th derivative of digamma for x > 0: (-1)^(n+1) n! zeta(n+1, x), the Hurwitz zeta by Euler–Maclaurin
// (DLMF 25.11.28).
double polygamma_positive(int64_t n, double x) {
  if (std::isinf(x)) return 0;
  double s = static_cast<double>(n + 1), sum = 0;
  for (double limit = 10 + s; x < limit; x += 1) {
    double term = std::pow(x, -s);
    sum += term;
    if (term <= sum * 1e-18) break;  // the rest, a geometric series at most, is below the rounding of the sum
  }
  double tail = std::pow(x, 1 - s) / (s - 1) + 0.5 * std::pow(x, -s), factor = s * std::pow(x, -s - 1), factorial = 2;
  for (int k = 0; k < 8; ++k) {
    tail += kBernoulli[k] / factorial * factor;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (x * x);
    factorial *= (2.0 * k + 3) * (2.0 * k + 4);
  }
  double value = std::tgamma(s) * (sum + tail);
  return n % 2 ? value : -value;
}

// The n-th derivative of pi cot(pi x), as a polynomial in cot(pi x): P_0 = pi c, P' = -pi (1 + c^2) dP/dc.
double cot_derivative(int64_t n, double x) {
  double s = sinpi(x), c = cospi(x) / s;
  double p[34] = {0, kPi}, q[34];
  for (int64_t i = 1; i <= n; ++i) {
    for (int64_t k = 0; k <= i + 1; ++k)
      q[k] = -kPi * ((k <= i ? static_cast<double>(k + 1) * (k + 1 <= i ? p[k + 1] : 0) : 0) +
                     (k >= 1 && k - 1 <= i ? static_cast<double>(k - 1) * p[k - 1] : 0));
    for (int64_t k = 0; k <= i + 1; ++k) p[k] = q[k];
  }
  double value = 0;
  for (int64_t k = n + 1; k >= 0; --k) value = value * c + p[k];
  return value;
}

double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  if (std::isnan(x)) return x;
  if (x > 0) return polygamma_positive(n, x);
  if (std::isinf(x)) return kNaN;
  if (sinpi(x) == 0) return n % 2 ? kInf : kNaN;  // even poles have one sign, odd ones two
  if (n > 30) return kNaN;
  double reflected = polygamma_positive(n, 1 - x);
  return (n % 2 ? -reflected : reflected) - cot_derivative(n, x);
}

template <class T, double (*f)(double)>
void unary_loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(data[0] + i * strides[0]) =
        static_cast<T>(f(static_cast<double>(*reinterpret_cast<const T*>(data[1] + i * strides[1]))));
}

template <class T>
void polygamma_loop(char* const* data, const int64_t* strides, int64_t n, const void* params) {
  int64_t order = *static_cast<const int64_t*>(params);
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<T*>(data[0] + i * strides[0]) =
        static_cast<T>(polygamma(order, static_cast<double>(*reinterpret_cast<const T*>(data[1] + i * strides[1]))));
}

template <double (*f)(double)>
int add(const char* op) {
  return api->register_loop(op, DType::Float32, unary_loop<float, f>) < 0 ||
                 api->register_loop(op, DType::Float64, unary_loop<double, f>) < 0
             ? -1
             : 0;
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight.special._C", nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  if (rl::import_api("rushlight-special") < 0) return nullptr;
  if (add<complementary_error_function>("special::erfc") < 0 || add<gammaln>("special::gammaln") < 0 ||
      add<digamma>("special::digamma") < 0 || add<digamma>("special::psi") < 0)
    return nullptr;
  if (api->register_loop("special::polygamma", DType::Float32, polygamma_loop<float>) < 0 ||
      api->register_loop("special::polygamma", DType::Float64, polygamma_loop<double>) < 0)
    return nullptr;
  return PyModule_Create(&definition);
}
