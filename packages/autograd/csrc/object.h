// Owned references and errors of this extension.
#pragma once
#include <rushlight/api.h>

#include <exception>
#include <new>
#include <utility>

namespace rl {

// Thrown once a Python exception is set; the boundary functions turn it into null or -1.
struct PythonError {};

template <class... A>
[[noreturn]] void raise(PyObject* type, const char* format, A... args) {
  PyErr_Format(type, format, args...);
  throw PythonError();
}

template <class T = PyObject>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* owned) : p_(owned) {}
  static Ref borrow(T* p) {
    Py_XINCREF(reinterpret_cast<PyObject*>(p));
    return Ref(p);
  }
  // Takes what a C API call returned; throws when that is null.
  static Ref check(PyObject* owned) {
    if (!owned) throw PythonError();
    return Ref(reinterpret_cast<T*>(owned));
  }
  Ref(Ref&& o) noexcept : p_(o.release()) {}
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(object()); }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object()); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  explicit operator bool() const { return p_; }
  PyObject* object() const { return reinterpret_cast<PyObject*>(p_); }
  T* release() { return std::exchange(p_, nullptr); }

 private:
  T* p_ = nullptr;
};

inline PyObject* object(const void* p) { return static_cast<PyObject*>(const_cast<void*>(p)); }
inline Tensor* as_tensor(PyObject* o) { return reinterpret_cast<Tensor*>(o); }
inline bool is_tensor(PyObject* o) { return PyObject_TypeCheck(o, api->tensor_type); }
inline void check(int status) {
  if (status < 0) throw PythonError();
}

// Runs f at the boundary to Python.
template <class T, class F>
T guard(T failed, F&& f) noexcept {
  try {
    return f();
  } catch (const PythonError&) {
    return failed;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return failed;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return failed;
  }
}
template <class F>
PyObject* guard(F&& f) noexcept {
  return guard<PyObject*>(nullptr, std::forward<F>(f));
}

// Sets and clears bits of the thread word for its scope.
class ThreadBitsScope {
 public:
  ThreadBitsScope(uint32_t set, uint32_t clear) : word_(api->thread_word()), saved_(*word_) {
    *word_ = (saved_ & ~clear) | set;
    mask_ = set | clear;
  }
  ~ThreadBitsScope() { *word_ = (*word_ & ~mask_) | (saved_ & mask_); }
  ThreadBitsScope(const ThreadBitsScope&) = delete;
  ThreadBitsScope& operator=(const ThreadBitsScope&) = delete;

 private:
  uint32_t* word_;
  uint32_t saved_, mask_;
};

inline bool grad_enabled() { return !(*api->thread_word() & kNoGrad); }

}  // namespace rl
