// The extension module rushlight._C: what Python needs of the engine, and the capsule of the C API.
#include <cstring>

#include "../allocator.h"
#include "../determinism.h"
#include "../dispatch/layers.h"
#include "../kernels/pointwise.h"
#include "../ops/ops.h"
#include "../parallel.h"

namespace rl {

void bind_slot(Operator*);
void set_tensor_hook(const char* name, PyObject* fn);
void set_device_hook(const char* name, PyObject* hook);
PyObject* api_capsule();

namespace {

Family family_from(const char* s) {
  static const std::pair<const char*, Family> all[] = {
      {"function", Family::Function}, {"pointwise", Family::Pointwise}, {"reduction", Family::Reduction},
      {"view", Family::View},         {"factory", Family::Factory},     {"composite", Family::Composite}};
  for (auto& [name, family] : all)
    if (!std::strcmp(name, s)) return family;
  fail(PyExc_ValueError,
       "parse_op: unknown family '%s', known are composite, factory, function, pointwise, reduction, view", s);
}

Promote promote_from(const char* s) {
  static const std::pair<const char*, Promote> all[] = {{"same", Promote::Same},
                                                        {"float", Promote::Float},
                                                        {"bool", Promote::Bool},
                                                        {"real", Promote::Real},
                                                        {"float_real", Promote::FloatReal},
                                                        {"where", Promote::Where},
                                                        {"scalars", Promote::Scalars},
                                                        {"none", Promote::None},
                                                        {"minus", Promote::Minus},
                                                        {"equal", Promote::Equal},
                                                        {"quotient", Promote::Quotient}};
  for (auto& [name, promote] : all)
    if (!std::strcmp(name, s)) return promote;
  fail(PyExc_ValueError,
       "parse_op: unknown promotion '%s', known are bool, equal, float, float_real, minus, none, quotient, real, same, "
       "scalars, "
       "where",
       s);
}

const OpRecord* op_named(const char* name) {
  OpRecord* op = find_op(name);
  if (!op) fail(PyExc_KeyError, "%s: no such operator", name);
  return op;
}
OpRecord* mutable_op(const char* name) { return const_cast<OpRecord*>(op_named(name)); }

Ref<> parameter_names(const OpRecord& op) {
  Ref<> names = Ref<>::check(PyTuple_New(op.nparams));
  for (int i = 0; i < op.nparams; ++i) PyTuple_SET_ITEM(names.get(), i, Py_NewRef(op.names[i]));
  return names;
}

// parameters(schema) -> the names in it
PyObject* parameters(PyObject*, PyObject* schema) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(schema);
    if (!text) return nullptr;
    const std::unique_ptr<OpRecord> op(parse_schema(text));
    return parameter_names(*op).release();
  });
}

constexpr char kParsed[] = "rushlight.OpRecord";

// parse_op(schema, family, promote, record, differentiable, mixed_devices, takes_out, numbers, loop, exact, any_out)
// -> (capsule for add_op, names of the parameters); registers nothing
PyObject* parse_op(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char *schema, *family, *how, *loop;
    PyObject* record;
    int differentiable, mixed, takes_out, numbers, exact, any_out;
    if (!PyArg_ParseTuple(args, "sssOppppzpp:parse_op", &schema, &family, &how, &record, &differentiable, &mixed,
                          &takes_out, &numbers, &loop, &exact, &any_out))
      return nullptr;
    std::unique_ptr<OpRecord> op(parse_schema(schema));
    op->family = family_from(family);
    op->promote = static_cast<uint8_t>(promote_from(how));
    op->differentiable = differentiable;
    op->mixed_devices = mixed;
    op->takes_out = takes_out && op->noutputs && !op->returns_view;
    op->returns_view |= op->family == Family::View;
    op->accepts_numbers = numbers;
    op->exact = exact;
    op->any_out = any_out;
    op->record = Py_NewRef(record);
    if (op->family == Family::Pointwise) {
      op->impl = pointwise_impl;
      auto* loops = new Loop[kNumDTypes];
      for (int i = 0; i < kNumDTypes; ++i) loops[i] = loop ? find_loop(loop, static_cast<DType>(i)) : nullptr;
      op->loops = loops;
      for (int half = 0; loop && half < 2; ++half) {
        const DType dtype = half ? DType::BFloat16 : DType::Float16;
        op->number_loops[0][half] = find_loop((std::string(loop) + ":number,half").c_str(), dtype);
        op->number_loops[1][half] = find_loop((std::string(loop) + ":half,number").c_str(), dtype);
      }
    } else if (const Native* native = find_native(op->name_text)) {
      op->kernels[kCPU] = native->kernel;
      op->writes_inplace = native->inplace;
      // Prologues that only move metadata, or that skip their loops, serve every device that has no kernel of its own.
      if (native->where) op->kernels[kMeta] = native->kernel;
      bool everywhere = native->where == kOnEveryDevice;
      if (op->family == Family::View || op->family == Family::Factory || everywhere) op->impl = native->kernel;
    }
    if (find_op(op->name_text))
      fail(PyExc_ValueError, "parse_op: the operator '%s' is registered already. Choose another name or overload.",
           op->name);
    Ref<> names = parameter_names(*op);
    const auto destroy = [](PyObject* capsule) {
      delete static_cast<OpRecord*>(PyCapsule_GetPointer(capsule, kParsed));
    };
    Ref<> capsule = Ref<>::check(PyCapsule_New(op.get(), kParsed, destroy));
    op.release();
    return PyTuple_Pack(2, capsule.get(), names.get());
  });
}

