// What the native kernels of this wheel share on their way from a Call to raw pointers.
#pragma once

#include <rushlight/api.h>

#include <exception>
#include <initializer_list>
#include <utility>

#include "kernels/runtime.h"

namespace rl {

// An owned reference to a Tensor or any other object; null after a failed call, with a Python exception set.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* p) : p_(p) {}
  Owned(Owned&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Owned& operator=(Owned&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Owned() { Py_XDECREF(p_); }
  explicit operator bool() const { return p_ != nullptr; }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  Tensor* tensor() const { return reinterpret_cast<Tensor*>(p_); }
  Tensor* operator->() const { return tensor(); }
  char* data() const { return p_ != nullptr ? tensor()->data : nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Releases the GIL around work that is worth it, and turns the kernel's std::bad_alloc into a MemoryError.
template <class F>
bool run_unlocked(int64_t elements, F&& f) {
  PyThreadState* state = elements > (1 << 14) ? PyEval_SaveThread() : nullptr;
  bool done = true;
  try {
    f();
  } catch (const std::exception&) {
    done = false;
  }
  if (state != nullptr) PyEval_RestoreThread(state);
  if (!done) PyErr_NoMemory();
  return done;
}

inline bool is_native(const Tensor* t) { return t->dtype == DType::Float32 || t->dtype == DType::Float64; }
inline bool is_half(const Tensor* t) { return t->dtype == DType::Float16 || t->dtype == DType::BFloat16; }
inline int type_index(DType dtype) { return dtype == DType::Float64; }

inline Tensor* tensor_or_null(const Arg& a) { return a.is_tensor() ? a.tensor : nullptr; }
inline Owned contiguous(Tensor* t) { return Owned(api->contiguous(t)); }
// Empty without an exception when there is no tensor; empty with one when it failed.
inline Owned contiguous_or_none(const Arg& a) { return a.is_tensor() ? contiguous(a.tensor) : Owned(); }
inline Owned empty(int ndim, const int64_t* sizes, DType dtype) {
  return Owned(api->empty(ndim, sizes, dtype, {kCPU, -1}));
}
inline Owned empty_like(const Tensor* t) { return empty(t->ndim, t->sizes, t->dtype); }

// Runs the portable definition of the op on the same arguments: for dtypes that have no native kernel.
PyObject* run_composite(Call& c);
// Half types compute in float32: runs the kernel of the op on converted arguments, and converts its results.
PyObject* run_wide(Call& c);
// A tuple of owned references, None where empty.
PyObject* tuple_of(std::initializer_list<Owned*> items);

// The sizes of an argument of type Any: one integer for all of them, or a sequence of `n` or one. False without an
// exception: not that, and the portable definition says why.
bool read_sizes(const Arg& a, int n, int64_t* sizes);

bool register_attention();
bool register_bag();
bool register_conv();
bool register_ctc();
bool register_image();
bool register_linear();
bool register_pad();
bool register_pool();
bool register_norm();
bool register_loss();
bool register_optim();
bool register_rnn();

}  // namespace rl
