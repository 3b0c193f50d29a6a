// What the native kernels of this wheel share on their way from a Call to LAPACK and back.
#pragma once
#include <rushlight/api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <utility>
#include <vector>

#include "lanes.h"
#include "lapack.h"
#include "sweeps.h"

namespace rl {

// Thrown where a Python exception is set; `guarded` turns it into the null that a kernel returns.
struct PythonError {};

[[noreturn]] void fail(PyObject* type, const char* format, ...);

// The exception of matrices that cannot be factored: rushlight.linalg.LinAlgError.
extern PyObject* linalg_error;

// An owned reference to a tensor.
class Owned {
 public:
  explicit Owned(PyObject* p) : p_(p) {
    if (!p) throw PythonError();
  }
  Owned(Owned&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Owned() { Py_XDECREF(p_); }
  PyObject* release() { return std::exchange(p_, nullptr); }
  Tensor* get() const { return reinterpret_cast<Tensor*>(p_); }
  Tensor* operator->() const { return get(); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(get()->data);
  }

 private:
  PyObject* p_;
};

template <PyObject* (*kernel)(Call&)>
PyObject* guarded(Call& call) {
  try {
    return kernel(call);
  } catch (const PythonError&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

PyObject* tuple_of(std::initializer_list<Owned*> items);

using Sizes = std::vector<int64_t>;

// Large memory for a while: not initialized, and kept by the core's allocator for the next call.
template <class T>
struct CoreAllocator {
  using value_type = T;
  CoreAllocator() = default;
  template <class U>
  CoreAllocator(const CoreAllocator<U>&) {}
  T* allocate(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_alloc();
    void* block = api->allocate(n * sizeof(T));
    if (!block) throw std::bad_alloc();
    return static_cast<T*>(block);
  }
  void deallocate(T* block, size_t n) { api->deallocate(block, n * sizeof(T)); }
  template <class U>
  void construct(U*) {}
  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
  }
  template <class U>
  bool operator==(const CoreAllocator<U>&) const {
    return true;
  }
  template <class U>
  bool operator!=(const CoreAllocator<U>&) const {
    return false;
  }
};
template <class T>
using Memory = std::vector<T, CoreAllocator<T>>;

// The sizes of a tensor without its last `n`.
inline Sizes batch_of(const Tensor* t, int n = 2) { return Sizes(t->sizes, t->sizes + t->ndim - n); }
Sizes operator+(Sizes batch, const Sizes& sizes);
Sizes broadcast(const char* op, const Sizes& a, const Sizes& b);
int64_t count_of(const Sizes& batch);

inline Owned empty(const Sizes& sizes, DType dtype, Device device) {
  return Owned(api->empty(static_cast<int>(sizes.size()), sizes.data(), dtype, device));
}
// Matrices (*, m, n) whose columns are contiguous, as LAPACK writes them.
Owned empty_columns(const Sizes& batch, int64_t m, int64_t n, DType dtype, Device device);
Owned contiguous_copy(Tensor* t);
// Itself or a copy.
inline Owned contiguous(Tensor* t) { return Owned(api->contiguous(t)); }

inline bool is_meta(const Call& call) { return call.device.type == kMeta; }
inline int64_t rows(const Tensor* t) { return t->sizes[t->ndim - 2]; }
inline int64_t columns(const Tensor* t) { return t->sizes[t->ndim - 1]; }

// Checks what every routine needs of a matrix argument.
void check_matrix(const char* op, const Tensor* a, const char* name = "A");
void check_square(const char* op, const Tensor* a, const char* name = "A");
void check_floating(const char* op, const Tensor* a);
void check_same_dtype(const char* op, const Tensor* a, const Tensor* b, const char* a_name, const char* b_name);

const SweepTable& sweep_table();
template <class T>
const SweepKernels<T, Real<T>>& sweeps() {
  if constexpr (std::is_same_v<T, float>) return sweep_table().s;
  if constexpr (std::is_same_v<T, double>) return sweep_table().d;
  if constexpr (std::is_same_v<T, std::complex<float>>) return sweep_table().c;
  if constexpr (std::is_same_v<T, std::complex<double>>) return sweep_table().z;
}

// body(i) for i < pieces on the core's threads.
template <class F>
void over_pieces(int64_t pieces, const F& body) {
  if (pieces == 1) return body(0);
  api->parallel_for(
      0, pieces, 1,
      [](void* f, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) (*static_cast<const F*>(f))(i);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// body(begin, end) over parts of n lines of `bytes` bytes: on as many threads as that is worth.
template <class F>
void over_parts(int64_t n, int64_t bytes, const F& body) {
  constexpr int64_t kWorthSharing = 1 << 18;
  const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(api->num_threads(), n * bytes / kWorthSharing));
  over_pieces(pieces, [&](int64_t i) { body(n * i / pieces, n * (i + 1) / pieces); });
}

// to[j * ld_to + i] = from[i * ld + j] for rows i < m and columns j < n.
template <class T>
void transpose(int64_t m, int64_t n, const T* from, int64_t ld, T* to, int64_t ld_to) {
  over_parts(n, m * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
    sweeps<T>().transpose(m, end - begin, from + begin, ld, to + begin * ld_to, ld_to);
  });
}

// A tensor as matrices one after another, whatever its strides; a batch of other sizes broadcasts to it.
class Stack {
 public:
  Stack(const Tensor* t, const Sizes& batch, int matrix_ndim = 2);
  explicit Stack(const Tensor* t) : Stack(t, batch_of(t)) {}
  int64_t count() const { return count_; }

  template <class T>
  const T* at(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return reinterpret_cast<const T*>(data_) + offset;
  }
  // Writes matrix i column by column.
  template <class T>
  void columns(int64_t i, T* to, int64_t ld) const {
    copy(at<T>(i), row_step, column_step, m, n, to, ld);
  }
  template <class T>
  void columns(int64_t i, T* to) const {
    columns(i, to, m);
  }
  // Columns [first, last) of it, from a row on.
  template <class T>
  void columns(int64_t i, int64_t row, int64_t first, int64_t last, T* to, int64_t ld) const {
    copy(at<T>(i) + row * row_step + first * column_step, row_step, column_step, m - row, last - first, to, ld);
  }
  template <class T>
  void rows(int64_t i, T* to) const {
    copy(at<T>(i), column_step, row_step, n, m, to, n);
  }
  // A function that brings columns [first, last) to a place.
  template <class T>
  auto loader(int64_t i, T* to) const {
    return [this, i, to](int64_t first, int64_t last) { columns(i, 0, first, last, to + first * m, m); };
  }
  // The matrices transposed.
  Stack transposed() const {
    Stack t(*this);
    std::swap(t.m, t.n);
    std::swap(t.row_step, t.column_step);
    t.contiguous_ = false;
    return t;
  }

  // Whether the matrices follow each other row by row.
  bool contiguous() const { return contiguous_; }

  int64_t m = 1, n = 1, row_step = 0, column_step = 0;

 private:
  // to[j * ld + i] = from[i * inner + j * outer]
  template <class T>
  static void copy(const T* from, int64_t inner, int64_t outer, int64_t n_inner, int64_t n_outer, T* to, int64_t ld) {
    if (outer == 1 && inner != 1) return transpose(n_inner, n_outer, from, inner, to, ld);
    over_parts(n_outer, n_inner * static_cast<int64_t>(sizeof(T)), [=](int64_t begin, int64_t end) {
      const T* source = from + begin * outer;
      T* target = to + begin * ld;
      for (int64_t j = 0; j < end - begin; ++j)
        if (inner == 1)
          std::copy_n(source + j * outer, n_inner, target + j * ld);
        else
          for (int64_t i = 0; i < n_inner; ++i) target[j * ld + i] = source[i * inner + j * outer];
    });
  }

  const char* data_;
  Sizes sizes_, strides_;
  int64_t count_;
  bool contiguous_ = false;
};

// Matrices begin to end of a stack row by row, copied where they do not lie so.
template <class T>
class Rows {
 public:
  Rows(const Stack& stack, int64_t begin, int64_t end) {
    const int64_t elements = stack.m * stack.n;
    if (stack.contiguous()) {
      data_ = stack.at<T>(0) + begin * elements;
      return;
    }
    copy_.resize(static_cast<size_t>((end - begin) * elements));
    for (int64_t i = begin; i < end; ++i) stack.rows(i, copy_.data() + (i - begin) * elements);
    data_ = copy_.data();
  }
  operator const T*() const { return data_; }

 private:
  const T* data_;
  std::vector<T> copy_;
};

const LaneTable& lane_table();
template <class T>
const LaneKernels<T, Real<T>>& lanes() {
  if constexpr (std::is_same_v<T, float>) return lane_table().s;
  if constexpr (std::is_same_v<T, double>) return lane_table().d;
  if constexpr (std::is_same_v<T, std::complex<float>>) return lane_table().c;
  if constexpr (std::is_same_v<T, std::complex<double>>) return lane_table().z;
}
inline bool fits_lanes(int64_t m, int64_t n) { return m >= 1 && n >= 1 && m <= kLaneOrder && n <= kLaneOrder; }

// Runs body(begin, end) over the matrices of a batch without the GIL, in parallel where the work is worth it; `work` is
// the flops of one matrix. A body may throw std::bad_alloc.
void run_batch(int64_t count, double work, void (*body)(void*, int64_t, int64_t), void* context);
template <class F>
void for_each(int64_t count, double work, F&& body) {
  run_batch(count, work, [](void* f, int64_t begin, int64_t end) { (*static_cast<F*>(f))(begin, end); }, &body);
}

// Calls fn with a value of the element type.
template <class F>
void by_dtype(DType d, F&& fn) {
  switch (d) {
    case DType::Float32: return fn(float{});
    case DType::Float64: return fn(double{});
    case DType::Complex64: return fn(std::complex<float>{});
    default: return fn(std::complex<double>{});
  }
}

template <class T>
T* data_of(const Owned& t, int64_t i) {
  return t.data<T>() + i * rows(t.get()) * columns(t.get());
}

template <class T>
T conj(T x) {
  if constexpr (kComplex<T>)
    return std::conj(x);
  else
    return x;
}
template <class T>
Real<T> real(T x) {
  if constexpr (kComplex<T>)
    return x.real();
  else
    return x;
}

// Multiplications of three nested loops.
template <class T>
double flops(double m, double n, double k) {
  return m * n * k * (kComplex<T> ? 4 : 1);
}
inline int as_int(int64_t n) { return static_cast<int>(n); }
inline int leading(int64_t n) { return n > 1 ? static_cast<int>(n) : 1; }

// The info of a matrix that was not given to LAPACK, which may not return from NaN or infinity.
constexpr int kNotFinite = -1000;
template <class T>
bool all_finite(const T* x, int64_t n) {
  return !std::isnan(sweeps<T>().largest(n, x));
}

// Raises for the first matrix of `a` whose info is not 0; `reason` is a format that may show it twice.
void raise_failures(const char* op, const Tensor* info, const Tensor* a, const char* reason);

// LAPACK answers a query for the size of its workspace in the first element of it.
template <class T>
int workspace_size(T answer) {
  const auto size = real(answer);
  return size < 1 ? 1 : static_cast<int>(size);
}

struct Registration {
  const char* op;
  Kernel kernel;
};
bool register_kernels(const Registration* list, size_t n);
PyObject* multi_dot(PyObject* module, PyObject* tensors);
bool register_solvers();
bool register_factors();
bool register_spectral();
bool register_exponential();
bool register_orthogonal();

}  // namespace rl
