// Operators and calls: what the dispatcher hands to layers and kernels. Plain structs, part of the ABI.
#pragma once
#include "tensor.h"

namespace rl {

enum class Kind : uint8_t { None, Tensor, Tensors, Int, Float, Complex, Bool, Ints, Floats, DType, Device, Object };

// One argument. Borrowed: the call that parsed it keeps it alive.
struct Arg {
  Kind kind = Kind::None;
  DType dtype{};      // Kind::DType
  Device device{};    // Kind::Device
  int32_t count = 0;  // Kind::Tensors, Ints, Floats
  union {
    struct Tensor* tensor;
    struct Tensor* const* tensors;
    int64_t i;
    double d;  // Kind::Float, and the real part of Kind::Complex
    const int64_t* ints;
    const double* floats;
    PyObject* object;
  };
  double imag = 0;
  Arg() : i(0) {}
  bool none() const { return kind == Kind::None; }
  bool is_tensor() const { return kind == Kind::Tensor; }
  bool is_number() const {
    return kind == Kind::Int || kind == Kind::Float || kind == Kind::Complex || kind == Kind::Bool;
  }
  // Numbers convert; the parser has checked the kind.
  double to_double() const { return kind == Kind::Float || kind == Kind::Complex ? d : static_cast<double>(i); }
  int64_t to_int() const { return kind == Kind::Float || kind == Kind::Complex ? static_cast<int64_t>(d) : i; }
  bool to_bool() const { return kind == Kind::Float ? d != 0 : kind == Kind::Complex ? d != 0 || imag != 0 : i != 0; }
};

// Arguments from values. A null tensor is None.
inline Arg arg(const Tensor* t) {
  Arg a;
  a.kind = t ? Kind::Tensor : Kind::None;
  a.tensor = const_cast<Tensor*>(t);
  return a;
}
inline Arg arg(int64_t i) {
  Arg a;
  a.kind = Kind::Int;
  a.i = i;
  return a;
}
inline Arg arg(double d) {
  Arg a;
  a.kind = Kind::Float;
  a.d = d;
  return a;
}
inline Arg arg(bool b) {
  Arg a;
  a.kind = Kind::Bool;
  a.i = b;
  return a;
}
inline Arg arg(const int64_t* v, int n) {
  Arg a;
  a.kind = Kind::Ints;
  a.ints = v;
  a.count = n;
  return a;
}
inline Arg arg(DType t) {
  Arg a;
  a.kind = Kind::DType;
  a.dtype = t;
  return a;
}

enum class ParamType : uint8_t {
  Tensor,
  Tensors,
  Int,
  Float,
  Bool,
  Scalar,
  Ints,
  Floats,
  Bools,
  Str,
  DType,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  Any
};

struct Param {
  const char* name;
  ParamType type;
  bool optional;  // `?`: None is accepted
  bool keyword_only;
  bool has_default;
  bool is_write;      // `(a!)`
  bool is_alias;      // `(a)`
  int32_t list_size;  // `int[2]`: a lone int stands for that many
  Arg default_value;
  PyObject* default_object;
};

enum class Family : uint8_t { Function, Pointwise, Reduction, View, Factory, Composite };

struct Op;
struct Call;

// Returns a new reference (Tensor, tuple or Python scalar), or null with a Python error set.
using Kernel = PyObject* (*)(Call&);

// A pointwise loop over n elements: data[0] is the output, the inputs follow; byte strides, 0 and negative ones
// included. All inputs have the compute dtype; `params` are the op's number parameters in it, one after the other.
using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const void* params);

struct Op {
  const char* name;    // "add", "linalg::inv", "max.dim"
  const char* schema;  // as written
  const Param* params;
  int nparams;
  int noutputs;  // tensors returned; 0: not a tensor
  Family family;
  uint8_t promote;       // family-specific, see dispatch/pointwise.h
  bool differentiable;   // false: never recorded by autograd
  bool returns_view;     // an output shares memory with params[0]
  bool inplace_only;     // the schema itself writes its first argument (copy_, fill_)
  bool accepts_numbers;  // Tensor params after the first may be Python numbers, which reach the kernel as numbers
  bool mixed_devices;    // arguments may live on different devices; it runs where the first one is
  bool takes_out;        // accepts out=
  Kernel impl;           // the family's prologue, or null
  Kernel kernels[kMaxDeviceTypes];        // native kernels by device type
  PyObject* py_kernels[kMaxDeviceTypes];  // Python kernels on tensors by device type
  PyObject* array_kernel;                 // Python, on backend arrays: fn(xp, *args)
  PyObject* composite;                    // Python, on tensors
  void* loops;                            // family-specific native table
  PyObject* record;                       // the Python Op
  PyObject* grad;                         // compiled gradient rule; owned, set by the autograd wheel
};

struct Call {
  const Op* op;
  Arg* args;           // op->nparams of them
  uint32_t flags;      // kLayerBits of all tensor arguments, or-ed
  Device device;       // where it runs
  bool inplace;        // write the result to args[0]
  uint8_t layer;       // first layer still to be asked
  PyObject* out;       // borrowed: a Tensor or tuple of Tensors for out=, or null
  PyObject* callable;  // borrowed: what the user called (for __torch_function__), or null
};

// A dispatch layer. It runs when (call.flags | thread word) has one of `on` and none of `off`.
struct Layer {
  const char* name;
  int order;  // lower runs first: overrides 0, modes 100, autograd 200
  uint32_t on, off;
  PyObject* (*call)(Call&, void* self);  // goes on by api->redispatch(call)
  void* self;
  bool sees_composites;  // false: a composite op is passed by, its parts are seen
};

// Bits of the thread word, beside the tensor flags.
enum ThreadBits : uint32_t {
  kNoGrad = 1u << 16,
  kInferenceMode = 1u << 17,
  kModes = 1u << 18,       // a Python mode is on the stack
  kNoOverride = 1u << 19,  // inside DisableTorchFunction
  kFirstFreeThreadBit = 1u << 20,
};

}  // namespace rl
