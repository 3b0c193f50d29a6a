// Devices: the registry of device types and the Python type `device`.
#include <cstdarg>
#include <cstring>

#include "tensor.h"

namespace rl {

namespace {

struct DeviceType {
  std::string name, origin;
  PyObject* backend = nullptr;
};
DeviceType g_types[kMaxDeviceTypes];
int g_ntypes = 0;

struct DeviceObject {
  PyObject_HEAD Device value;
};
PyTypeObject* g_device_type = nullptr;
PyObject* g_cpu_object = nullptr;
// Given by Python: find(name) registers a device type or raises the error that lists the known ones; open(name) gives
// its backend, opened.
PyObject* g_find_hook = nullptr;
PyObject* g_open_hook = nullptr;

uint8_t find_or_load(const std::string& name) {
  int i = find_device_type(name.c_str());
  if (i >= 0) return static_cast<uint8_t>(i);
  if (g_find_hook) {
    Ref<>::check(PyObject_CallFunction(g_find_hook, "s", name.c_str()));
    i = find_device_type(name.c_str());
    if (i >= 0) return static_cast<uint8_t>(i);
  }
  fail(PyExc_RuntimeError, "device: unknown device type, got '%s'. Install or register a backend for it.",
       name.c_str());
}

Device parse(const char* text) {
  const char* colon = std::strchr(text, ':');
  std::string type = colon ? std::string(text, colon) : text;
  long index = -1;
  if (colon) {
    char* end;
    index = std::strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || index < 0 || index > 127 || (colon[1] == '0' && colon[2]))
      fail(PyExc_RuntimeError, "Invalid device string: '%s'. Write TYPE or TYPE:INDEX, as 'cpu' or 'cuda:0'.", text);
  }
  if (type.empty()) fail(PyExc_RuntimeError, "Device string must not be empty");
  return {find_or_load(type), static_cast<int8_t>(index)};
}

PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* type;
    PyObject* index = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index))
      return nullptr;
    Device d;
    if (!device_from_object(type, &d))
      fail(PyExc_TypeError, "device(): argument 'type' must be str, int or device, not %s", Py_TYPE(type)->tp_name);
    if (index != Py_None) {
      if (d.index >= 0)
        fail(PyExc_RuntimeError, "type (string) must not include an index because index was passed explicitly: %s",
             device_text(d).c_str());
      long i = PyLong_AsLong(index);
      if (i == -1 && PyErr_Occurred()) return nullptr;
      if (i < 0 || i > 127) fail(PyExc_RuntimeError, "Device index must not be negative and at most 127, got %ld", i);
      d.index = static_cast<int8_t>(i);
    }
    return device_object(d);
  });
}

Device value_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->value; }
PyObject* repr(PyObject* self) {
  Device d = value_of(self);
  return d.index < 0 ? PyUnicode_FromFormat("device(type='%s')", device_type_name(d.type))
                     : PyUnicode_FromFormat("device(type='%s', index=%d)", device_type_name(d.type), d.index);
}
PyObject* str(PyObject* self) { return PyUnicode_FromString(device_text(value_of(self)).c_str()); }
PyObject* get_type(PyObject* self, void*) { return PyUnicode_FromString(device_type_name(value_of(self).type)); }
PyObject* get_index(PyObject* self, void*) {
  int i = value_of(self).index;
  return i < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(i);
}
Py_hash_t hash(PyObject* self) { return value_of(self).type * 1000 + value_of(self).index + 1; }
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(b) != g_device_type || (op != Py_EQ && op != Py_NE)) return Py_NewRef(Py_NotImplemented);
  return PyBool_FromLong((value_of(a) == value_of(b)) == (op == Py_EQ));
}
PyObject* reduce(PyObject* self, PyObject*) {
  return Py_BuildValue("O(N)", g_device_type, PyUnicode_FromString(device_text(value_of(self)).c_str()));
}

// `with device:` makes it the default; contexts nest.
thread_local std::vector<Device> t_outer;
PyObject* enter(PyObject* self, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    t_outer.push_back(g_default_device);
    g_default_device = value_of(self);
    return Py_NewRef(self);
  });
}
PyObject* leave(PyObject*, PyObject*) {
  if (t_outer.empty()) return PyErr_Format(PyExc_RuntimeError, "device.__exit__: no context of a device is open.");
  g_default_device = t_outer.back();
  t_outer.pop_back();
  Py_RETURN_NONE;
}

PyGetSetDef getset[] = {{"type", get_type, nullptr, "The device type, as 'cpu'.", nullptr},
                        {"index", get_index, nullptr, "Which device of the type, or None.", nullptr},
                        {}};
PyMethodDef methods[] = {{"__enter__", enter, METH_NOARGS, "Makes it the default device of this thread."},
                         {"__exit__", leave, METH_VARARGS, "Makes the one before the default again."},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_str, reinterpret_cast<void*>(str)},
                       {Py_tp_hash, reinterpret_cast<void*>(hash)},
                       {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                       {Py_tp_getset, getset},
                       {Py_tp_methods, methods},
                       {Py_tp_doc, const_cast<char*>("Where a tensor lives: a device type and, where there are "
                                                     "several, an index. As a context it is the default.")},
                       {}};
