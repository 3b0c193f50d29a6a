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

constexpr struct {
  Algorithm algorithm;
  const char* name;
} kAlgorithms[] = {{Algorithm::MersenneTwister, "mt19937"}, {Algorithm::Philox, "philox4x32-10"}};

const char* algorithm_name(const Generator& g) { return kAlgorithms[static_cast<int>(g.algorithm())].name; }

Ref<> wrap(PyTypeObject* type, const Generator& g) {
  Ref<> self = Ref<>::check(type->tp_alloc(type, 0));
  reinterpret_cast<GeneratorObject*>(self.get())->generator = new Generator(g);
  return self;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"device", "algorithm", nullptr};
    PyObject* device = Py_None;
    const char* algorithm = kAlgorithms[0].name;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$s:Generator", const_cast<char**>(names), &device, &algorithm))
      return nullptr;
    Device d{kCPU, -1};
    if (device != Py_None && !device_from_object(device, &d))
      fail(PyExc_TypeError, "Generator: device must be a str or a device, got %s.", Py_TYPE(device)->tp_name);
    if (d.type != kCPU)
      fail(PyExc_RuntimeError,
           "Generator: random numbers are drawn on the CPU for every device, got device=%s. Leave it out.",
           device_text(d).c_str());
    for (const auto& known : kAlgorithms) {
      if (!std::strcmp(algorithm, known.name))
        return wrap(type, Generator(Generator::kDefaultSeed, known.algorithm)).release();
    }
    fail(PyExc_ValueError, "Generator: algorithm must be 'mt19937' or 'philox4x32-10', got algorithm='%s'.", algorithm);
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
    const int64_t size = generator(self).state_bytes();
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
    const int64_t size = generator(self).state_bytes();
    if (bytes->numel != size)
      fail(PyExc_RuntimeError,
           "RNG state is wrong size: expected %lld bytes of %s, got %lld. Pass what get_state() returned.",
           static_cast<long long>(size), algorithm_name(generator(self)), static_cast<long long>(bytes->numel));
    try {
      generator(self).set_state(bytes->data);
    } catch (const std::invalid_argument& error) {
      fail(PyExc_RuntimeError, "%s", error.what());
    }
    return Py_NewRef(self);
  });
}

PyObject* get_offset(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    if (!generator(self).counts())
      fail(PyExc_RuntimeError, "CPU Generator does not use offset: only the algorithm philox4x32-10 does, this is %s.",
           algorithm_name(generator(self)));
    return PyLong_FromUnsignedLongLong(generator(self).offset());
  });
}

PyObject* set_offset(PyObject* self, PyObject* offset) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!generator(self).counts())
      fail(PyExc_RuntimeError, "CPU Generator does not use offset: only the algorithm philox4x32-10 does, this is %s.",
           algorithm_name(generator(self)));
    Ref<> number = Ref<>::check(PyNumber_Index(offset));
    const uint64_t words = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred()) throw PythonError();
    generator(self).set_offset(words);
    return Py_NewRef(self);
  });
}

PyObject* clone_state(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] { return wrap(g_generator_type, generator(self)).release(); });
}

// Pickles as a function of the name of the algorithm and the bytes of the state.
PyObject* reduce(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    char state[Generator::kMaxStateBytes];
    generator(self).get_state(state);
    Ref<> restore = Ref<>::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(g_generator_type), "_restore"));
    return Py_BuildValue("N(sy#)", restore.release(), algorithm_name(generator(self)), state,
                         static_cast<Py_ssize_t>(generator(self).state_bytes()));
  });
}

PyObject* restore(PyObject* type, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char *algorithm, *state;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "sy#", &algorithm, &state, &size)) return nullptr;
    Ref<> options = Ref<>::check(Py_BuildValue("{ss}", "algorithm", algorithm));
    Ref<> none = Ref<>::check(PyTuple_New(0));
    Ref<> self = Ref<>::check(PyObject_Call(type, none.get(), options.get()));
    if (size != generator(self.get()).state_bytes())
      fail(PyExc_RuntimeError, "RNG state is wrong size: got %lld bytes of %s.", static_cast<long long>(size),
           algorithm);
    generator(self.get()).set_state(state);
    return self.release();
  });
}

PyObject* get_algorithm(PyObject* self, void*) { return PyUnicode_FromString(algorithm_name(generator(self))); }

PyObject* get_device(PyObject*, void*) {
  return guard<PyObject*>(nullptr, [] { return device_object({kCPU, -1}); });
}

PyMethodDef methods[] = {{"manual_seed", manual_seed, METH_O, "Starts the stream of `seed` and returns the generator."},
                         {"seed", seed, METH_NOARGS, "Starts a stream from the system's entropy and returns its seed."},
                         {"initial_seed", initial_seed, METH_NOARGS, "The seed that the stream started from."},
                         {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor, in PyTorch's format."},
                         {"set_state", set_state, METH_O, "Goes on from a state that `get_state` returned."},
                         {"clone_state", clone_state, METH_NOARGS, "A new generator in the same state."},
                         {"get_offset", get_offset, METH_NOARGS, "Words drawn since seeding (philox4x32-10 only)."},
                         {"set_offset", set_offset, METH_O, "Goes on at a word of the stream (philox4x32-10 only)."},
                         {"_restore", restore, METH_VARARGS | METH_CLASS, nullptr},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef attributes[] = {{"device", get_device, nullptr, "Where it draws: always the CPU.", nullptr},
                            {"algorithm", get_algorithm, nullptr, "Name of the algorithm.", nullptr},
                            {}};
PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(GeneratorObject, weakrefs), READONLY, nullptr},
                         {}};

const char* const doc =
    R"(Generator(device='cpu', *, algorithm='mt19937')
--

A stream of random numbers: with the Mersenne Twister and PyTorch's seeding, so that the same seed gives the same numbers.

Args:
    device: "cpu". Other devices draw on the CPU and copy.
    algorithm: "mt19937", PyTorch's, or "philox4x32-10", which PyTorch has on GPUs only (Salmon, Moraes, Dror and Shaw,
        "Parallel random numbers: as easy as 1, 2, 3", 2011). Philox draws on several threads, and a stream does not
        depend on how it is split: n numbers and then m of the same distribution and dtype are the numbers of one draw
        of n + m. `set_offset` goes anywhere in the stream at once.

Raises:
    RuntimeError: Another device.
    ValueError: Another algorithm.

Example:
    >>> g = rushlight.Generator().manual_seed(0)
    >>> rushlight.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    >>> g = rushlight.Generator(algorithm="philox4x32-10").manual_seed(0)
    >>> ab, c = rushlight.rand(2, generator=g), rushlight.rand(1, generator=g)
    >>> rushlight.equal(rushlight.cat([ab, c]), rushlight.rand(3, generator=g.set_offset(0)))
    True
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