// add_op(capsule): registers what parse_op read; from then on the record lives as long as the process
PyObject* py_add_op(PyObject*, PyObject* capsule) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* op = static_cast<OpRecord*>(PyCapsule_GetPointer(capsule, kParsed));
    if (!op) return nullptr;
    add_op(op);
    PyCapsule_SetDestructor(capsule, nullptr);
    adopt_natives(op);
    Py_RETURN_NONE;
  });
}

// make_operator(name, [full op names], inplace) -> Operator; the arithmetic slots of Tensor bind by name
PyObject* make_operator(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* name;
    PyObject* ops;
    int inplace;
    if (!PyArg_ParseTuple(args, "sO!p:make_operator", &name, &PyList_Type, &ops, &inplace)) return nullptr;
    Operator* o = new_operator(name, inplace);
    Ref<> hold(reinterpret_cast<PyObject*>(o));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(ops); ++i) {
      const char* op = PyUnicode_AsUTF8(PyList_GET_ITEM(ops, i));
      if (!op) return nullptr;
      o->overloads->push_back(mutable_op(op));
    }
    bind_slot(o);
    return hold.release();
  });
}

PyObject* add_overload(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    PyObject* o;
    const char* op;
    if (!PyArg_ParseTuple(args, "O!s:add_overload", g_operator_type, &o, &op)) return nullptr;
    reinterpret_cast<Operator*>(o)->overloads->push_back(mutable_op(op));
    Py_RETURN_NONE;
  });
}

// set_kernel(op, device type, callable or capsule "rushlight.Kernel"); device type None: the array kernel, "": the
// composite
PyObject* set_kernel(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char *name, *device;
    PyObject* fn;
    if (!PyArg_ParseTuple(args, "szO:set_kernel", &name, &device, &fn)) return nullptr;
    OpRecord* op = mutable_op(name);
    PyObject** slot = !device ? &op->array_kernel : &op->composite;
    if (device && *device) {
      int type = find_device_type(device);
      if (type < 0) fail(PyExc_ValueError, "set_kernel: device type '%s' is not registered", device);
      slot = &op->py_kernels[type];
      op->kernels[type] = nullptr;
      if (PyCapsule_CheckExact(fn)) {
        void* kernel = PyCapsule_GetPointer(fn, "rushlight.Kernel");
        if (!kernel) return nullptr;
        op->kernels[type] = reinterpret_cast<Kernel>(kernel);
        Py_CLEAR(*slot);
        Py_RETURN_NONE;
      }
    }
    if (!PyCallable_Check(fn))
      fail(PyExc_TypeError, "set_kernel: a kernel of %s must be callable, got %s", name, Py_TYPE(fn)->tp_name);
    Py_INCREF(fn);
    Py_XSETREF(*slot, fn);
    Py_RETURN_NONE;
  });
}

// is_kernel(object): whether set_kernel takes it
PyObject* is_kernel(PyObject*, PyObject* fn) {
  return PyBool_FromLong(PyCallable_Check(fn) || PyCapsule_IsValid(fn, "rushlight.Kernel"));
}

