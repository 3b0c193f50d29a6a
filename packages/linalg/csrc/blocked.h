// Factorisations of one large matrix, column by column in memory, whose work is products on the core's threads:
// OpenBLAS leaves the second core idle there. LAPACK's routines do the blocks that are left.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "kernel.h"

namespace rl {

// A matrix with any strides; the dtype's gemm takes them.
template <class T>
struct Matrix {
  T* data;
  int64_t row, column;
  Matrix(T* p, int64_t ld) : data(p), row(1), column(ld) {}
  Matrix(T* p, int64_t r, int64_t c) : data(p), row(r), column(c) {}
  Matrix at(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
  Matrix transposed() const { return {data, column, row}; }
};

template <class T>
constexpr DType kDType = std::is_same_v<T, float>                 ? DType::Float32
                         : std::is_same_v<T, double>              ? DType::Float64
                         : std::is_same_v<T, std::complex<float>> ? DType::Complex64
                                                                  : DType::Complex128;

// C = alpha A B + beta C for A (m, k) and B (k, n).
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, double alpha, Matrix<T> a, Matrix<T> b, double beta, Matrix<T> c) {
  if (!m || !n || !k) return;
  if (c.row == 1) {  // as rows: C^T = B^T A^T
    const Matrix<T> t = a.transposed();
    a = b.transposed(), b = t, c = c.transposed();
    std::swap(m, n);
  }
  GemmArgs g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.a_row = a.row, g.a_col = a.column;
  g.b = b.data, g.b_row = b.row, g.b_col = b.column;
  g.c = c.data, g.c_row = c.row, g.c_col = c.column;
  g.alpha.re = alpha, g.beta.re = beta;
  api->gemm(kDType<T>, g);
}

// C -= A B for A (m, k) and B (k, n).
template <class T>
void subtract(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, Matrix<T> c) {
  constexpr int64_t kInPlace = 128;  // the largest k for which copies of A and B are not worth it
  if (k > kInPlace || a.row != 1 || b.row != 1 || c.row != 1) return multiply<T>(m, n, k, -1, a, b, 1, c);
  sweeps<T>().subtract(m, n, k, a.data, a.column, b.data, b.column, c.data, c.column);
}

template <class T>
void conjugate(int64_t m, int64_t n, T* a, int64_t lda) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) a[j * lda + i] = conj(a[j * lda + i]);
}

// body(begin, end) over columns, a piece for each thread: the larger are the products of a piece.
template <class F>
void over_columns(int64_t n, F&& body) {
  const int64_t pieces = std::min<int64_t>(api->num_threads(), (n + 31) / 32);
  over_pieces(pieces, [&](int64_t i) { body(n * i / pieces, n * (i + 1) / pieces); });
}

// X of op(A) X = B in place of B (n, k), for triangular A; op as BLAS has it: N, T or C.
template <class T>
void solve_triangle(bool lower, char op, bool unit, int64_t n, int64_t k, T* a, int64_t lda, T* b, int64_t ldb) {
  const bool forward = lower == (op == 'N');
  if (kComplex<T> && op == 'C') {  // A^T conj(X) = conj(B)
    conjugate(n, k, b, ldb);
    solve_triangle(lower, 'T', unit, n, k, a, lda, b, ldb);
    return conjugate(n, k, b, ldb);
  }
  if (n <= kTriangle) {
    T block[kTriangle * kTriangle] = {};  // op(A)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        if (forward ? i < j : i > j) continue;
        const T value = op == 'N' ? a[j * lda + i] : a[i * lda + j];
        block[j * kTriangle + i] = i != j ? value : unit ? T(1) : T(1) / value;
      }
    return lanes<T>().solve_triangle(forward, n, block, k, b, ldb);
  }
  const int64_t first = n / 2, second = n - first;
  T *b1 = b, *b2 = b + first, *a2 = a + first * (lda + 1);
  const Matrix<T> matrix(a, lda);
  Matrix<T> factor = lower ? matrix.at(first, 0) : matrix.at(0, first);
  if (op != 'N') factor = factor.transposed();
  if (forward) {
    solve_triangle(lower, op, unit, first, k, a, lda, b1, ldb);
    subtract<T>(second, k, first, factor, {b1, ldb}, {b2, ldb});
    solve_triangle(lower, op, unit, second, k, a2, lda, b2, ldb);
  } else {
    solve_triangle(lower, op, unit, second, k, a2, lda, b2, ldb);
    subtract<T>(first, k, second, factor, {b2, ldb}, {b1, ldb});
    solve_triangle(lower, op, unit, first, k, a, lda, b1, ldb);
  }
}

