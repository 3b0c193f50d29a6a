// The Python callable of an operator: parses arguments by schema, without Python objects in between.
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <cstring>

#include "dispatch.h"
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rushlight_numpy_api
#define NO_IMPORT_ARRAY
#include <numpy/arrayobject.h>

namespace rl {

PyTypeObject* g_operator_type = nullptr;

int64_t* Frame::reserve_ints(int64_t n) {
  if (nints + n <= static_cast<int64_t>(sizeof(ints) / sizeof(*ints))) {
    nints += static_cast<int>(n);
    return ints + nints - n;
  }
  heap.emplace_back(new char[n * sizeof(int64_t)]);
  return reinterpret_cast<int64_t*>(heap.back().get());
}

Tensor** Frame::reserve_tensors(int64_t n) {
  if (ntensors + n <= static_cast<int64_t>(sizeof(tensors) / sizeof(*tensors))) {
    ntensors += static_cast<int>(n);
    return tensors + ntensors - n;
  }
  heap.emplace_back(new char[n * sizeof(Tensor*)]);
  return reinterpret_cast<Tensor**>(heap.back().get());
}

std::string short_name(const Op* op) {
  std::string s = op->name;
  s.resize(std::min(s.find('.'), s.size()));
  const size_t at = s.find("::");
  if (at == std::string::npos) return s;
  return s.compare(0, at, "nn") == 0 ? s.substr(at + 2) : s.replace(at, 2, "_");
}

bool number_from_object(PyObject* o, Arg* out) {
  if (PyFloat_Check(o)) {
    out->kind = Kind::Float;
    out->d = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (PyBool_Check(o)) {
    out->kind = Kind::Bool;
    out->i = o == Py_True;
    return true;
  }
  if (PyLong_Check(o)) {
    int overflow;
    out->i = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
      fail(_PyLong_NumBits(o) > 64 ? PyExc_OverflowError : PyExc_RuntimeError,
           "value cannot be converted to type int64_t without overflow: a Python int beyond 64 bits. Use a float.");
    out->kind = Kind::Int;
    return true;
  }
  if (PyComplex_Check(o)) {
    out->kind = Kind::Complex;
    out->d = PyComplex_RealAsDouble(o);
    out->imag = PyComplex_ImagAsDouble(o);
    return true;
  }
  if (PyArray_IsScalar(o, Generic)) {
    Ref<> item(PyObject_CallMethod(o, "item", nullptr));
    if (!item) throw PythonError();
    return !PyArray_IsScalar(item.get(), Generic) && number_from_object(item.get(), out);
  }
  return false;
}

namespace {

bool has_override(PyObject* o) {  // an object of another library that takes part in __torch_function__
  if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyList_CheckExact(o) ||
      PyTuple_CheckExact(o))
    return false;
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__torch_function__");
}

bool int_from_object(PyObject* o, int64_t* out) {
  if (PyLong_CheckExact(o)) {
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) fail(PyExc_ValueError, "Overflow when unpacking long long: a Python int beyond 64 bits.");
    return true;
  }
  if (is_tensor(o)) {
    if (as_tensor(o)->numel != 1 || !is_integral(as_tensor(o)->dtype)) return false;
    *out = item(as_tensor(o)).to_int();
    return true;
  }
  if (PyFloat_Check(o) || !PyIndex_Check(o)) return false;
  Ref<> index(PyNumber_Index(o));
  if (!index) {
    PyErr_Clear();
    return false;
  }
  return int_from_object(index.get(), out);
}

const char* type_text(const Param& p) {
  switch (p.type) {
    case ParamType::Tensor: return "Tensor";
    case ParamType::Tensors: return "tuple of Tensors";
    case ParamType::Int: return "int";
    case ParamType::Float: return "float";
    case ParamType::Bool: return "bool";
    case ParamType::Scalar: return "Number";
    case ParamType::Ints: return "tuple of ints";
    case ParamType::Floats: return "tuple of floats";
    case ParamType::Bools: return "tuple of bools";
    case ParamType::Str: return "str";
    case ParamType::DType: return "torch.dtype";
    case ParamType::Layout: return "torch.layout";
    case ParamType::Device: return "torch.device";
    case ParamType::MemoryFormat: return "torch.memory_format";
    case ParamType::Generator: return "Generator";
    case ParamType::Any: return "object";
  }
  return "?";
}

// Converts one object; false: it does not fit the parameter.
bool convert(const OpRecord* op, int index, PyObject* o, Frame& f) {
  const Param& p = op->params[index];
  Arg& a = f.args()[index];
  if (o == Py_None && (p.optional || p.type == ParamType::Any || (p.has_default && p.default_value.none()))) {
    a = Arg();
    return true;
  }
  switch (p.type) {
    case ParamType::Tensor:
      if (is_tensor(o)) {
        a.kind = Kind::Tensor;
        a.tensor = as_tensor(o);
        return true;
      }
      if (index && op->accepts_numbers && number_from_object(o, &a)) return true;
      if (has_override(o)) {
        a.kind = Kind::Object;
        a.object = o;
        return true;
      }
      return false;
    case ParamType::Tensors: {
      if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      PyObject** items = PySequence_Fast_ITEMS(o);
      Tensor** out = f.reserve_tensors(n);
      for (Py_ssize_t i = 0; i < n; ++i) {
        if (!is_tensor(items[i])) return false;
        out[i] = as_tensor(items[i]);
      }
      a.kind = Kind::Tensors;
      a.count = static_cast<int32_t>(n);
      a.tensors = out;
      return true;
    }
    case ParamType::Int: {
      int64_t v;
      if (PyBool_Check(o) || !int_from_object(o, &v)) return false;
      a.kind = Kind::Int;
      a.i = v;
      return true;
    }
    case ParamType::Float:
    case ParamType::Scalar:
      if (!number_from_object(o, &a)) {
        if (!is_tensor(o) || as_tensor(o)->ndim || requires_grad(as_tensor(o)) || as_tensor(o)->flags & kDual ||
            as_tensor(o)->device.type == kMeta)
          return false;
        a = item(as_tensor(o));
      }
      if (p.type == ParamType::Float && a.kind != Kind::Float) {
        if (a.kind == Kind::Complex) return false;
        double d = a.to_double();
        a.kind = Kind::Float;
        a.d = d;
      }
      return true;
    case ParamType::Bool:
      if (!PyBool_Check(o)) {
        if (!PyArray_IsScalar(o, Bool)) return false;
        a.i = PyObject_IsTrue(o);
      } else {
        a.i = o == Py_True;
      }
      a.kind = Kind::Bool;
      return true;
    case ParamType::Ints:
    case ParamType::Bools: {
      int64_t v;
      if (p.type == ParamType::Ints && p.list_size && !PyBool_Check(o) && int_from_object(o, &v)) {
        int64_t* out = f.reserve_ints(p.list_size);
        for (int i = 0; i < p.list_size; ++i) out[i] = v;
        a.kind = Kind::Ints;
        a.ints = out;
        a.count = p.list_size;
        return true;
      }
      if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      PyObject** items = PySequence_Fast_ITEMS(o);
      if (p.type == ParamType::Ints && n && PyBool_Check(items[0])) return false;
      int64_t* out = f.reserve_ints(n);
      for (Py_ssize_t i = 0; i < n; ++i) {
        if (p.type == ParamType::Bools) {
          if (!PyBool_Check(items[i])) return false;
          out[i] = items[i] == Py_True;
        } else if (!int_from_object(items[i], &out[i])) {
          return false;
        }
      }
      a.kind = Kind::Ints;
      a.ints = out;
      a.count = static_cast<int32_t>(n);
      return true;
    }
    case ParamType::Floats: {
      if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
      Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
      PyObject** items = PySequence_Fast_ITEMS(o);
      auto* out = reinterpret_cast<double*>(f.reserve_ints(n));
      for (Py_ssize_t i = 0; i < n; ++i) {
        Arg number;
        if (!number_from_object(items[i], &number)) return false;
        out[i] = number.to_double();
      }
      a.kind = Kind::Floats;
      a.floats = out;
      a.count = static_cast<int32_t>(n);
      return true;
    }
    case ParamType::Str:
      if (!PyUnicode_Check(o)) return false;
      break;
    case ParamType::DType: {
      DType d;
      if (!dtype_from_object(o, &d)) return false;
      a.kind = Kind::DType;
      a.dtype = d;
      return true;
    }
    case ParamType::Device: {
      Device d;
      if (!device_from_object(o, &d)) return false;
      a.kind = Kind::Device;
      a.device = d;
      return true;
    }
    default: break;  // layouts, memory formats, generators and anything else stay Python objects
  }
  a.kind = Kind::Object;
  a.object = o;
  return true;
}

// The name of a type without its module.
const char* type_name(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot ? dot + 1 : name;
}

struct Extras {
  PyObject* out = nullptr;
  bool pin_memory = false;
  bool requires_grad = false;
};

// True: the arguments fit. False: they do not, and `why` (when given) says so. Throws where no overload could fit.
bool parse(const OpRecord* op, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Frame& f, Extras& extra,
           std::string* why) {
  Arg* out = f.args();
  int n = op->nparams;
  f.nints = f.ntensors = 0;
  uint32_t given = 0;
  Py_ssize_t used = nargs;
  if (op->varargs >= 0 && nargs > op->varargs) {
    // Loose ints for the leading list: view(2, 3).
    Py_ssize_t first = op->varargs;
    PyObject* o = args[first];
    int64_t v;
    if (!PyList_Check(o) && !PyTuple_Check(o) && !PyBool_Check(o) && int_from_object(o, &v)) {
      int64_t* list = f.reserve_ints(nargs - first);
      for (Py_ssize_t i = first; i < nargs; ++i)
        if (!int_from_object(args[i], &list[i - first])) {
          if (why)
            *why = short_name(op) + "(): argument '" + op->params[first].name +
                   "' must be tuple of ints, but found element of type " + type_name(args[i]) + " at pos " +
                   std::to_string(i - first);
          return false;
        }
      Arg* a = new (out + first) Arg();
      a->kind = Kind::Ints;
      a->ints = list;
      a->count = static_cast<int32_t>(nargs - first);
      given |= 1u << first;
      used = first;
    }
  }
  if (used > op->npositional) {
    if (why)
      *why = short_name(op) + "() takes " + std::to_string(op->npositional) + " positional argument" +
             (op->npositional == 1 ? "" : "s") + " but " + std::to_string(nargs) + " were given";
    return false;
  }
  auto put = [&](int i, PyObject* o, Py_ssize_t position) {
    new (out + i) Arg();
    given |= 1u << i;
    if (convert(op, i, o, f)) return true;
    if (why) {
      *why = short_name(op) + "(): argument '" +
             (std::strcmp(op->params[i].name, "self") ? op->params[i].name : "input") + "'";
      if (position >= 0) *why += " (position " + std::to_string(position + 1) + ")";
      *why += std::string(" must be ") + type_text(op->params[i]) + ", not " + type_name(o);
    }
    return false;
  };
  for (Py_ssize_t i = 0; i < used; ++i)
    if (!put(static_cast<int>(i), args[i], i)) return false;
  if (kwnames) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); ++k) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, k);
      PyObject* value = args[nargs + k];
      int index = -1;
      for (auto& key : op->keys)
        if (key.first == name) index = key.second;
      if (index < 0)
        for (auto& key : op->keys)
          if (PyUnicode_Compare(key.first, name) == 0) index = key.second;
      if (index >= 0) {
        if (given & (1u << index)) {
          if (why) *why = short_name(op) + "() got multiple values for argument '" + PyUnicode_AsUTF8(name) + "'";
          return false;
        }
        if (!put(index, value, -1)) return false;
        if (op->family == Family::Factory && value == Py_True && !std::strcmp(op->params[index].name, "pin_memory"))
          extra.pin_memory = true;
        continue;
      }
      if (!PyUnicode_CompareWithASCIIString(name, "out") && op->takes_out) {
        if (value == Py_None) continue;
        bool fits = is_tensor(value);
        if (!fits && (PyTuple_Check(value) || PyList_Check(value)) && op->noutputs != 1) {
          f.owned.push_back(Ref<>::check(PySequence_Tuple(value)));
          value = f.owned.back().get();
          fits = true;
          for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) fits &= is_tensor(PyTuple_GET_ITEM(value, i));
        }
        if (!fits) {
          if (why) *why = short_name(op) + "(): argument 'out' must be Tensor, not " + type_name(value);
          return false;
        }
        extra.out = value;
        continue;
      }
      if (op->family == Family::Factory && !PyUnicode_CompareWithASCIIString(name, "requires_grad") &&
          PyBool_Check(value)) {
        extra.requires_grad = value == Py_True;
        continue;
      }
      if (why) *why = short_name(op) + "() got an unexpected keyword argument '" + PyUnicode_AsUTF8(name) + "'";
      return false;
    }
  }
  for (int i = 0; i < n; ++i) {
    if (given & (1u << i)) continue;
    const Param& p = op->params[i];
    if (!p.has_default && !(p.optional && p.keyword_only)) {
      if (why) {
        std::string missing = std::string("\"") + (std::strcmp(p.name, "self") ? p.name : "input") + "\"";
        *why = short_name(op) + "() missing 1 required positional arguments: " + missing;
      }
      return false;
    }
    new (out + i) Arg(p.default_value);
  }
  return true;
}

