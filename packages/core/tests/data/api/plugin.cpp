// A plugin that uses every part of the C API of version 1.1, from the first function of the table to the last.
#include <rushlight/api.h>

using namespace rl;

// kept::scaled(Tensor self, float factor) -> Tensor, of contiguous float64 tensors
static PyObject* scaled(Call& call) {
  const Tensor* self = call.args[0].tensor;
  const double factor = call.args[1].to_double();
  if (self->dtype != DType::Float64 || !self->contiguous()) {
    PyErr_SetString(PyExc_RuntimeError, "kept::scaled: expected a contiguous float64 tensor");
    return nullptr;
  }
  PyObject* result = api->empty(self->ndim, self->sizes, self->dtype, self->device);
  if (!result) return nullptr;
  struct Work {
    const double* from;
    double* to;
    double factor;
  } work{reinterpret_cast<const double*>(self->data),
         reinterpret_cast<double*>(reinterpret_cast<Tensor*>(result)->data), factor};
  api->parallel_for(
      0, self->numel, 1,
      [](void* context, int64_t begin, int64_t end) {
        auto* w = static_cast<Work*>(context);
        for (int64_t i = begin; i < end; ++i) w->to[i] = w->from[i] * w->factor;
      },
      &work);
  return result;
}

// (tensor) -> tensor + tensor by the dispatcher, then times two in place, then as a 1-d view
static PyObject* through_the_table(PyObject*, PyObject* object) {
  auto* t = reinterpret_cast<Tensor*>(object);
  const Op *add = api->find_op("add.Tensor"), *mul = api->find_op("mul.Tensor");
  if (!add || !mul || Py_TYPE(object) != api->tensor_type)
    return PyErr_Format(PyExc_RuntimeError, "no such operator, or another type");
  Arg sum[3] = {arg(t), arg(t), arg(int64_t{1})};
  PyObject* total = api->call(add, sum, 3);
  if (!total) return nullptr;
  Arg product[2] = {arg(reinterpret_cast<Tensor*>(total)), arg(2.0)};
  PyObject* doubled = api->call_inplace(mul, product, 2);
  Py_DECREF(total);
  if (!doubled) return nullptr;
  const int64_t size = t->numel, stride = 1;
  PyObject* flat = api->as_strided(reinterpret_cast<Tensor*>(doubled), 1, &size, &stride, 0);
  Py_DECREF(doubled);
  return flat;
}

static PyObject* product(PyObject*, PyObject*) {
  const double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  double c[4];
  GemmArgs args;
  args.m = args.n = args.k = 2;
  args.a = a, args.a_row = 2, args.a_col = 1;
  args.b = b, args.b_row = 2, args.b_col = 1;
  args.c = c, args.c_row = 2, args.c_col = 1;
  if (!api->gemm(DType::Float64, args)) return PyErr_Format(PyExc_RuntimeError, "no kernel for float64");
  return Py_BuildValue("dddd", c[0], c[1], c[2], c[3]);
}

static PyObject* versions(PyObject*, PyObject*) {
  return Py_BuildValue("IIII", RL_ABI, RL_MINOR, api->abi, api->minor);
}

static PyMethodDef functions[] = {{"product", product, METH_NOARGS, nullptr},
                                  {"through_the_table", through_the_table, METH_O, nullptr},
                                  {"versions", versions, METH_NOARGS, nullptr},
                                  {}};
static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_kept", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__kept() {
  if (import_api("kept 1.0") < 0 || api->register_kernel("kept::scaled", "cpu", scaled) < 0) return nullptr;
  return PyModule_Create(&module);
}