// Swaps rows of (*, n) by pivots first to last, in that order or, to undo it, from the last on.
template <class T>
void swap_rows(int64_t n, T* a, int64_t lda, const int* pivots, int64_t first, int64_t last, bool undo = false) {
  for (int64_t j = 0; j < n; ++j) {
    T* x = a + j * lda;
    if (undo)
      for (int64_t k = last; k-- > first;) std::swap(x[k], x[pivots[k] - 1]);
    else
      for (int64_t k = first; k < last; ++k) std::swap(x[k], x[pivots[k] - 1]);
  }
}

// LAPACK's getrf of some columns, by recursion: Toledo, "Locality of reference in LU decomposition with partial
// pivoting" (1997).
template <class T>
int factor_panel(int64_t m, int64_t n, T* a, int64_t lda, int* pivots) {
  if (n <= kPanelColumns) return sweeps<T>().lu(m, n, a, lda, pivots);
  const int64_t least = std::min(m, n);
  const int64_t first =
      least <= kPanelColumns ? least : (least / 2 + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  const int64_t second = n - first;
  T *right = a + first * lda, *below = right + first;
  int info = factor_panel(m, first, a, lda, pivots);
  swap_rows(second, right, lda, pivots, 0, first);
  solve_triangle(true, 'N', true, first, second, a, lda, right, lda);
  subtract<T>(m - first, second, first, {a + first, lda}, {right, lda}, {below, lda});
  if (first == least) return info;
  const int rest = factor_panel(m - first, second, below, lda, pivots + first);
  if (!info && rest) info = rest + as_int(first);
  for (int64_t i = first; i < least; ++i) pivots[i] += as_int(first);
  swap_rows(first, a, lda, pivots, first, least);
  return info;
}

// Work on a matrix that is cut into blocks of columns, the first of which become panels one after another: a block is
// the next panel once `apply(panel, block)` is done for those before it, and factor(block) gives an info that is 0 or
// the rank of what failed. The threads take blocks as they become ready, the next panel first, whatever is behind it.
// load(block) comes before all else that is done to a block, on the thread whose cache then holds it.
template <class Load, class Apply, class Factor>
class ColumnBlocks {
 public:
  ColumnBlocks(int64_t blocks, int64_t panels, const Load& load, const Apply& apply, const Factor& factor)
      : panels_(panels), load_(load), apply_(apply), factor_(factor), blocks_(static_cast<size_t>(blocks)) {}
  int run() {
    const int64_t threads = std::min<int64_t>(api->num_threads(), count());
    over_pieces(threads, [&](int64_t thread) { work(thread, threads); });
    return info_;
  }

 private:
  struct Block {
    int64_t applied = 0;  // panels
    bool taken = false, loaded = false;
  };
  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }
  const Block& at(int64_t i) const { return blocks_[static_cast<size_t>(i)]; }
  // The block that is the next panel, else one of this thread's, whose cache may hold it, else any; -1 for none.
  int64_t take(int64_t thread, int64_t threads) const {
    if (factored_ < panels_ && !at(factored_).taken) return factored_;
    for (const bool own : {true, false})
      for (int64_t i = factored_; i < count(); ++i)
        if (own == (i % threads == thread) && !at(i).taken && at(i).applied < factored_) return i;
    return -1;
  }
  bool done() const {
    if (factored_ < panels_) return false;
    return std::all_of(blocks_.begin() + panels_, blocks_.end(), [&](const Block& b) { return b.applied == panels_; });
  }
  void work(int64_t thread, int64_t threads) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!done()) {
      const int64_t i = take(thread, threads);
      if (i < 0) {  // another thread has what all wait for
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
        continue;
      }
      Block& block = blocks_[static_cast<size_t>(i)];
      const int64_t panels = factored_;
      block.taken = true;
      lock.unlock();
      if (!std::exchange(block.loaded, true)) load_(i);
      for (int64_t panel = block.applied; panel < panels; ++panel) apply_(panel, i);
      const bool is_panel = panels == i && i < panels_;
      const int info = is_panel ? factor_(i) : 0;
      lock.lock();
      block.applied = panels;
      block.taken = false;
      if (is_panel) ++factored_;
      if (info && !info_) info_ = info;
    }
  }

  int64_t panels_;
  const Load& load_;
  const Apply& apply_;
  const Factor& factor_;
  std::mutex mutex_;  // of what follows
  std::vector<Block> blocks_;
  int64_t factored_ = 0;
  int info_ = 0;
};

