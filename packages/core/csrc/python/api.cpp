// The table behind rushlight/api.h.
#include "../allocator.h"
#include "../determinism.h"
#include "../kernels/gemm.h"
#include "../ops/ops.h"
#include "../parallel.h"

namespace rl {

namespace {

PyObject* as_object(Ref<Tensor>&& t) { return t.release_object(); }

const Api table = {
    RL_ABI,
    RL_MINOR,
    nullptr,
    [](int ndim, const int64_t* sizes, DType dtype, Device device) {
      return guard<PyObject*>(nullptr, [&] { return as_object(empty(ndim, sizes, dtype, device)); });
    },
    [](Tensor* base, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
      return guard<PyObject*>(nullptr, [&] { return as_object(view(base, ndim, sizes, strides, offset)); });
    },
    [](Tensor* t) { return guard<PyObject*>(nullptr, [&] { return as_object(contiguous(t)); }); },
    [](Tensor* t, DType d) { return guard<PyObject*>(nullptr, [&] { return as_object(to_dtype(t, d)); }); },
    [](Tensor* to, Tensor* from) {
      return guard<int>(-1, [&] {
        copy_into(to, from);
        return 0;
      });
    },
    [](double re, double im, Kind kind, DType dtype, Device device) {
      return guard<PyObject*>(nullptr, [&] {
        Arg a = kind == Kind::Float || kind == Kind::Complex ? arg(re) : arg(static_cast<int64_t>(re));
        a.kind = kind;
        a.imag = im;
        return as_object(from_number(a, dtype, device));
      });
    },
    [](Tensor* t) { return guard<PyObject*>(nullptr, [&] { return as_object(detach(t)); }); },
    [](Tensor* t) { return guard<PyObject*>(nullptr, [&] { return array_of(t); }); },
    [](const char* name) -> Op* { return find_op(name); },
    [](const Op* op, Arg* args, int nargs) {
      return guard<PyObject*>(nullptr, [&] { return call(op, args, nargs).release(); });
    },
    [](Call& c) { return guard<PyObject*>(nullptr, [&] { return dispatch(c); }); },
    [](const char* name, const char* device, Kernel kernel) {
      return guard<int>(-1, [&] {
        add_kernel(name, device, kernel);
        return 0;
      });
    },
    [](const char* name, DType compute, Loop loop) {
      return guard<int>(-1, [&] {
        add_loop(name, compute, loop);
        return 0;
      });
    },
    [](const Layer* layer) {
      return guard<int>(-1, [&] {
        register_layer(*layer);
        return 0;
      });
    },
    [](const Arg& a) { return guard<PyObject*>(nullptr, [&] { return arg_to_object(a); }); },
    [] { return &thread_word(); },
    [](size_t nbytes) -> void* {
      try {
        return allocate(nbytes);
      } catch (const std::bad_alloc&) {
        return nullptr;
      }
    },
    [](void* p, size_t nbytes) { deallocate(p, nbytes); },
    [](int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx) {
      if (end > begin) parallel_run(begin, end, grain, fn, ctx);
    },
    [] { return num_threads(); },
    [](DType d, const GemmArgs& g) { return gemm(d, g); },
    [](const char* name, PyObject* descriptor) {
      return guard<int>(-1, [&] {
        add_tensor_attribute(name, descriptor);
        return 0;
      });
    },
    [](const Op* op, Arg* args, int nargs) {
      return guard<PyObject*>(nullptr, [&] { return call(op, args, nargs, true).release(); });
    },
    [] { return g_determinism.batch_invariant.load(); },
};

}  // namespace

PyObject* api_capsule() {
  static Api live = table;
  live.tensor_type = g_tensor_type;
  return PyCapsule_New(&live, "rushlight._C._api", nullptr);
}

}  // namespace rl