// set_unordered(op, device type): there the order of threads decides the result
PyObject* set_unordered(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char *name, *device;
    if (!PyArg_ParseTuple(args, "ss:set_unordered", &name, &device)) return nullptr;
    const int type = find_device_type(device);
    if (type < 0) fail(PyExc_ValueError, "set_unordered: device type '%s' is not registered", device);
    mutable_op(name)->unordered |= 1u << type;
    Py_RETURN_NONE;
  });
}

// set_determinism(on, warn_only, fills_memory, batch_invariant), determinism() -> the four
PyObject* set_determinism(PyObject*, PyObject* args) {
  int on, warn_only, fills_memory, batch_invariant;
  if (!PyArg_ParseTuple(args, "pppp:set_determinism", &on, &warn_only, &fills_memory, &batch_invariant)) return nullptr;
  g_determinism.on = on;
  g_determinism.warn_only = warn_only;
  g_determinism.fills_memory = fills_memory;
  g_determinism.batch_invariant = batch_invariant;
  Py_RETURN_NONE;
}

PyObject* determinism(PyObject*, PyObject*) {
  const auto flag = [](bool value) { return value ? Py_True : Py_False; };
  return Py_BuildValue("OOOO", flag(g_determinism.on), flag(g_determinism.warn_only), flag(g_determinism.fills_memory),
                       flag(g_determinism.batch_invariant));
}

// op_info(name) -> dict of what the engine knows of an op
PyObject* op_info(PyObject*, PyObject* arg) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* name = PyUnicode_AsUTF8(arg);
    if (!name) return nullptr;
    const OpRecord* op = op_named(name);
    Ref<> native = Ref<>::check(PyList_New(0)), dtypes = Ref<>::check(PyList_New(0)),
          python = Ref<>::check(PyList_New(0)), layouts = Ref<>::check(PyList_New(0));
    for (int i = 0; i < kMaxDeviceTypes; ++i) {
      if (op->kernels[i])
        PyList_Append(native.get(), Ref<>(PyUnicode_FromString(device_type_name(static_cast<uint8_t>(i)))).get());
      if (op->py_kernels[i])
        PyList_Append(python.get(), Ref<>(PyUnicode_FromString(device_type_name(static_cast<uint8_t>(i)))).get());
    }
    if (op->loops)
      for (int i = 0; i < kNumDTypes; ++i)
        if (static_cast<Loop*>(op->loops)[i]) PyList_Append(dtypes.get(), dtype_object(static_cast<DType>(i)));
    for (const LayoutKernel& k : op->layouts) PyList_Append(layouts.get(), k.layout);
    const bool everywhere = op->impl && op->family != Family::Pointwise;
    return Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:i,s:O,s:O}", "native", native.get(), "python", python.get(),
                         "loops", dtypes.get(), "layouts", layouts.get(), "array",
                         op->array_kernel ? Py_True : Py_False, "composite", op->composite ? Py_True : Py_False,
                         "outputs", op->noutputs, "view", op->returns_view ? Py_True : Py_False, "everywhere",
                         everywhere ? Py_True : Py_False);
  });
}

// named_result(op name) -> the type of its results, None where they have no names
PyObject* py_named_result(PyObject*, PyObject* arg) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* name = PyUnicode_AsUTF8(arg);
    if (!name) return nullptr;
    const OpRecord* op = op_named(name);
    return Py_NewRef(op->result_names.empty() ? Py_None : reinterpret_cast<PyObject*>(named_result(op)));
  });
}

PyObject* set_hook(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* name;
    PyObject* fn;
    if (!PyArg_ParseTuple(args, "sO:set_hook", &name, &fn)) return nullptr;
    if (!std::strcmp(name, "find_device_type") || !std::strcmp(name, "open_backend"))
      set_device_hook(name, fn);
    else
      set_tensor_hook(name, fn);
    Py_RETURN_NONE;
  });
}

PyObject* py_register_device_type(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char *name, *origin;
    if (!PyArg_ParseTuple(args, "ss:register_device_type", &name, &origin)) return nullptr;
    return PyLong_FromLong(register_device_type(name, origin));
  });
}

PyObject* py_layer_names(PyObject*, PyObject*) {
  return guard<PyObject*>(nullptr, [&] {
    const auto names = layer_names();
    Ref<> result = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    for (size_t i = 0; i < names.size(); ++i)
      PyTuple_SET_ITEM(result.get(), i, Ref<>::check(PyUnicode_FromString(names[i].c_str())).release());
    return result.release();
  });
}
PyObject* py_keep_layers(PyObject*, PyObject* names) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<std::string> kept;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
      kept.emplace_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i)));
    keep_layers(kept);
    Py_RETURN_NONE;
  });
}

