#include "implicit.h"

#include <cmath>

namespace rl {
namespace {

template <class T>
constexpr double kExact = sizeof(T) == 4 ? 0x1p-34 : 0x1p-51;  // the relative error that a sum may have

// Abramowitz and Stegun 6.3.5 and 6.3.18, x > 0.
double digamma(double x) {
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  const double y = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * 691.0 / 32760)))));
}

// x of a large shape by the expansion of Cornish and Fisher (1938) in the normal quantile q, and its derivative.
double gamma_derivative_large(double shape, double x) {
  const double root = std::sqrt(shape);
  double q = (x - shape) / root;
  double c1, c3, c4, c5, c6;  // of shape^0, shape^-1/2 and so on
  for (int step = 0; step < 4; ++step) {
    const double s = q * q;
    c1 = (s - 1) / 3, c3 = (s - 7) * q / 36, c4 = -((3 * s + 7) * s - 16) / 810;
    c5 = ((9 * s + 256) * s - 433) * q / 38880, c6 = (((12 * s - 243) * s - 923) * s + 1472) / 204120;
    const double excess = shape + root * q + c1 + (c3 + (c4 + (c5 + c6 / root) / root) / root) / root - x;
    q -= excess / (root + 2 * q / 3 + (s - 7.0 / 3) / 12 / root);
  }
  return 1 + (q / 2 - (c3 / 2 + (c4 + (1.5 * c5 + 2 * c6 / root) / root) / root) / shape) / root;
}

// Below the mean the power series of the lower incomplete gamma function (DLMF 8.7.1), else the continued fraction of
// the upper one (DLMF 8.9.2), by Lentz's method with derivatives.
template <class T>
double gamma_derivative(double shape, double x) {
  if (!(shape > 0 && x > 0 && std::isfinite(x))) return std::isnan(shape) || std::isnan(x) ? NAN : 0;
  if (shape >= 200 && std::fabs(x - shape) < 6 * std::sqrt(shape)) return gamma_derivative_large(shape, x);
  const double log_ratio = std::log(x) - digamma(shape);
  if (x > 1e15 * (1 + shape)) return log_ratio;
  if (shape > 1e15) return 1;
  if (x <= shape + 1) {
    double term = x / shape, harmonic = 1 / shape - log_ratio, sum = term * harmonic;
    for (double k = shape + 1;; k += 1) {
      term *= x / k;
      harmonic += 1 / k;
      sum += term * harmonic;
      if (!(term * (1 + std::fabs(harmonic)) > kExact<T> * std::fabs(sum))) return sum;
    }
  }
  double b = x + 1 - shape, db = -1;
  double c = 1e300, dc = 0, d = 1 / b, dd = -db * d * d, h = d, dh = dd;
  for (double k = 1;; k += 1) {
    const double a = -k * (k - shape), da = k;
    b += 2;
    const double below = a * d + b;
    dd = -(da * d + a * dd + db) / (below * below);
    d = 1 / below;
    dc = (da - a / c * dc) / c + db;
    c = b + a / c;
    const double factor = c * d, moved = h * (dc * d + c * dd) + dh * (factor - 1);
    h *= factor;
    dh += moved;
    if (!(std::fabs(factor - 1) > kExact<T> || std::fabs(moved) > kExact<T> * std::fabs(dh))) break;
  }
  return x * (h * log_ratio + dh);
}

// x of large parameters by the first terms of Cornish and Fisher's expansion: mean, deviation and skewness.
double beta_derivative_large(double a, double b, double x, double mean, double deviation) {
  const double n = a + b;
  const double skewness = 2 * (b - a) * std::sqrt(n + 1) / ((n + 2) * std::sqrt(a * b));
  double q = (x - mean) / deviation;
  const double whole = q;
  for (int step = 0; step < 4; ++step) q = whole - skewness * (q * q - 1) / 6;
  const double d_mean = b / (n * n), d_log_deviation = (1 / a - 2 / n - 1 / (n + 1)) / 2;
  const double third = deviation * skewness;  // 2 (b - a) / (n (n + 2))
  const double d_third = -2 / (n * (n + 2)) - third * (1 / n + 1 / (n + 2));
  return d_mean + deviation * d_log_deviation * q + d_third * (q * q - 1) / 6;
}

// x is a sample of Beta(a, n - a). Where it is not far from the mean either sum of the incomplete beta function
// (DLMF 8.17.8, of x or of 1 - x) serves: the one that converges sooner is taken. Far from the mean the one on that
// side may need as many terms as the larger parameter is big; Wise's approximation (1950) stands for it there, in which
// -log(x) (n - (b + 1) / 2) is a gamma number of shape b.
template <class T>
double beta_derivative(double x, double a, double n) {
  const double b = n - a, y = 1 - x;
  if (std::isnan(x) || std::isnan(a) || std::isnan(n)) return NAN;
  if (!(a > 0 && b > 0 && x > 0 && y > 0 && std::isfinite(n))) return 0;
  const double mean = a / n, deviation = std::sqrt(mean * (b / n) / (n + 1)), distance = x - mean;
  const double least = std::fmin(a, b);
  if (least > 1e6 && std::fabs(distance) < 0.1 * std::cbrt(least) * deviation)
    return beta_derivative_large(a, b, x, mean, deviation) / y;
  bool lower = x < 0.5;
  if (n * std::fmin(x, y) > 1 && std::fabs(distance) > 6 * deviation) {
    if (a > 1e3 * (1 + b)) return -x * std::log(x) / (y * (a + (b - 1) / 2));
    if (b > 1e3 * (1 + a)) {
      const double scale = b + (a - 1) / 2, gamma = -scale * std::log1p(-x);
      return (gamma_derivative<T>(a, gamma) - gamma / (2 * scale)) / scale;
    }
    lower = distance < 0;
  }
  double shift = lower ? digamma(a + 1) - digamma(n) - std::log(x) : digamma(n) - digamma(a) + std::log(x);
  const double of = lower ? x : y, first = lower ? a : b;
  double term = x * y / first, sum = term * shift;
  for (double k = 0;; k += 1) {
    const double inverse = 1 / (first + 1 + k), next = 1 / (n + k), ratio = of * (n + k) * inverse;
    term *= ratio;
    shift += lower ? inverse - next : next;
    sum += term * shift;
    // The terms after this one shrink at least as a geometric series does.
    if (!(term * (1 + std::fabs(shift)) > kExact<T> * std::fabs(sum) * (1 - std::fmax(ratio, of)))) return sum / y;
  }
}

}  // namespace

template <class T>
void gamma_derivatives(const T* shapes, const T* x, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(gamma_derivative<T>(shapes[i], x[i]));
}

template <class T>
void beta_derivatives(const T* x, const T* a, const T* total, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(beta_derivative<T>(x[i], a[i], total[i]));
}

template void gamma_derivatives(const float*, const float*, float*, int64_t);
template void gamma_derivatives(const double*, const double*, double*, int64_t);
template void beta_derivatives(const float*, const float*, const float*, float*, int64_t);
template void beta_derivatives(const double*, const double*, const double*, double*, int64_t);

}  // namespace rl