constexpr int64_t kPanel = 32;       // columns of a block
constexpr int64_t kFewColumns = 64;  // of which more threads than one are of no use
inline int64_t panels_of(int64_t n) { return (n + kPanel - 1) / kPanel; }

// The columns [first, last) of a matrix are where they belong.
inline void in_place(int64_t, int64_t) {}

// LAPACK's getrf; of L only what U needs where `only_u`. load(first, last) brings columns of the matrix to `a`.
template <class T, class Load = void (*)(int64_t, int64_t)>
int factor_lu(int64_t m, int64_t n, T* a, int64_t lda, int* pivots, bool only_u = false, Load load = in_place) {
  const int64_t least = std::min(m, n), panels = panels_of(least);
  if (least <= kFewColumns) {
    load(0, n);
    return factor_panel(m, n, a, lda, pivots);
  }
  const auto width = [=](int64_t i) { return std::min(kPanel, n - i * kPanel); };
  const auto load_block = [=](int64_t i) { load(i * kPanel, i * kPanel + width(i)); };
  const auto apply = [=](int64_t panel, int64_t i) {
    const int64_t row = panel * kPanel, k = std::min(kPanel, least - row);
    T *x = a + i * kPanel * lda + row, *l = a + row * (lda + 1);
    swap_rows(width(i), x - row, lda, pivots, row, row + k);
    solve_triangle(true, 'N', true, k, width(i), l, lda, x, lda);
    subtract<T>(m - row - k, width(i), k, {l + k, lda}, {x, lda}, {x + k, lda});
  };
  const auto factor = [=](int64_t i) {
    const int64_t row = i * kPanel;
    const int info = factor_panel(m - row, width(i), a + row * (lda + 1), lda, pivots + row);
    for (int64_t k = row; k < std::min(row + kPanel, least); ++k) pivots[k] += as_int(row);
    return info ? info + as_int(row) : 0;
  };
  const int info = ColumnBlocks(panels_of(n), panels, load_block, apply, factor).run();
  if (!only_u)
    over_pieces(panels, [=](int64_t i) {
      swap_rows(width(i), a + i * kPanel * lda, lda, pivots, std::min((i + 1) * kPanel, least), least);
    });
  return info;
}

// LAPACK's getrs.
template <class T>
void solve_lu(char op, int64_t n, int64_t k, T* lu, int64_t ld, const int* pivots, T* b, int64_t ldb) {
  over_columns(k, [=](int64_t begin, int64_t end) {
    const int64_t width = end - begin;
    T* x = b + begin * ldb;
    if (op == 'N') swap_rows(width, x, ldb, pivots, 0, n);
    solve_triangle(op == 'N', op, op == 'N', n, width, lu, ld, x, ldb);
    solve_triangle(op != 'N', op, op != 'N', n, width, lu, ld, x, ldb);
    if (op != 'N') swap_rows(width, x, ldb, pivots, 0, n, true);
  });
}