// add_method(name, descriptor): an attribute of every Tensor
PyObject* add_method(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const char* name;
    PyObject* descriptor;
    if (!PyArg_ParseTuple(args, "sO:add_method", &name, &descriptor)) return nullptr;
    add_tensor_attribute(name, descriptor);
    Py_RETURN_NONE;
  });
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guard<PyObject*>(nullptr, [&] { return from_ndarray(array).release_object(); });
}

// from_array(array, device): a tensor over a backend's array
PyObject* from_array(PyObject*, PyObject* args) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    PyObject *array, *device;
    if (!PyArg_ParseTuple(args, "OO:from_array", &array, &device)) return nullptr;
    Device d;
    if (!device_from_object(device, &d))
      fail(PyExc_TypeError, "from_array: device must be a device or its name, not %s", Py_TYPE(device)->tp_name);
    return from_backend_array(array, resolve(d)).release_object();
  });
}

bool promotion_operand(Promotion& p, PyObject* o) {
  Arg a;
  if (is_tensor(o)) {
    p.add(as_tensor(o));
    return true;
  }
  if (!number_from_object(o, &a)) return false;
  p.add(a);
  return true;
}

PyObject* result_type(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (n != 2) fail(PyExc_TypeError, "result_type() takes 2 arguments (tensors or numbers), got %zd", n);
    Promotion p;
    for (int i = 0; i < 2; ++i)
      if (!promotion_operand(p, args[i]))
        fail(PyExc_TypeError, "result_type(): argument %d must be Tensor or Number, not %s", i + 1,
             Py_TYPE(args[i])->tp_name);
    return Py_NewRef(dtype_object(p.result()));
  });
}

PyObject* promote_or_cast(PyObject* const* args, Py_ssize_t n, const char* name, bool cast) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    DType a, b;
    if (n != 2 || !dtype_from_object(args[0], &a) || !dtype_from_object(args[1], &b))
      fail(PyExc_TypeError, "%s() takes two dtypes", name);
    return cast ? PyBool_FromLong(can_cast(a, b)) : Py_NewRef(dtype_object(promote(a, b)));
  });
}
PyObject* promote_types(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return promote_or_cast(args, n, "promote_types", false);
}
PyObject* can_cast_types(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return promote_or_cast(args, n, "can_cast", true);
}

PyObject* get_default_dtype(PyObject*, PyObject*) { return Py_NewRef(dtype_object(g_default_dtype)); }
PyObject* set_default_dtype(PyObject*, PyObject* d) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    DType t;
    if (!dtype_from_object(d, &t) || !is_floating(t))
      fail(PyExc_TypeError, "only floating-point types are supported as the default type");
    g_default_dtype = t;
    Py_RETURN_NONE;
  });
}
PyObject* get_default_device(PyObject*, PyObject*) {
  return guard<PyObject*>(nullptr, [&] { return device_object(g_default_device); });
}
PyObject* set_default_device(PyObject*, PyObject* d) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Device device{kCPU, -1};
    if (d != Py_None && !device_from_object(d, &device))
      fail(PyExc_TypeError, "set_default_device: expected a device, got %s", Py_TYPE(d)->tp_name);
    g_default_device = device;
    Py_RETURN_NONE;
  });
}
PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* set_threads(PyObject*, PyObject* n) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (!PyLong_Check(n)) fail(PyExc_TypeError, "set_num_threads expects an int, but got %s", Py_TYPE(n)->tp_name);
    long v = PyLong_AsLong(n);
    if (v == -1 && PyErr_Occurred()) return nullptr;
    if (v <= 0 || v > 4096)
      fail(PyExc_RuntimeError, "set_num_threads expects a positive integer up to 4096, got %ld", v);
    set_num_threads(static_cast<int>(v));
    Py_RETURN_NONE;
  });
}
PyObject* memory_stats(PyObject*, PyObject*) {
  AllocatorStats s = allocator_stats();
  return Py_BuildValue("{s:L,s:L,s:L}", "allocated_bytes", static_cast<long long>(s.allocated_bytes), "cached_bytes",
                       static_cast<long long>(s.cached_bytes), "cache_limit", static_cast<long long>(s.cache_limit));
}
PyObject* drop_cache(PyObject*, PyObject*) {
  empty_cache();
  Py_RETURN_NONE;
}
PyObject* py_push_mode(PyObject*, PyObject* mode) {
  push_mode(mode);
  Py_RETURN_NONE;
}
PyObject* py_pop_mode(PyObject*, PyObject*) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    pop_mode();
    Py_RETURN_NONE;
  });
}
// set_override_enabled(bool) -> previous state, of this thread
PyObject* set_override_enabled(PyObject*, PyObject* on) {
  bool was = !(t_word & kNoOverride);
  t_word = PyObject_IsTrue(on) ? t_word & ~kNoOverride : t_word | kNoOverride;
  return PyBool_FromLong(was);
}