PyType_Spec spec = {"rushlight.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};

PyObject* new_device_object(Device d) {
  auto* o = PyObject_New(DeviceObject, g_device_type);
  if (!o) throw PythonError();
  o->value = d;
  return reinterpret_cast<PyObject*>(o);
}

}  // namespace

PyObject* device_object(Device d) {
  if (d.type == kCPU && d.index < 0) return Py_NewRef(g_cpu_object);
  return new_device_object(d);
}

bool device_from_object(PyObject* o, Device* out) {
  if (Py_TYPE(o) == g_device_type) {
    *out = value_of(o);
    return true;
  }
  if (PyUnicode_Check(o)) {
    const char* text = PyUnicode_AsUTF8(o);
    if (!text) throw PythonError();
    *out = parse(text);
    return true;
  }
  if (PyLong_Check(o) && !PyBool_Check(o)) {  // an accelerator's index
    long i = PyLong_AsLong(o);
    if (i < 0 || i > 127) {
      PyErr_Clear();
      fail(PyExc_RuntimeError, "Device index must be in 0 to 127, got a number outside it");
    }
    *out = {find_or_load("cuda"), static_cast<int8_t>(i)};
    return true;
  }
  return false;
}

Device resolve(Device d) {
  if (d.index >= 0) {
    if (d.type == kCPU || d.type == kMeta) d.index = -1;
    return d;
  }
  if (d.type == kCPU || d.type == kMeta) return d;
  Ref<> index = backend_call(d.type, "current_device", "()");
  long i = PyLong_Check(index.get()) ? PyLong_AsLong(index.get()) : -1;
  if (i < 0 || i > 127) {
    PyErr_Clear();
    Ref<> text = Ref<>::check(PyObject_Repr(index.get()));
    fail(PyExc_RuntimeError, "%s: current_device() must return an index from 0 to 127, got %s.",
         device_origin(d.type).c_str(), PyUnicode_AsUTF8(text.get()));
  }
  d.index = static_cast<int8_t>(i);
  return d;
}

uint8_t register_device_type(const char* name, const char* origin) {
  int i = find_device_type(name);
  if (i >= 0) return static_cast<uint8_t>(i);
  if (g_ntypes == kMaxDeviceTypes)
    fail(PyExc_RuntimeError, "register_device_type: at most %d device types, got one more: '%s'", kMaxDeviceTypes,
         name);
  g_types[g_ntypes].name = name;
  g_types[g_ntypes].origin = origin;
  return static_cast<uint8_t>(g_ntypes++);
}

int find_device_type(const char* name) {
  for (int i = 0; i < g_ntypes; ++i)
    if (g_types[i].name == name) return i;
  return -1;
}
const char* device_type_name(uint8_t type) { return g_types[type].name.c_str(); }

std::string device_origin(uint8_t type) {
  std::string text = "device type '" + g_types[type].name + "'";
  return g_types[type].origin.empty() ? text : text + " of " + g_types[type].origin;
}

void note_origin(uint8_t type) {
  if (g_types[type].origin.empty()) return;
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyErr_NormalizeException(&kind, &value, &trace);
  Ref<> done(PyObject_CallMethod(value, "add_note", "s", ("raised by " + device_origin(type)).c_str()));
  if (!done) PyErr_Clear();
  PyErr_Restore(kind, value, trace);
}

Ref<> backend_call(uint8_t type, const char* method, const char* format, ...) {
  va_list values;
  va_start(values, format);
  Ref<> args(Py_VaBuildValue(format, values));
  va_end(values);
  if (!args) throw PythonError();
  Ref<> fn = Ref<>::check(PyObject_GetAttrString(backend_of(type), method));
  Ref<> result(PyObject_CallObject(fn.get(), args.get()));
  if (!result) {
    note_origin(type);
    throw PythonError();
  }
  return result;
}

PyObject* backend_of(uint8_t type) {
  PyObject*& backend = g_types[type].backend;
  if (!backend) {
    if (!g_open_hook)
      fail(PyExc_RuntimeError, "device type '%s': backends cannot be opened before rushlight is imported",
           device_type_name(type));
    backend = Ref<>::check(PyObject_CallFunction(g_open_hook, "s", device_type_name(type))).release();
  }
  return backend;
}

void set_device_hook(const char* name, PyObject* hook) {
  PyObject** slot = !std::strcmp(name, "find_device_type") ? &g_find_hook : &g_open_hook;
  Py_INCREF(hook);
  Py_XSETREF(*slot, hook);
}

void init_device_type(PyObject* module) {
  register_device_type("cpu");
  register_device_type("meta");
  g_device_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  g_cpu_object = new_device_object({kCPU, -1});
  PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(g_device_type));
}

}  // namespace rl