[[noreturn]] void no_overload(Operator* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  std::string name = PyUnicode_AsUTF8(self->name);
  if (self->overloads->size() == 1) {
    Frame f;
    Extras extra;
    std::string why;
    parse((*self->overloads)[0], args, nargs, kwnames, f, extra, &why);
    throw Error(PyExc_TypeError, why);
  }
  std::string text = name + "() received an invalid combination of arguments - got (";
  for (Py_ssize_t i = 0; i < nargs; ++i) text += (i ? ", " : "") + std::string(type_name(args[i]));
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    text += (nargs + i ? ", " : "") + std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, i))) + "=" +
            type_name(args[nargs + i]);
  text += "), but expected one of:";
  for (OpRecord* op : *self->overloads) {
    text += "\n * (";
    bool star = false;
    for (int i = 0; i < op->nparams; ++i) {
      const Param& p = op->params[i];
      if (i) text += ", ";
      if (p.keyword_only && !star) {
        text += "*, ";
        star = true;
      }
      text += std::string(type_text(p)) + " " + (std::strcmp(p.name, "self") ? p.name : "input");
    }
    text += ")";
  }
  throw Error(PyExc_TypeError, text);
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guard<PyObject*>(nullptr, [&] {
    return call_operator(reinterpret_cast<Operator*>(self), args, PyVectorcall_NARGS(nargsf), kwnames);
  });
}