// The inverse (n, n) by columns: those of U^-1 L^-1 in the order of the rows that L U has.
template <class T>
void invert_lu(int64_t n, T* lu, int64_t ld, const int* pivots, T* inverse) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t k = 0; k < n; ++k) std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(pivots[k] - 1)]);
  const int64_t threads = api->num_threads(), width = std::min<int64_t>(84, (n + threads - 1) / threads);
  over_pieces(n ? (n + width - 1) / width : 0, [&](int64_t piece) {
    const int64_t first = piece * width, columns = std::min(width, n - first);
    std::vector<T> x(static_cast<size_t>(n * columns));
    for (int64_t j = 0; j < columns; ++j) x[static_cast<size_t>(j * n + first + j)] = T(1);
    solve_triangle(true, 'N', true, n - first, columns, lu + first * (ld + 1), ld, x.data() + first, n);
    solve_triangle(false, 'N', false, n, columns, lu, ld, x.data(), n);
    for (int64_t j = 0; j < columns; ++j)
      std::copy_n(x.data() + j * n, n, inverse + order[static_cast<size_t>(first + j)] * n);
  });
}

// C (m, n), on and below the diagonal, less A B^H for the rows A (m, k) of a factor, the first n of which are B.
template <class T>
void subtract_square(int64_t m, int64_t n, int64_t k, const T* a, T* c, int64_t ld) {
  std::vector<T> adjoint(static_cast<size_t>(k * n));
  for (int64_t j = 0; j < k; ++j)
    for (int64_t i = 0; i < n; ++i) adjoint[static_cast<size_t>(i * k + j)] = conj(a[j * ld + i]);
  sweeps<T>().subtract(m, n, k, a, ld, adjoint.data(), k, c, ld);
}