#define FASTCALL(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f))
PyMethodDef methods[] = {{"parse_op", parse_op, METH_VARARGS, nullptr},
                         {"parameters", parameters, METH_O, nullptr},
                         {"add_op", py_add_op, METH_O, nullptr},
                         {"make_operator", make_operator, METH_VARARGS, nullptr},
                         {"add_overload", add_overload, METH_VARARGS, nullptr},
                         {"set_kernel", set_kernel, METH_VARARGS, nullptr},
                         {"is_kernel", is_kernel, METH_O, nullptr},
                         {"set_unordered", set_unordered, METH_VARARGS, nullptr},
                         {"set_determinism", set_determinism, METH_VARARGS, nullptr},
                         {"determinism", determinism, METH_NOARGS, nullptr},
                         {"op_info", op_info, METH_O, nullptr},
                         {"named_result", py_named_result, METH_O, nullptr},
                         {"set_hook", set_hook, METH_VARARGS, nullptr},
                         {"register_device_type", py_register_device_type, METH_VARARGS, nullptr},
                         {"layer_names", py_layer_names, METH_NOARGS, nullptr},
                         {"keep_layers", py_keep_layers, METH_O, nullptr},
                         {"add_method", add_method, METH_VARARGS, nullptr},
                         {"from_numpy", from_numpy, METH_O, nullptr},
                         {"from_array", from_array, METH_VARARGS, nullptr},
                         {"result_type", FASTCALL(result_type), METH_FASTCALL, nullptr},
                         {"promote_types", FASTCALL(promote_types), METH_FASTCALL, nullptr},
                         {"can_cast", FASTCALL(can_cast_types), METH_FASTCALL, nullptr},
                         {"get_default_dtype", get_default_dtype, METH_NOARGS, nullptr},
                         {"set_default_dtype", set_default_dtype, METH_O, nullptr},
                         {"get_default_device", get_default_device, METH_NOARGS, nullptr},
                         {"set_default_device", set_default_device, METH_O, nullptr},
                         {"get_num_threads", get_num_threads, METH_NOARGS, nullptr},
                         {"set_num_threads", set_threads, METH_O, nullptr},
                         {"memory_stats", memory_stats, METH_NOARGS, nullptr},
                         {"empty_cache", drop_cache, METH_NOARGS, nullptr},
                         {"push_mode", py_push_mode, METH_O, nullptr},
                         {"pop_mode", py_pop_mode, METH_NOARGS, nullptr},
                         {"set_override_enabled", set_override_enabled, METH_O, nullptr},
                         {}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rushlight._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace rl

PyMODINIT_FUNC PyInit__C() {
  using namespace rl;
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    Ref<> module = Ref<>::check(PyModule_Create(&definition));
    init_numpy();
    init_dtype_type(module.get());
    init_size_type(module.get());
    init_device_type(module.get());
    init_storage_type(module.get());
    init_tensor_type(module.get());
    init_operator_type(module.get());
    init_generator_type(module.get());
    init_override_layers();
    init_layout_layers();
    init_memory_format(module.get());
    init_layout(module.get());
    init_construct(module.get());
    init_dlpack(module.get());
    add_view_attributes();
    register_convert_ops();
    register_copy_ops();
    register_distance_ops();
    register_factory_ops();
    register_fft_ops();
    register_matmul_ops();
    register_order_ops();
    register_random_ops();
    register_reduction_ops();
    register_softmax_ops();
    register_sparse_ops();
    register_gather_ops();
    register_indexing_ops();
    register_join_ops();
    register_view_ops();
    PyModule_AddObject(module.get(), "_api", Ref<>::check(api_capsule()).release());
    return module.release();
  });
}