PyObject* descr_get(PyObject* self, PyObject* obj, PyObject*) {
  return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}

PyObject* repr(PyObject* self) {
  auto* o = reinterpret_cast<Operator*>(self);
  return PyUnicode_FromFormat("<built-in operator %U>", o->name);
}

void dealloc(PyObject* self) {
  auto* o = reinterpret_cast<Operator*>(self);
  PyObject_GC_UnTrack(self);
  delete o->overloads;
  Py_CLEAR(o->name);
  Py_CLEAR(o->doc);
  Py_CLEAR(o->module);
  Py_CLEAR(o->dict);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<Operator*>(self)->dict);
  return 0;
}

PyObject* get_schemas(PyObject* self, void*) {
  auto* o = reinterpret_cast<Operator*>(self);
  PyObject* list = PyTuple_New(static_cast<Py_ssize_t>(o->overloads->size()));
  for (size_t i = 0; list && i < o->overloads->size(); ++i)
    PyTuple_SET_ITEM(list, i, PyUnicode_FromString((*o->overloads)[i]->schema));
  return list;
}
PyObject* get_records(PyObject* self, void*) {
  auto* o = reinterpret_cast<Operator*>(self);
  PyObject* list = PyList_New(0);
  for (OpRecord* op : *o->overloads)
    if (op->record) PyList_Append(list, op->record);
  return list;
}
PyObject* get_wrapped_none(PyObject*, void*) { return Py_NewRef(Py_None); }

