// The versioned C API: a table of functions that other wheels and third parties take from the capsule
// "rushlight._C._api". Compile with rushlight.get_include() on the include path, call rl::import_api() in module init.
//
// Every function needs the GIL unless its comment says otherwise. Functions that return PyObject* or int signal errors
// with null or -1 and a Python exception.
#pragma once
#include "gemm.h"
#include "op.h"

namespace rl {

constexpr uint32_t RL_ABI = 1;    // raised when a layout or a function changes
constexpr uint32_t RL_MINOR = 2;  // raised when functions are appended

struct Api {
  uint32_t abi, minor;
  PyTypeObject* tensor_type;

  // -- tensors
  PyObject* (*empty)(int ndim, const int64_t* sizes, DType, Device);
  PyObject* (*as_strided)(Tensor* base, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset);
  PyObject* (*contiguous)(Tensor*);       // itself (new reference) when it is already
  PyObject* (*to_dtype)(Tensor*, DType);  // itself (new reference) when it has it
  int (*copy)(Tensor* to, Tensor* from);  // broadcasts and converts; does not bump the version
  PyObject* (*from_number)(double re, double im, Kind kind, DType, Device);  // a 0-d tensor
  PyObject* (*detach)(Tensor*);  // shares storage and version counter, no history
  PyObject* (*array)(Tensor*);   // the backend array over its memory, new reference

  // -- operators
  Op* (*find_op)(const char* name);                    // null (no exception) if there is none
  PyObject* (*call)(const Op*, Arg* args, int nargs);  // whole dispatch; missing trailing arguments take their defaults
  PyObject* (*redispatch)(Call&);                      // from a layer: go on below it
  // The kernel of an op on a device type, and the CPU loop of a pointwise op for one compute dtype. The op may be
  // defined before or after.
  int (*register_kernel)(const char* op, const char* device_type, Kernel);
  int (*register_loop)(const char* op, DType compute, Loop);
  int (*register_layer)(const Layer*);     // copied
  PyObject* (*arg_to_object)(const Arg&);  // new reference
  uint32_t* (*thread_word)();              // this thread's bits; any thread with the GIL

  // -- memory and threads (no GIL needed)
  void* (*allocate)(size_t nbytes);  // 64-byte aligned, null when it cannot
  void (*deallocate)(void*, size_t nbytes);
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx);
  int (*num_threads)();

  // -- kernels that other wheels share (no GIL needed)
  // A matrix product on the thread pool; false: no kernel for the dtype (bool).
  bool (*gemm)(DType, const GemmArgs&);

  // -- the Tensor type: attributes that a wheel adds to it
  int (*add_method)(const char* name, PyObject* descriptor);

  // -- appended in minor version 1
  PyObject* (*call_inplace)(const Op*, Arg* args, int nargs);  // writes the result to args[0], which it returns

  // -- appended in minor version 2
  bool (*batch_invariant)();  // whether a row's result must not depend on the rows beside it (no GIL needed)
};

#ifndef RL_CORE
inline const Api* api = nullptr;

// Loads the table; -1 with ImportError when this extension was built for another ABI.
inline int import_api(const char* who) {
  auto* table = static_cast<const Api*>(PyCapsule_Import("rushlight._C._api", 0));
  if (!table) return -1;
  if (table->abi != RL_ABI || table->minor < RL_MINOR) {
    PyErr_Format(PyExc_ImportError,
                 "%s: built for rushlight C API %u.%u, but the installed rushlight-core has %u.%u. "
                 "Install matching versions of both wheels.",
                 who, RL_ABI, RL_MINOR, table->abi, table->minor);
    return -1;
  }
  api = table;
  return 0;
}
#endif

}  // namespace rl