// n columns (m, n) of the Cholesky factor from the diagonal on.
template <class T>
int factor_cholesky_panel(int64_t m, int64_t n, T* a, int64_t ld) {
  if (n <= kPanelColumns) return sweeps<T>().cholesky(m, n, a, ld);
  const int64_t first = (n / 2 + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  T* below = a + first * (ld + 1);
  const int info = factor_cholesky_panel(m, first, a, ld);
  subtract_square(m - first, n - first, first, a + first, below, ld);
  const int rest = factor_cholesky_panel(m - first, n - first, below, ld);
  return info ? info : rest ? rest + as_int(first) : 0;
}

// The factor L of A = L L^H in place of the lower triangle by columns; info is that of LAPACK's potrf. load(first,
// last) brings columns of A, from the diagonal on, to `a`, and store(first, last) takes those of L.
template <class T, class Load, class Store>
int factor_cholesky(int64_t n, T* a, int64_t ld, Load load, Store store) {
  if (n <= kFewColumns) {
    load(0, n);
    const int info = factor_cholesky_panel(n, n, a, ld);
    store(0, n);
    return info;
  }
  const auto width = [=](int64_t i) { return std::min(kPanel, n - i * kPanel); };
  const auto apply = [=](int64_t panel, int64_t i) {
    const int64_t row = i * kPanel;
    subtract_square(n - row, width(i), kPanel, a + panel * kPanel * ld + row, a + row * (ld + 1), ld);
  };
  const auto factor = [=](int64_t i) {
    const int64_t row = i * kPanel;
    const int info = factor_cholesky_panel(n - row, width(i), a + row * (ld + 1), ld);
    store(row, row + width(i));
    return info ? info + as_int(row) : 0;
  };
  const auto load_block = [=](int64_t i) { load(i * kPanel, i * kPanel + width(i)); };
  return ColumnBlocks(panels_of(n), panels_of(n), load_block, apply, factor).run();
}

// Reflectors I - V T V^H of columns of a QR decomposition, in the form of Schreiber and Van Loan, "A storage-efficient
// WY representation for products of Householder transformations" (1989).
template <class T>
class Reflectors {
 public:
  Reflectors() = default;
  // V lies below the diagonal of (m, k), with ones on it.
  Reflectors(int64_t m, int64_t k, const T* a, int64_t lda, const T* tau)
      : m_(m), k_(k), v_(size(m, k)), v_adjoint_(size(m, k)), t_(size(k, k)), t_adjoint_(size(k, k)) {
    for (int64_t j = 0; j < k; ++j) {
      std::fill_n(v_.data() + j * m, j, T(0));
      std::copy(a + j * lda + j, a + j * lda + m, v_.data() + j * m + j);
      v_[size(j, m + 1)] = T(1);
    }
    adjoin(m, k, v_.data(), v_adjoint_.data());
    const std::vector<T> gram = minus(k, m, v_adjoint_.data(), v_.data(), m);  // - V^H V
    for (int64_t j = 0; j < k; ++j) {
      t_[size(j, k + 1)] = tau[j];
      for (int64_t i = 0; i < j; ++i) {  // column j: -tau_j T (V^H v_j)
        T sum(0);
        for (int64_t l = i; l < j; ++l) sum += t_[size(l, k) + size(i, 1)] * gram[size(j, k) + size(l, 1)];
        t_[size(j, k) + size(i, 1)] = tau[j] * sum;
      }
    }
    adjoin(k, k, t_.data(), t_adjoint_.data());
  }
  // C (m, n), whose first `zeros` rows are zeros, times the product of the reflectors or its adjoint, from the left.
  void apply(bool adjoint, int64_t n, T* c, int64_t ldc, int64_t zeros = 0) const {
    add_reflected(adjoint, n, minus(n, m_ - zeros, v_adjoint_.data() + k_ * zeros, c + zeros, ldc), c, ldc);
  }
  // The columns [first, first + n) of the product of the reflectors, C (m, n).
  void columns(int64_t first, int64_t n, T* c, int64_t ldc) const {
    for (int64_t j = 0; j < n; ++j) {
      std::fill_n(c + j * ldc, m_, T(0));
      c[j * (ldc + 1) + first] = T(1);
    }
    std::vector<T> w(size(k_, n));
    std::transform(v_adjoint_.begin() + k_ * first, v_adjoint_.begin() + k_ * (first + n), w.begin(), std::negate<T>());
    add_reflected(false, n, w, c, ldc);
  }

 private:
  static size_t size(int64_t m, int64_t n) { return static_cast<size_t>(m * n); }
  static void adjoin(int64_t m, int64_t n, const T* a, T* to) {
    sweeps<T>().transpose(n, m, a, m, to, n);
    for (int64_t i = 0; i < m * n; ++i) to[i] = conj(to[i]);
  }
  // - A B of (k, m) and (m, n)
  std::vector<T> minus(int64_t n, int64_t m, const T* a, const T* b, int64_t ldb) const {
    std::vector<T> result(size(k_, n));
    sweeps<T>().subtract(k_, n, m, a, k_, b, ldb, result.data(), k_);
    return result;
  }
  // C (m, n) plus V T W, or with the adjoint of T, for W (k, n).
  void add_reflected(bool adjoint, int64_t n, const std::vector<T>& w, T* c, int64_t ldc) const {
    const std::vector<T> tw = minus(n, k_, (adjoint ? t_adjoint_ : t_).data(), w.data(), k_);
    sweeps<T>().subtract(m_, n, k_, v_.data(), m_, tw.data(), k_, c, ldc);
  }

  int64_t m_ = 0, k_ = 0;
  Memory<T> v_, v_adjoint_;
  std::vector<T> t_, t_adjoint_;
};

// The unitary factor of a QR decomposition: reflectors in blocks.
template <class T>
class Unitary {
 public:
  explicit Unitary(std::vector<Reflectors<T>> blocks) : blocks_(std::move(blocks)) {}
  // From k columns (m, k) as LAPACK's geqrf leaves them.
  Unitary(int64_t m, int64_t k, const T* a, int64_t lda, const T* tau) : blocks_(static_cast<size_t>(panels_of(k))) {
    over_pieces(panels_of(k), [&](int64_t i) {
      const int64_t j = i * kPanel;
      at(i) = Reflectors<T>(m - j, std::min(kPanel, k - j), a + j * (lda + 1), lda, tau + j);
    });
  }
  // C (m, n) times it or its adjoint, from the left: LAPACK's ormqr.
  void apply(bool adjoint, int64_t n, T* c, int64_t ldc) {
    constexpr int64_t kAtOnce = 2 * kPanel;  // columns that stay in the cache
    const int64_t pieces = std::max((n + kAtOnce - 1) / kAtOnce, std::min<int64_t>(api->num_threads(), n));
    over_pieces(pieces, [&](int64_t piece) {
      const int64_t begin = n * piece / pieces, end = n * (piece + 1) / pieces;
      for (int64_t i = 0; i < count(); ++i) {
        const int64_t block = adjoint ? i : count() - 1 - i;
        at(block).apply(adjoint, end - begin, c + begin * ldc + block * kPanel, ldc);
      }
    });
  }
  // Its first n columns (m, n): LAPACK's orgqr.
  void columns(int64_t m, int64_t n, T* q, int64_t ldq) {
    const int64_t pieces = panels_of(n);
    over_pieces(pieces, [&](int64_t piece) {
      const int64_t p = pieces - 1 - piece, begin = p * kPanel, width = std::min(kPanel, n - begin);  // most work first
      T* c = q + begin * ldq;
      const int64_t last = std::min(p, count() - 1);  // the later blocks leave these columns alone
      for (int64_t j = 0; j < width; ++j) {
        std::fill_n(c + j * ldq, last < 0 ? m : last * kPanel, T(0));
        if (last < 0) c[j * (ldq + 1) + begin] = T(1);
      }
      if (last >= 0) at(last).columns(begin - last * kPanel, width, c + last * kPanel, ldq);
      for (int64_t i = last - 1; i >= 0; --i) at(i).apply(false, width, c + i * kPanel, ldq, kPanel);
    });
  }

 private:
  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }
  Reflectors<T>& at(int64_t i) { return blocks_[static_cast<size_t>(i)]; }
  std::vector<Reflectors<T>> blocks_;
};

