// Errors inside C++: thrown as rl::Error, turned into Python exceptions at the boundary (guard).
#pragma once
#include <Python.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace rl {

struct Error : std::exception {
  PyObject* type;  // a static exception type, borrowed
  std::string message;
  Error(PyObject* type, std::string message) : type(type), message(std::move(message)) {}
  const char* what() const noexcept override { return message.c_str(); }
};

// A Python exception is already set.
struct PythonError : std::exception {};

// printf-style; understands what PyErr_Format does not: %s, %d, %lld, %g of plain C.
[[noreturn]] void fail(PyObject* type, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

void set_current_exception() noexcept;  // inside a catch block: sets the Python error that corresponds

// Runs f, which returns T; on an exception sets the Python error and returns `failed`.
template <class T, class F>
T guard(T failed, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_current_exception();
    return failed;
  }
}

// An owned reference.
template <class T = PyObject>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* owned) : p_(owned) {}
  static Ref borrow(T* p) {
    Py_XINCREF(reinterpret_cast<PyObject*>(p));
    return Ref(p);
  }
  // Takes a new reference from a CPython call, throws when it is null.
  static Ref check(T* owned) {
    if (!owned) throw PythonError();
    return Ref(owned);
  }
  Ref(Ref&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(reinterpret_cast<PyObject*>(p_)); }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(reinterpret_cast<PyObject*>(p_)); }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  explicit operator bool() const { return p_; }
  T* release() {
    T* p = p_;
    p_ = nullptr;
    return p;
  }
  PyObject* object() const { return reinterpret_cast<PyObject*>(p_); }
  PyObject* release_object() { return reinterpret_cast<PyObject*>(release()); }

 private:
  T* p_ = nullptr;
};

// Releases the GIL for its scope when `when` holds (small work is not worth it).
class Unlocked {
 public:
  explicit Unlocked(bool when = true) : state_(when ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_) PyEval_RestoreThread(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace rl
