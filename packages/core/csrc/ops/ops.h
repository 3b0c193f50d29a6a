// The native side of the op library: each file registers its prologues and kernels by the name of the op.
#pragma once
#include "../dispatch/dispatch.h"

namespace rl {

PyObject* pointwise_impl(Call&);  // the prologue of Family::Pointwise

// x[key] and x[key] = value (ops/indexing.cpp).
PyObject* get_item(Tensor* self, PyObject* key);
void set_item(Tensor* self, PyObject* key, PyObject* value);
// The first dimension as a tuple of views, for iteration and unbind.
PyObject* unbind(Tensor* self, int64_t dim);

void register_convert_ops();
void register_copy_ops();
void register_distance_ops();
void register_factory_ops();
void register_fft_ops();
void register_matmul_ops();
void register_order_ops();
void register_random_ops();
void register_reduction_ops();
void register_softmax_ops();
void register_sparse_ops();

// A dimension argument as a bit mask. None and, where `empty_is_all`, the empty list stand for all dimensions.
uint64_t dim_mask(const char* op, const Arg& dim, int ndim, bool empty_is_all = true);

// The generator of an argument, the default one where it is None (python/generator.cpp).
class Generator;
Generator& generator_of(const Call&, const Arg&);
void init_generator_type(PyObject* module);

void register_gather_ops();
void register_indexing_ops();
void register_join_ops();
void register_view_ops();
void add_view_attributes();             // T, mT, H, mH, real, imag
void init_construct(PyObject* module);  // tensor, as_tensor, frombuffer …
void init_dlpack(PyObject* module);
// A tensor with the values of Python data: numbers, nested sequences, arrays (ops/construct.cpp).
Ref<Tensor> tensor_from_data(PyObject* data);
Ref<Tensor> tensor_from_dlpack(PyObject* source);  // an object that speaks DLPack, or a capsule

// ---- memory formats (ops/memory_format.cpp)
enum class MemoryFormat : uint8_t { Preserve, Contiguous, ChannelsLast, ChannelsLast3d };
Arg memory_format_arg(MemoryFormat);
MemoryFormat memory_format_from(const Arg&, MemoryFormat otherwise);
bool is_contiguous(const Tensor*, MemoryFormat);
Ref<Tensor> empty_formatted(const Tensor* like, DType, Device, MemoryFormat);
Ref<Tensor> empty_formatted(int ndim, const int64_t* sizes, DType, Device, MemoryFormat);  // any but Preserve
void init_memory_format(PyObject* module);

// Ops that C++ calls by name, looked up once.
class OpHandle {
 public:
  explicit constexpr OpHandle(const char* name) : name_(name) {}
  const OpRecord* get() {
    if (!op_) op_ = find_op(name_);
    if (!op_) fail(PyExc_NotImplementedError, "%s: the operator is not registered", name_);
    return op_;
  }

 private:
  const char* name_;
  const OpRecord* op_ = nullptr;
};

// The value of a number in a dtype, as loops and fills want it.
union Value {
  unsigned char bytes[16];
  int64_t i;
  double d;
  float f;
};
void store_number(const Arg& number, DType dtype, void* to);  // wraps integers, throws on what cannot be represented
bool fits(double number, DType integers);                     // between the limits; a fraction is cut
void store_limit(DType dtype, bool highest, void* to);        // an infinity, or the integer limit
// NaN, or the largest integer: for memory that would be uninitialised.
void fill_unknown(Tensor*);
// Work below this many elements keeps the GIL.
constexpr int64_t kUnlockAbove = 16384;

}  // namespace rl