// LAPACK's geqrf of some columns: Elmroth and Gustavson, "Applying recursion to serial and parallel QR factorization"
// (2000).
template <class T>
void factor_qr_panel(int64_t m, int64_t n, T* a, int64_t lda, T* tau) {
  if (n <= kPanelColumns) return sweeps<T>().qr(m, n, a, lda, tau);
  const int64_t least = std::min(m, n);
  const int64_t first =
      least <= kPanelColumns ? least : (least / 2 + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  factor_qr_panel(m, first, a, lda, tau);
  Reflectors<T>(m, first, a, lda, tau).apply(true, n - first, a + first * lda, lda);
  if (first < least) factor_qr_panel(m - first, n - first, a + first * (lda + 1), lda, tau + first);
}

// LAPACK's geqrf.
template <class T>
Unitary<T> factor_qr(int64_t m, int64_t n, T* a, int64_t lda, T* tau) {
  const int64_t least = std::min(m, n);
  std::vector<Reflectors<T>> panels(static_cast<size_t>(panels_of(least)));
  const auto apply = [&](int64_t panel, int64_t i) {
    panels[static_cast<size_t>(panel)].apply(true, std::min(kPanel, n - i * kPanel),
                                             a + i * kPanel * lda + panel * kPanel, lda);
  };
  const auto factor = [&](int64_t i) {
    const int64_t j = i * kPanel, width = std::min(kPanel, n - j);
    T* x = a + j * (lda + 1);
    factor_qr_panel(m - j, width, x, lda, tau + j);
    panels[static_cast<size_t>(i)] = Reflectors<T>(m - j, std::min(kPanel, least - j), x, lda, tau + j);
    return 0;
  };
  ColumnBlocks(panels_of(n), panels_of(least), [](int64_t) {}, apply, factor).run();
  return Unitary<T>(std::move(panels));
}

}  // namespace rl
