// The exponential of matrices.
#include <algorithm>
#include <cmath>
#include <limits>

#include "blocked.h"

namespace rl {

namespace {

// Padé approximants of degree 3 to 13 with scaling and squaring: Higham, "The scaling and squaring method for the
// matrix exponential revisited" (2005), table 2.3 and algorithm 2.3.
constexpr int kDegrees[] = {3, 5, 7, 9, 13};
constexpr double kReachDouble[] = {1.495585217958292e-2, 2.53939833006323e-1, 9.504178996162932e-1, 2.097847961257068,
                                   5.371920351148152};
constexpr double kReachFloat[] = {4.25873001692283e-1, 1.88015267780476, 3.92572478313866};

// The coefficients of the numerator, (2m - k)! m! / ((2m)! k! (m - k)!), scaled so that the last is 1.
void coefficients(int m, double* b) {
  b[m] = 1;
  for (int k = m; k > 0; --k) b[k - 1] = b[k] * k * (2 * m - k + 1) / (m - k + 1);
}

template <class T>
class Exponential {
 public:
  explicit Exponential(int64_t n)
      : n_(n), size_(static_cast<size_t>(n * n)), pivots_(static_cast<size_t>(n)), memory_(7 * size_) {
    for (int i = 0; i < 7; ++i) part_[i] = memory_.data() + static_cast<size_t>(i) * size_;
  }

  // Replaces a matrix by its exponential.
  void operator()(T* a) {
    using R = Real<T>;
    if (n_ == 1) {
      *a = std::exp(*a);
      return;
    }
    R norm = 0;
    for (int64_t j = 0; j < n_; ++j) {
      R sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += std::abs(a[j * n_ + i]);
      norm = sum > norm || std::isnan(sum) ? sum : norm;
    }
    if (!std::isfinite(norm)) {
      std::fill_n(a, size_, T(std::numeric_limits<R>::quiet_NaN()));
      return;
    }
    constexpr bool single = sizeof(R) == 4;
    const double* reach = single ? kReachFloat : kReachDouble;
    constexpr int last = single ? 2 : 4;
    int choice = 0;
    while (choice < last && norm > reach[choice]) ++choice;
    const int degree = kDegrees[choice];
    int squarings = 0;
    if (norm > reach[last]) {
      squarings = static_cast<int>(std::ceil(std::log2(norm / reach[last])));
      const R scale = std::ldexp(R(1), -squarings);
      for (size_t i = 0; i < size_; ++i) a[i] *= scale;
    }
    double b[14];
    coefficients(degree, b);
    T *a2 = part_[0], *a4 = part_[1], *a6 = part_[2], *even = part_[3], *odd = part_[4], *sum = part_[5];
    multiply(a, a, a2);
    if (degree > 3) multiply(a2, a2, a4);
    if (degree > 5) multiply(a2, a4, a6);
    if (degree == 13) {
      combine(sum, {{b[13], a6}, {b[11], a4}, {b[9], a2}}, 0);
      multiply(a6, sum, odd);
      combine(sum, {{1, odd}, {b[7], a6}, {b[5], a4}, {b[3], a2}}, b[1]);
      multiply(a, sum, odd);
      combine(sum, {{b[12], a6}, {b[10], a4}, {b[8], a2}}, 0);
      multiply(a6, sum, even);
      combine(even, {{1, even}, {b[6], a6}, {b[4], a4}, {b[2], a2}}, b[0]);
    } else {
      T* a8 = part_[6];
      if (degree == 9) multiply(a2, a6, a8);
      const T* powers[] = {a2, a4, a6, a8};
      std::vector<std::pair<double, const T*>> odd_terms, even_terms;
      for (int k = 2; k < degree; k += 2) {
        even_terms.emplace_back(b[k], powers[k / 2 - 1]);
        odd_terms.emplace_back(b[k + 1], powers[k / 2 - 1]);
      }
      combine(sum, odd_terms, b[1]);
      multiply(a, sum, odd);
      combine(even, even_terms, b[0]);
    }
    for (size_t i = 0; i < size_; ++i) {
      a[i] = even[i] + odd[i];
      even[i] -= odd[i];
    }
    factor_lu(n_, n_, even, n_, pivots_.data());
    solve_lu('N', n_, n_, even, n_, pivots_.data(), a, n_);
    for (; squarings > 0 && !settled(a); --squarings) {
      multiply(a, a, a2);
      std::copy_n(a2, size_, a);
    }
  }

 private:
  void multiply(const T* x, const T* y, T* to) {
    rl::multiply<T>(n_, n_, n_, 1, {const_cast<T*>(x), n_}, {const_cast<T*>(y), n_}, 0, {to, n_});
  }
  // Whether its square is what it is: of zeros, of infinities or of NaN alone.
  bool settled(const T* a) const {
    for (const T value : {T(0), T(std::numeric_limits<Real<T>>::infinity())})
      if (std::all_of(a, a + size_, [=](T x) { return x == value; })) return true;
    return std::all_of(a, a + size_, [](T x) { return x != x; });
  }
  // The sum of scaled matrices and of the scaled identity; `to` may be one of them.
  void combine(T* to, const std::vector<std::pair<double, const T*>>& terms, double identity) {
    for (size_t i = 0; i < size_; ++i) {
      T sum(0);
      for (const auto& [factor, x] : terms) sum += static_cast<Real<T>>(factor) * x[i];
      to[i] = sum;
    }
    for (int64_t i = 0; i < n_; ++i) to[i * (n_ + 1)] += static_cast<Real<T>>(identity);
  }

  int64_t n_;
  size_t size_;
  std::vector<int> pivots_;
  std::vector<T> memory_;
  T* part_[7];
};

// The exponential of the transpose is the transpose of the exponential: the matrices may lie row by row.
PyObject* matrix_exp_kernel(Call& call) {
  const char* op = "linalg.matrix_exp";
  Tensor* a = call.args[0].tensor;
  check_square(op, a);
  check_floating(op, a);
  Owned result = empty(batch_of(a, 0), a->dtype, a->device);
  const int64_t n = rows(a);
  if (is_meta(call) || !n) return result.release();
  const Stack from(a);
  by_dtype(a->dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each(from.count(), 20 * flops<T>(n, n, n), [&](int64_t begin, int64_t end) {
      Exponential<T> exponential(n);
      for (int64_t i = begin; i < end; ++i) {
        T* x = data_of<T>(result, i);
        from.rows(i, x);
        exponential(x);
      }
    });
  });
  return result.release();
}

constexpr Registration kernels[] = {{"linalg::_matrix_exp", guarded<matrix_exp_kernel>}};

}  // namespace

bool register_exponential() { return register_kernels(kernels, std::size(kernels)); }

}  // namespace rl