PyMemberDef members[] = {{"__name__", T_OBJECT, offsetof(Operator, name), READONLY, nullptr},
                         {"__qualname__", T_OBJECT, offsetof(Operator, name), READONLY, nullptr},
                         {"__doc__", T_OBJECT, offsetof(Operator, doc), 0, nullptr},
                         {"__module__", T_OBJECT, offsetof(Operator, module), 0, nullptr},
                         {"__vectorcalloffset__", T_PYSSIZET, offsetof(Operator, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Operator, dict), READONLY, nullptr},
                         {}};
PyGetSetDef getset[] = {{"schemas", get_schemas, nullptr, "The schema of each overload.", nullptr},
                        {"records", get_records, nullptr, "The Op record of each overload.", nullptr},
                        {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                        {"__defaults__", get_wrapped_none, nullptr, nullptr, nullptr},
                        {}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(descr_get)},
                       {Py_tp_repr, reinterpret_cast<void*>(repr)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {}};
PyType_Spec spec = {"rushlight.Operator", sizeof(Operator), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* call_operator(Operator* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Frame f;
  Extras extra;
  const OpRecord* op = nullptr;
  for (OpRecord* candidate : *self->overloads)
    if (parse(candidate, args, nargs, kwnames, f, extra, nullptr)) {
      op = candidate;
      break;
    }
  if (!op) no_overload(self, args, nargs, kwnames);
  f.call = Call{op, f.args(), 0, {}, self->inplace, 0, extra.out, reinterpret_cast<PyObject*>(self)};
  complete(f.call);
  Ref<> result(dispatch(f.call));
  if (result && extra.pin_memory) result = Ref<>(PyObject_CallMethod(result.get(), "pin_memory", nullptr));
  if (result && extra.requires_grad && PyObject_SetAttrString(result.get(), "requires_grad", Py_True) < 0)
    return nullptr;
  return result.release();
}

Operator* new_operator(const char* name, bool inplace) {
  auto* o = PyObject_GC_New(Operator, g_operator_type);
  if (!o) throw PythonError();
  o->vectorcall = vectorcall;
  o->overloads = new std::vector<OpRecord*>();
  o->name = PyUnicode_InternFromString(name);
  o->doc = Py_NewRef(Py_None);
  o->module = PyUnicode_InternFromString("rushlight");
  o->dict = nullptr;
  o->inplace = inplace;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(o));
  return o;
}

void init_operator_type(PyObject* module) {
  g_operator_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&spec)).release());
  PyModule_AddObjectRef(module, "Operator", reinterpret_cast<PyObject*>(g_operator_type));
}

}  // namespace rl
