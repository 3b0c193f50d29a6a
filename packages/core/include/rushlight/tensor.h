// The tensor: a Python object that is itself the handle, over a storage that views share.
// Layouts in this file are part of the ABI (see RL_ABI in api.h). Everything here is guarded by the GIL.
#pragma once
#include <Python.h>

#include "dtype.h"

namespace rl {

// A device type is an index into the registry: 0 is cpu, 1 is meta, further ones are given as backends register.
struct Device {
  uint8_t type;
  int8_t index;  // -1: the type's only or current device
  bool operator==(Device o) const { return type == o.type && index == o.index; }
  bool operator!=(Device o) const { return !(*this == o); }
};
constexpr uint8_t kCPU = 0;
constexpr uint8_t kMeta = 1;
constexpr int kMaxDeviceTypes = 16;

// Memory that tensors share. `owner` keeps foreign memory alive (an ndarray, a DLPack capsule, a backend's buffer).
struct Storage {
  int64_t refs;
  void* data;  // host address, null where the device's memory is not the host's
  int64_t nbytes;
  PyObject* owner;   // null: `data` came from the caching allocator; of a tensor with kLayout, its payload
  Storage* alias;    // `tensor.data`: same memory, a version counter of its own
  uint32_t version;  // bumped by every in-place write
  Device device;
  bool read_only;  // from a read-only buffer
};

constexpr int kInlineDims = 5;
constexpr int kMaxRank = 64;

enum TensorFlags : uint32_t {
  // Bits that dispatch layers react to, or-ed over the arguments of a call.
  kRequiresGrad = 1u << 0,
  kOverride = 1u << 1,   // the type overrides __torch_function__
  kInference = 1u << 2,  // made in inference mode
  kDual = 1u << 3,       // carries a forward-mode tangent
  kView = 1u << 4,       // a view: its base may have come to require grad
  kLayout = 1u << 5,     // not strided: a payload of the layout's own stands in for memory
  kLayerBits = 0xffu,
  // Properties of one tensor.
  kContiguous = 1u << 8,
  kNoGradView = 1u << 9,  // a view that was made while gradients were off
  kWrapped = 1u << 10,    // a Python number as a 0-d tensor: the weakest category in type promotion
};

struct Tensor {
  PyObject_HEAD Storage* storage;
  char* data;  // address of element 0, null where memory is not the host's
  int64_t numel;
  int64_t offset;  // elements from the start of the storage
  int64_t* sizes;  // ndim of them; strides (in elements) follow in the same block
  int64_t* strides;
  uint32_t flags;
  DType dtype;
  Device device;
  uint8_t ndim;
  uint32_t output_nr;  // which result of grad_fn this is; of a kNoGradView the version that it was made at
  PyObject* grad_fn;   // the node that made it; owned, set by the autograd wheel
  PyObject* autograd;  // what else the autograd wheel keeps here (grad, hooks); owned
  Tensor* base;        // the tensor of which this is a view; owned
  PyObject* array;     // the backend array over the same memory, made when first asked for
  PyObject* dict;
  PyObject* weakrefs;
  int64_t dims[2 * kInlineDims];

  bool contiguous() const { return flags & kContiguous; }
  bool is_cpu() const { return device.type == kCPU; }
  int64_t nbytes() const { return numel * itemsize(dtype); }
};

// Also of a view whose base came to require it, or that was made in no_grad.
inline bool requires_grad(const Tensor* t) {
  return (t->flags | (t->base ? t->base->flags : 0)) & kRequiresGrad && is_inexact(t->dtype);
}

}  // namespace rl
