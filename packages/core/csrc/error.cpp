#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace rl {

void fail(PyObject* type, const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int n = std::vsnprintf(nullptr, 0, format, args);
  va_end(args);
  std::string text(n > 0 ? n : 0, '\0');
  if (n > 0) std::vsnprintf(&text[0], n + 1, format, again);
  va_end(again);
  throw Error(type, std::move(text));
}

void set_current_exception() noexcept {
  try {
    throw;
  } catch (const Error& e) {
    PyErr_SetString(e.type, e.message.c_str());
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "rushlight: an error was signalled without an exception");
  } catch (const std::bad_alloc&) {
    PyErr_SetString(
        PyExc_RuntimeError,
        "not enough memory: the allocator could not get the bytes it was asked for. Free tensors or ask for less.");
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "rushlight: unknown C++ exception");
  }
}

}  // namespace rl
