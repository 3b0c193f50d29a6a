// The Python type `Generator`.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <stdexcept>

#include "../ops/ops.h"
#include "../random/generator.h"

namespace rl {

namespace {

struct GeneratorObject {
  PyObject_HEAD Generator* generator;
  PyObject* weakrefs;
};
PyTypeObject* g_generator_type = nullptr;
Generator* g_default_generator = nullptr;

Generator& generator(PyObject* o) { return *reinterpret_cast<GeneratorObject*>(o)->generator; }

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"device", nullptr};
    PyObject* device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
    Device d{kCPU, -1};
    if (device != Py_None && !device_from_object(device, &d))
      fail(PyExc_TypeError, "Generator: device must be a str or a device, got %s.", Py_TYPE(device)->tp_name);
    if (d.type != kCPU)
      fail(PyExc_RuntimeError,
           "Generator: random numbers are drawn on the CPU for every device, got device=%s. Leave it out.",
           device_text(d).c_str());
    Ref<> self = Ref<>::check(type->tp_alloc(type, 0));
    reinterpret_cast<GeneratorObject*>(self.get())->generator = new Generator();
    return self.release();
  });
}

void destroy(PyObject* self) {
  auto* o = reinterpret_cast<GeneratorObject*>(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  delete o->generator;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> number = Ref<>::check(PyNumber_Index(seed));
    int overflow;
    uint64_t value =
        static_cast<uint64_t>(PyLong_AsLongLongAndOverflow(number.get(), &overflow));  // negative seeds wrap
    if (overflow > 0) value = PyLong_AsUnsignedLongLong(number.get());
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      Ref<> text = Ref<>::check(PyObject_Str(number.get()));
      fail(PyExc_ValueError, "Overflow when unpacking long long: manual_seed takes -2**63 to 2**64 - 1, got seed=%s.",
           PyUnicode_AsUTF8(text.get()));
    }
    generator(self).manual_seed(value);
    return Py_NewRef(self);
  });
}

PyObject* seed(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] { return PyLong_FromUnsignedLongLong(generator(self).seed()); });
}

PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator(self).initial_seed());
}

PyObject* get_state(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    const int64_t size = Generator::kStateBytes;
    Ref<Tensor> state = empty(1, &size, DType::UInt8, {kCPU, -1});
    generator(self).get_state(state->data);
    return state.release_object();
  });
}

PyObject* set_state(PyObject* self, PyObject* state) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!is_tensor(state) || as_tensor(state)->dtype != DType::UInt8 || !as_tensor(state)->is_cpu())
      fail(PyExc_TypeError, "RNG state must be a torch.ByteTensor on the CPU, got %s. Pass what get_state() returned.",
           is_tensor(state) ? describe(as_tensor(state)).c_str() : Py_TYPE(state)->tp_name);
    Ref<Tensor> bytes = contiguous(as_tensor(state));
    if (bytes->numel != Generator::kStateBytes)
      fail(PyExc_RuntimeError,
           "RNG state is wrong size: expected %lld bytes, got %lld. Pass what get_state() returned.",
           static_cast<long long>(Generator::kStateBytes), static_cast<long long>(bytes->numel));
    try {
      generator(self).set_state(bytes->data);
    } catch (const std::invalid_argument& error) {
      fail(PyExc_RuntimeError, "%s", error.what());
    }
    return Py_NewRef(self);
  });
}

PyObject* clone_state(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    Ref<> copy = Ref<>::check(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(g_generator_type)));
    generator(copy.get()) = generator(self);
    return copy.release();
  });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    char state[Generator::kStateBytes];
    generator(self).get_state(state);
    Ref<> restore = Ref<>::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_generator_type), "_from_bytes"));
    return Py_BuildValue("N(y#)", restore.release(), state, static_cast<Py_ssize_t>(sizeof state));
  });
}

PyObject* from_bytes(PyObject* type, PyObject* state) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!PyBytes_Check(state) || PyBytes_GET_SIZE(state) != Generator::kStateBytes)
      fail(PyExc_RuntimeError, "RNG state is wrong size");
    Ref<> self = Ref<>::check(PyObject_CallNoArgs(type));
    generator(self.get()).set_state(PyBytes_AS_STRING(state));
    return self.release();
  });
}

PyObject* get_device(PyObject*, void*) {
  return guard<PyObject*>(nullptr, [] { return device_object({kCPU, -1}); });
}

PyMethodDef methods[] = {{"manual_seed", manual_seed, METH_O, "Starts the stream of `seed` and returns the generator."},
                         {"seed", seed, METH_NOARGS, "Starts a stream from the system's entropy and returns its seed."},
                         {"initial_seed", initial_seed, METH_NOARGS, "The seed that the stream started from."},
                         {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor, in PyTorch's format."},
                         {"set_state", set_state, METH_O, "Goes on from a state that `get_state` returned."},
                         {"clone_state", clone_state, METH_NOARGS, "A new generator in the same state."},
                         {"_from_bytes", from_bytes, METH_O | METH_CLASS, nullptr},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef attributes[] = {{"device", get_device, nullptr, "Where it draws: always the CPU.", nullptr}, {}};
PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(GeneratorObject, weakrefs), READONLY, nullptr},
                         {}};

const char* const doc =
    R"(Generator(device='cpu')
--

A stream of random numbers: the Mersenne Twister with PyTorch's seeding, so that the same seed gives the same numbers.

Args:
    device: "cpu". Other devices draw on the CPU and copy.

Example:
    >>> g = rushlight.Generator().manual_seed(0)
    >>> rushlight.rand(2, generator=g)
    tensor([0.4963, 0.7682])
)";
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, attributes},
                       {Py_tp_members, members},
                       {Py_tp_doc, const_cast<char*>(doc)},
                       {0, nullptr}};
PyType_Spec spec = {"rushlight.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

Generator& generator_of(const Call& c, const Arg& a) {
  if (a.none()) return *g_default_generator;
  if (!PyObject_TypeCheck(a.object, g_generator_type))
    fail(PyExc_TypeError, "%s(): argument 'generator' must be Generator, not %s", c.op->name,
         Py_TYPE(a.object)->tp_name);
  return generator(a.object);
}

void init_generator_type(PyObject* module) {
  g_generator_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  if (PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(g_generator_type)) < 0)
    throw PythonError();
  Ref<> standard = Ref<>::check(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(g_generator_type)));
  g_default_generator = &generator(standard.get());
  g_default_generator->seed();
  if (PyModule_AddObjectRef(module, "default_generator", standard.get()) < 0) throw PythonError();
  standard.release();  // as old as the process
}

}  // namespace rl
