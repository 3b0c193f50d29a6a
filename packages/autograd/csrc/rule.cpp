#include "rule.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <iterator>
#include <map>

#include "call.h"
#include "forward.h"
#include "saved.h"

namespace rl {

namespace {

PyTypeObject* g_rule_type = nullptr;

// ---- reading what _rules.py compiled

Arg constant_from(Rule* rule, PyObject* o) {
  Arg a;
  if (o == Py_None) return a;
  if (PyBool_Check(o)) return arg(o == Py_True);
  if (PyLong_Check(o)) {
    int64_t i = PyLong_AsLongLong(o);
    if (i == -1 && PyErr_Occurred()) throw PythonError();
    return arg(i);
  }
  if (PyFloat_Check(o)) return arg(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) {
    a.kind = Kind::Complex;
    a.d = PyComplex_RealAsDouble(o);
    a.imag = PyComplex_ImagAsDouble(o);
    return a;
  }
  rule->owned->push_back(Ref<>::borrow(o));
  if (PyTuple_Check(o)) {
    Py_ssize_t n = PyTuple_GET_SIZE(o);
    auto bytes = Ref<>::check(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(sizeof(int64_t)) * n));
    auto* v = reinterpret_cast<int64_t*>(PyBytes_AS_STRING(bytes.get()));
    for (Py_ssize_t i = 0; i < n; ++i) {
      v[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
      if (v[i] == -1 && PyErr_Occurred()) throw PythonError();
    }
    rule->owned->push_back(std::move(bytes));
    return arg(v, static_cast<int>(n));
  }
  a.kind = Kind::Object;
  a.object = o;
  return a;
}

Operand operand_from(PyObject* pair) {
  int source, index;
  if (!PyArg_ParseTuple(pair, "ii", &source, &index)) throw PythonError();
  if (index > 255)
    raise(PyExc_ValueError, "gradient rule: too long, it has more than 256 values. Write it as a Python function.");
  return {static_cast<Operand::Source>(source), static_cast<uint8_t>(index)};
}

uint64_t bit_if_saved(Operand o) { return o.source == Operand::Saved ? uint64_t{1} << o.index : 0; }

const std::map<std::string, Instruction::Code> kCodes = {{"call", Instruction::Call},
                                                         {"builtin", Instruction::Builtin},
                                                         {"add", Instruction::Add},
                                                         {"sub", Instruction::Sub},
                                                         {"mul", Instruction::Mul},
                                                         {"div", Instruction::Div},
                                                         {"pow", Instruction::Pow},
                                                         {"neg", Instruction::Neg},
                                                         {"eq", Instruction::Eq},
                                                         {"ne", Instruction::Ne},
                                                         {"lt", Instruction::Lt},
                                                         {"le", Instruction::Le},
                                                         {"gt", Instruction::Gt},
                                                         {"ge", Instruction::Ge},
                                                         {"move", Instruction::Move},
                                                         {"jump", Instruction::Jump},
                                                         {"unless", Instruction::JumpUnless}};

// Adds the overload `op` of a call; keyword arguments go to their places, what lies between takes its default.
void add_overload(Rule* rule, Program& p, Instruction& in, const Op* op, const std::vector<Operand>& args,
                  PyObject* keywords) {
  Py_ssize_t nkw = PyTuple_GET_SIZE(keywords);
  size_t npositional = args.size() - static_cast<size_t>(nkw);
  std::vector<Operand> placed(args.begin(), args.begin() + static_cast<Py_ssize_t>(npositional));
  for (Py_ssize_t k = 0; k < nkw; ++k) {
    const char* key = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, k));
    int at = 0;
    while (at < op->nparams && std::strcmp(op->params[at].name, key)) ++at;
    if (at == op->nparams || static_cast<size_t>(at) < npositional) return;
    while (placed.size() <= static_cast<size_t>(at)) {
      rule->constants->push_back(op->params[placed.size()].default_value);
      if (rule->constants->size() > 256)
        raise(PyExc_ValueError, "gradient rule of %s: too many constants.", rule->op->name);
      placed.push_back({Operand::Constant, static_cast<uint8_t>(rule->constants->size() - 1)});
    }
    placed[static_cast<size_t>(at)] = args[npositional + static_cast<size_t>(k)];
  }
  if (placed.size() > static_cast<size_t>(op->nparams)) return;
  in.overloads.push_back({op, static_cast<uint32_t>(p.operands.size()), static_cast<uint16_t>(placed.size())});
  p.operands.insert(p.operands.end(), placed.begin(), placed.end());
}

// One instruction: (code, target, name or names of overloads, operands, keywords, destination).
void add_instruction(Rule* rule, Program& p, PyObject* tuple) {
  const char* code;
  int target, destination;
  PyObject *name, *operands, *keywords;
  if (!PyArg_ParseTuple(tuple, "siOO!O!i", &code, &target, &name, &PyTuple_Type, &operands, &PyTuple_Type, &keywords,
                        &destination))
    throw PythonError();
  Instruction in{kCodes.at(code), static_cast<uint8_t>(target), static_cast<uint16_t>(PyTuple_GET_SIZE(operands)),
                 static_cast<uint32_t>(p.operands.size())};
  std::vector<Operand> args;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); ++i) {
    args.push_back(operand_from(PyTuple_GET_ITEM(operands, i)));
    p.saves |= bit_if_saved(args.back());
  }
  if (in.code == Instruction::Call) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(name); ++i)
      add_overload(rule, p, in, find_op(PyUnicode_AsUTF8(PyTuple_GET_ITEM(name, i))), args, keywords);
    if (in.overloads.empty())
      raise(PyExc_TypeError, "gradient rule of %s: no overload of %R takes %zu arguments with the keywords %R.",
            rule->op->name, name, args.size(), keywords);
  } else {
    if (in.code == Instruction::Jump || in.code == Instruction::JumpUnless)
      in.nargs = static_cast<uint16_t>(destination);
    if (in.code == Instruction::Builtin) {
      const BuiltinEntry* builtin = find_builtin(PyUnicode_AsUTF8(name));
      if (!builtin) raise(PyExc_NameError, "gradient rule of %s: there is no function %R.", rule->op->name, name);
      in.builtin = builtin->run;
    }
    p.operands.insert(p.operands.end(), args.begin(), args.end());
  }
  p.ntemporaries = std::max(p.ntemporaries, target + 1);
  p.code.push_back(std::move(in));
}

Program program_from(Rule* rule, PyObject* tuple) {
  Program p;
  PyObject *params, *code, *result, *callable, *names;
  int wants_needs;
  if (!PyArg_ParseTuple(tuple, "O!O!OOO!p", &PyTuple_Type, &params, &PyTuple_Type, &code, &result, &callable,
                        &PyTuple_Type, &names, &wants_needs))
    throw PythonError();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(params); ++i)
    p.params.push_back(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(params, i))));
  if (callable == Py_None) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code); ++i) add_instruction(rule, p, PyTuple_GET_ITEM(code, i));
    p.result = operand_from(result);
    p.saves |= bit_if_saved(p.result);
    return p;
  }
  p.callable = Ref<>::borrow(callable);
  p.wants_needs = wants_needs;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code); ++i) {
    p.call_args.push_back(operand_from(PyTuple_GET_ITEM(code, i)));
    p.saves |= bit_if_saved(p.call_args.back());
    p.call_names.push_back(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i)));
  }
  return p;
}

// node._raw_saved_<name>: the place of a saved tensor, which takes hooks of its own.
struct SavedTensor {
  PyObject_HEAD RuleNode* node;
  uint8_t index;
};
PyTypeObject* g_saved_tensor_type = nullptr;

PyObject* register_saved_hooks(PyObject* self, PyObject* args) {
  return guard([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO:register_hooks", &pack, &unpack)) return nullptr;
    RuleNode* n = reinterpret_cast<SavedTensor*>(self)->node;
    Saved& s = n->saved[reinterpret_cast<SavedTensor*>(self)->index];
    if (s.state == Saved::Released)
      raise(PyExc_RuntimeError,
            "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
            "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True.");
    if (s.state == Saved::Packed)
      raise(PyExc_RuntimeError,
            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
            "is allowed at a time.");
    for (PyObject* hook : {pack, unpack})
      if (!PyCallable_Check(hook))
        raise(PyExc_TypeError, "register_hooks: hooks must be callable, got %R. Pass two functions.", hook);
    const Edge history = s.state == Saved::Input ? gradient_edge(s.arg.tensor) : Edge{};
    Ref<> kept = Ref<>::borrow(object(s.arg.tensor));
    Ref<> packed(pack_saved(s.arg.tensor, history, Ref<>::borrow(pack), Ref<>::borrow(unpack)));
    if (s.state != Saved::Input && s.state != Saved::Result) raise_released(n);  // by the hook
    Py_DECREF(kept.get());
    s.arg.object = packed.release();
    s.state = Saved::Packed;
    Py_RETURN_NONE;
  });
}

void dealloc_saved_tensor(PyObject* self) {
  Py_DECREF(reinterpret_cast<SavedTensor*>(self)->node);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef saved_tensor_methods[] = {
    {"register_hooks", register_saved_hooks, METH_VARARGS,
     "register_hooks($self, pack_hook, unpack_hook, /)\n--\n\nKeeps pack_hook(tensor) in place of the tensor; backward "
     "reads unpack_hook of that."},
    {}};
PyType_Slot saved_tensor_slots[] = {
    {Py_tp_methods, saved_tensor_methods},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_saved_tensor)},
    {Py_tp_doc, const_cast<char*>("A tensor that a node of the graph keeps for backward.")},
    {}};
PyType_Spec saved_tensor_spec = {"rushlight.autograd.SavedTensor", sizeof(SavedTensor), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, saved_tensor_slots};

// node._saved_<parameter> and node._saved_result: what the node keeps for its rule; with _raw before it the place.
PyObject* node_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  const char* text = found ? nullptr : PyUnicode_AsUTF8(name);
  const bool raw = text && !std::strncmp(text, "_raw", 4);
  if (raw) text += 4;
  if (!text || std::strncmp(text, "_saved_", 7) || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return guard([&]() -> PyObject* {
    auto* n = reinterpret_cast<RuleNode*>(self);
    const Rule* rule = n->rule;
    for (size_t i = 0; i < rule->saves->size(); ++i) {
      const Save& s = (*rule->saves)[i];
      const std::string results = rule->op->noutputs > 1 ? "result" + std::to_string(s.index) : "result";
      if (s.geometry_only || (s.result ? results : rule->op->params[s.index].name) != text + 7) continue;
      const Saved::State state = n->saved[i].state;
      if (state == Saved::Empty || (raw && !n->saved[i].arg.is_tensor() && state != Saved::Packed)) continue;
      PyErr_Clear();
      if (raw) {
        auto place = Ref<SavedTensor>::check(g_saved_tensor_type->tp_alloc(g_saved_tensor_type, 0));
        place->node = reinterpret_cast<RuleNode*>(Py_NewRef(self));
        place->index = static_cast<uint8_t>(i);
        return object(place.release());
      }
      Machine::Unpacked unpacked;
      Machine machine(n, nullptr, &unpacked);
      return api->arg_to_object(machine.get({Operand::Saved, static_cast<uint8_t>(i)}));
    }
    return nullptr;
  });
}

// _C.Rule(op, node_name, saves, constants, programs, no_gradient, auxiliary results)
PyObject* new_rule(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  using Input = Rule::Input;
  return guard([&]() -> PyObject* {
    const char *op_name, *node_name;
    PyObject *saves, *constants, *programs, *none;
    int auxiliary;
    if (!PyArg_ParseTuple(args, "ssO!O!O!O!i", &op_name, &node_name, &PyTuple_Type, &saves, &PyTuple_Type, &constants,
                          &PyTuple_Type, &programs, &PyTuple_Type, &none, &auxiliary))
      return nullptr;
    auto rule = Ref<Rule>::check(type->tp_alloc(type, 0));
    rule->saves = new std::vector<Save>();
    rule->programs = new std::vector<Program>();
    rule->constants = new std::vector<Arg>();
    rule->owned = new std::vector<Ref<>>();
    rule->inputs = new std::vector<Rule::Input>();
    rule->op = find_op(op_name);
    rule->list_input = -1;
    rule->auxiliary = auxiliary;
    rule->node_type = new_node_type(node_name);
    rule->node_type->tp_getattro = node_attribute;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(saves); ++i) {
      int result, geometry_only, index;
      if (!PyArg_ParseTuple(PyTuple_GET_ITEM(saves, i), "ppi", &result, &geometry_only, &index)) return nullptr;
      rule->saves->push_back({result != 0, geometry_only != 0, static_cast<uint8_t>(index)});
    }
    if (rule->saves->size() > 64) raise(PyExc_ValueError, "gradient rule of %s: reads more than 64 values.", op_name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i)
      rule->constants->push_back(constant_from(rule.get(), PyTuple_GET_ITEM(constants, i)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(programs); ++i)
      rule->programs->push_back(program_from(rule.get(), PyTuple_GET_ITEM(programs, i)));

    for (int i = 0; i < rule->op->nparams; ++i) {
      ParamType t = rule->op->params[i].type;
      if (t != ParamType::Tensor && t != ParamType::Tensors) continue;
      auto index = Ref<>::check(PyLong_FromLong(i));
      int program = Input::kMissing;
      if (PySequence_Contains(none, index.get())) {
        if (!rule->op->params[i].is_write) continue;
        program = Input::kOverwritten;
      }
      for (size_t p = 0; p < rule->programs->size(); ++p)
        for (int param : (*rule->programs)[p].params)
          if (param == i) program = static_cast<int>(p);
      bool list = t == ParamType::Tensors;
      if (list && rule->list_input >= 0)
        raise(PyExc_ValueError, "gradient rule of %s: more than one list of tensors.", op_name);
      if (list) rule->list_input = static_cast<int>(rule->inputs->size());
      rule->inputs->push_back({static_cast<uint8_t>(i), list, static_cast<int16_t>(program)});
    }
    return object(rule.release());
  });
}

void dealloc_rule(PyObject* self) {
  auto* r = reinterpret_cast<Rule*>(self);
  delete r->saves;
  delete r->programs;
  delete r->constants;
  delete r->owned;
  delete r->inputs;
  Py_XDECREF(r->node_type);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot rule_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_rule)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_rule)},
                            {Py_tp_doc, const_cast<char*>("A compiled gradient rule.")},
                            {}};
PyType_Spec rule_spec = {"rushlight.autograd._C.Rule", sizeof(Rule), 0, Py_TPFLAGS_DEFAULT, rule_slots};

PyObject* is_builtin(PyObject*, PyObject* name) {
  const BuiltinEntry* b = find_builtin(PyUnicode_AsUTF8(name));
  if (!b) Py_RETURN_NONE;
  return Py_BuildValue("(ii)", b->nargs, b->geometry);
}
PyMethodDef is_builtin_def = {"builtin", is_builtin, METH_O,
                              "(number of arguments, the one that is asked for its shape only or -1), or None."};

}  // namespace

Rule* rule_of(const Op* op) {
  if (!op->grad) {
    static PyObject* compile = nullptr;
    if (!compile) {
      auto module = Ref<>::check(PyImport_ImportModule("rushlight.autograd._rules"));
      compile = Ref<>::check(PyObject_GetAttrString(module.get(), "compile_rule")).release();
    }
    auto rule = Ref<>::check(PyObject_CallOneArg(compile, op->record));
    if (!PyObject_TypeCheck(rule.get(), g_rule_type))
      raise(PyExc_TypeError, "compile_rule: returned no Rule for %s", op->name);
    if (!op->grad) const_cast<Op*>(op)->grad = rule.release();
  }
  return reinterpret_cast<Rule*>(op->grad);
}

// ---- nodes

namespace {

size_t count_saved(const RuleNode* n) { return n->rule->saves->size(); }

// Numbers and shapes stay, as they cost nothing.
void drop(Saved& s) {
  Saved::State state = s.state;
  const bool object_held = state == Saved::Object || state == Saved::Packed;
  if (state != Saved::Input && state != Saved::Result && !object_held && state != Saved::Tensors) return;
  s.state = Saved::Released;  // before what follows, which may run Python code
  if (state == Saved::Tensors)
    for (int i = 0; i < s.arg.count; ++i) Py_DECREF(s.arg.tensors[i]);
  else
    Py_DECREF(object_held ? s.arg.object : object(s.arg.tensor));
}

void release_saved(Node* node) {
  auto* n = static_cast<RuleNode*>(node);
  for (size_t i = 0; i < count_saved(n); ++i) drop(n->saved[i]);
}

int traverse_saved(Node* node, visitproc visit, void* arg) {
  auto* n = static_cast<RuleNode*>(node);
  for (size_t i = 0; i < count_saved(n); ++i) {
    Saved& s = n->saved[i];
    if (s.state == Saved::Input || s.state == Saved::Result) Py_VISIT(s.arg.tensor);
    if (s.state == Saved::Object || s.state == Saved::Packed) Py_VISIT(s.arg.object);
    if (s.state == Saved::Tensors)
      for (int k = 0; k < s.arg.count; ++k) Py_VISIT(s.arg.tensors[k]);
  }
  return 0;
}

void destroy_rule_node(Node* node) {
  release_saved(node);
  Py_DECREF(static_cast<RuleNode*>(node)->rule);
}

[[noreturn]] void no_rule(const Rule* rule, int param) {
  raise(PyExc_NotImplementedError,
        "%s: the gradient with respect to '%s' is not implemented. Give a rule with op.grad(%s=...).", rule->op->name,
        rule->op->params[param].name, rule->op->params[param].name);
}

// Hands what a program computed for a list of tensors to the edges of the list.
void distribute(const Rule* rule, Ref<> list, PyObject** results, uint32_t n) {
  if (list.get() == Py_None) return;
  if (!PyTuple_Check(list.get()) && !PyList_Check(list.get()))
    raise(PyExc_RuntimeError, "gradient rule of %s: must give one gradient for each tensor of the list, got %s.",
          rule->op->name, Py_TYPE(list.get())->tp_name);
  auto all = Ref<>::check(PySequence_Tuple(list.get()));
  if (PyTuple_GET_SIZE(all.get()) != static_cast<Py_ssize_t>(n))
    raise(PyExc_RuntimeError, "gradient rule of %s: gave %zd gradients for a list of %u tensors.", rule->op->name,
          PyTuple_GET_SIZE(all.get()), n);
  for (uint32_t i = 0; i < n; ++i) {
    PyObject* g = PyTuple_GET_ITEM(all.get(), i);
    if (g != Py_None) results[i] = Py_NewRef(g);
  }
}

void store(const Rule* rule, const Rule::Input& in, Ref<> value, PyObject** results, uint32_t n) {
  if (in.list) {
    distribute(rule, std::move(value), results, n);
  } else if (value && value.get() != Py_None) {
    if (!is_tensor(value.get()))
      raise(PyExc_RuntimeError, "gradient rule of %s: must give a Tensor for '%s', got %s.", rule->op->name,
            rule->op->params[in.param].name, Py_TYPE(value.get())->tp_name);
    results[0] = value.release();
  }
}

Ref<> call_python(Machine& m, const Program& p, const std::vector<bool>& needs) {
  auto args = Ref<>::check(PyTuple_New(0));
  auto kwargs = Ref<>::check(PyDict_New());
  auto results = Ref<>::check(PyList_New(0));
  for (size_t i = 0; i < p.call_args.size(); ++i) {
    Operand o = p.call_args[i];
    const std::string& name = p.call_names[i];
    Ref<> value;
    if (o.source == Operand::Grad && o.index == Operand::kAll) {
      value = tuple_or_none(m.grads, m.node->noutputs);
    } else if (o.source == Operand::Saved && (*m.node->rule->saves)[o.index].geometry_only) {
      Geometry g = m.geometry(o);
      bool asks_dtype = name.size() > 6 && name.compare(name.size() - 6, 6, "_dtype") == 0;
      value = Ref<>::check(api->arg_to_object(asks_dtype ? arg(g.dtype) : arg(g.sizes, g.ndim)));
    } else {
      value = Ref<>::check(api->arg_to_object(m.get(o)));
    }
    if (name == "results") {
      check(PyList_Append(results.get(), value.get()));
      value = Ref<>::check(PyList_AsTuple(results.get()));
    }
    check(PyDict_SetItemString(kwargs.get(), name.c_str(), value.get()));
  }
  if (p.wants_needs) {
    auto mask = Ref<>::check(PyTuple_New(static_cast<Py_ssize_t>(needs.size())));
    for (size_t i = 0; i < needs.size(); ++i) PyTuple_SET_ITEM(mask.get(), i, PyBool_FromLong(needs[i]));
    check(PyDict_SetItemString(kwargs.get(), "needs", mask.get()));
  }
  return Ref<>::check(PyObject_Call(p.callable.get(), args.get(), kwargs.get()));
}

// The edges of one input of a rule, and whether a pass wants any of their gradients.
struct Span {
  uint32_t first, count;
  bool wanted;
};

// Runs a rule that is a Python function, for one parameter or several.
void run_function(RuleNode* n, const Program& program, PyObject** grads, PyObject** results, const Span* spans,
                  Machine::Unpacked* unpacked) {
  const auto& inputs = *n->rule->inputs;
  std::vector<size_t> served;  // inputs, in the order of the function's results
  std::vector<bool> needs;
  for (int param : program.params)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].param == param) {
        served.push_back(i);
        needs.push_back(spans[i].wanted);
      }
  Machine machine(n, grads, unpacked);
  Ref<> value = call_python(machine, program, needs);
  if (served.size() == 1) value = Ref<>::check(PyTuple_Pack(1, value.get()));
  if (!PyTuple_Check(value.get()) || PyTuple_GET_SIZE(value.get()) != static_cast<Py_ssize_t>(served.size()))
    raise(PyExc_RuntimeError, "gradient rule of %s: must return a tuple of %zu gradients, got %R.", n->rule->op->name,
          served.size(), value.get());
  for (size_t k = 0; k < served.size(); ++k) {
    const Span& span = spans[served[k]];
    if (span.wanted)
      store(n->rule, inputs[served[k]], Ref<>::borrow(PyTuple_GET_ITEM(value.get(), static_cast<Py_ssize_t>(k))),
            results + span.first, span.count);
  }
}

void run_programs(RuleNode* n, PyObject** grads, PyObject** results, const Needs& needs) {
  const Rule* rule = n->rule;
  const auto& inputs = *rule->inputs;
  const auto& programs = *rule->programs;
  uint32_t listed = n->nedges + 1 - static_cast<uint32_t>(inputs.size());  // edges of the list, where there is one
  Span spans[kMaxParams];
  bool done[kMaxParams] = {};  // functions that have served another input already
  Machine::Unpacked unpacked;
  uint32_t edge = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    spans[i] = {edge, inputs[i].list ? listed : 1, false};
    for (uint32_t k = 0; k < spans[i].count; ++k) spans[i].wanted = spans[i].wanted || needs(edge + k);
    edge += spans[i].count;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    int p = inputs[i].program;
    if (!spans[i].wanted || p == Rule::Input::kOverwritten) continue;
    if (p == Rule::Input::kMissing) no_rule(rule, inputs[i].param);
    const Program& program = programs[static_cast<size_t>(p)];
    if (program.callable) {
      if (!std::exchange(done[p], true)) run_function(n, program, grads, results, spans, &unpacked);
      continue;
    }
    Value value = Machine(n, grads, &unpacked).run(program);
    Ref<> gradient = value.owned ? std::move(value.owned) : Ref<>::check(api->arg_to_object(value.arg));
    store(rule, inputs[i], std::move(gradient), results + spans[i].first, spans[i].count);
  }
}

thread_local bool t_strict_zero = false;

PyObject* strict_zero_function(const char* name) {
  auto module = Ref<>::check(PyImport_ImportModule("rushlight.autograd._strict_zero"));
  return Ref<>::check(PyObject_GetAttrString(module.get(), name)).release();
}

// The gradient as a cotangent, whose zeros survive every factor.
Ref<> protect(PyObject* grad) {
  static PyObject* function = strict_zero_function("protect");
  return Ref<>::check(PyObject_CallOneArg(function, grad));
}

void run_rule(Node* node, PyObject** grads, PyObject** results, const Needs& needs) {
  auto* n = static_cast<RuleNode*>(node);
  if (!t_strict_zero) return run_programs(n, grads, results, needs);
  static PyObject* expose = strict_zero_function("expose");
  std::vector<Ref<>> cotangents(n->noutputs);
  std::vector<PyObject*> given(n->noutputs);
  for (uint32_t i = 0; i < n->noutputs; ++i) {
    if (grads[i]) cotangents[i] = protect(grads[i]);
    given[i] = cotangents[i].get();
  }
  run_programs(n, given.data(), results, needs);
  for (uint32_t i = 0; i < n->nedges; ++i)
    if (results[i]) Py_SETREF(results[i], Ref<>::check(PyObject_CallOneArg(expose, results[i])).release());
}

// set_strict_zero(on): whether it was on.
PyObject* set_strict_zero(PyObject*, PyObject* on) {
  int truth = PyObject_IsTrue(on);
  return truth < 0 ? nullptr : PyBool_FromLong(std::exchange(t_strict_zero, truth != 0));
}
PyMethodDef set_strict_zero_def = {"set_strict_zero", set_strict_zero, METH_O,
                                   "Whether zeros of gradients survive every factor on this thread."};

const NodeKind rule_kind = {run_rule, release_saved, traverse_saved, destroy_rule_node, false};

// ---- saving

constexpr size_t geometry_bytes(int ndim) { return sizeof(Geometry) + 2 * sizeof(int64_t) * static_cast<size_t>(ndim); }

Geometry* write_geometry(char*& at, const Geometry& from) {
  auto* g = reinterpret_cast<Geometry*>(at);
  auto* v = reinterpret_cast<int64_t*>(g + 1);
  *g = from;
  g->sizes = v;
  g->strides = v + from.ndim;
  std::copy_n(from.sizes, from.ndim, v);
  std::copy_n(from.strides, from.ndim, v + from.ndim);
  at += geometry_bytes(from.ndim);
  return g;
}

// An argument's geometry at the time of the call.
Geometry geometry_then(const Tensor* t, const Recorded& r) { return t == r.written ? *r.before : geometry_of(t); }

size_t bytes_to_save(const Save& save, const Arg& a, const Recorded& r) {
  switch (a.kind) {
    case Kind::Tensor: return save.geometry_only ? geometry_bytes(geometry_then(a.tensor, r).ndim) : 0;
    case Kind::Tensors: {
      size_t bytes = 0;
      for (int i = 0; i < a.count; ++i)
        bytes += save.geometry_only ? sizeof(Geometry*) + geometry_bytes(a.tensors[i]->ndim)
                                    : sizeof(Tensor*) + sizeof(int64_t);
      return bytes;
    }
    case Kind::Ints:
    case Kind::Floats: return sizeof(int64_t) * static_cast<size_t>(a.count);
    default: return 0;
  }
}

uint32_t version_of(const Tensor* t, const Recorded& r) {
  return r.written && t->storage == r.written->storage ? r.version_before : t->storage->version;
}

void save_argument(Saved& s, const Save& save, const Arg& a, char*& at, const Recorded& r) {
  s.arg = a;
  s.state = Saved::Plain;
  switch (a.kind) {
    case Kind::Tensor: {
      if (save.geometry_only) {
        s.arg.object = reinterpret_cast<PyObject*>(write_geometry(at, geometry_then(a.tensor, r)));
        s.state = Saved::Shape;
        return;
      }
      check_can_be_saved(a.tensor);
      bool before = r.self_before && a.tensor == r.written;
      if (before) s.arg.tensor = as_tensor(r.self_before);
      if (t_saved_hooks) {
        s.arg.object = pack_saved(s.arg.tensor, gradient_edge(s.arg.tensor));
        s.state = Saved::Packed;
        return;
      }
      s.version = before ? s.arg.tensor->storage->version : version_of(a.tensor, r);
      Py_INCREF(s.arg.tensor);
      s.state = Saved::Input;
      return;
    }
    case Kind::Tensors: {
      if (save.geometry_only) {
        auto** list = reinterpret_cast<Geometry**>(at);
        at += sizeof(Geometry*) * static_cast<size_t>(a.count);
        for (int i = 0; i < a.count; ++i) list[i] = write_geometry(at, geometry_of(a.tensors[i]));
        s.arg.object = reinterpret_cast<PyObject*>(list);
        s.state = Saved::Shapes;
        return;
      }
      auto** list = reinterpret_cast<Tensor**>(at);
      auto* versions = reinterpret_cast<int64_t*>(list + a.count);
      for (int i = 0; i < a.count; ++i) check_can_be_saved(a.tensors[i]);
      s.arg.tensors = list;
      s.arg.count = 0;  // what is there already is dropped should a hook fail
      s.state = Saved::Tensors;
      for (int i = 0; i < a.count; ++i) {
        Tensor* t = a.tensors[i];
        list[i] = as_tensor(t_saved_hooks ? pack_saved(t, gradient_edge(t)) : Py_NewRef(object(t)));
        versions[i] = version_of(t, r);
        s.arg.count = i + 1;
      }
      at = reinterpret_cast<char*>(versions + a.count);
      return;
    }
    case Kind::Ints:
    case Kind::Floats:
      if (a.count) std::memcpy(at, a.ints, sizeof(int64_t) * static_cast<size_t>(a.count));
      s.arg.ints = reinterpret_cast<int64_t*>(at);
      at += sizeof(int64_t) * static_cast<size_t>(a.count);
      return;
    case Kind::Object:
      Py_INCREF(a.object);
      s.state = Saved::Object;
      return;
    default: return;
  }
}

}  // namespace

uint64_t saves_needed(const Rule* rule, const Edge* edges, uint32_t nedges) {
  uint64_t mask = 0;
  uint32_t edge = 0, listed = nedges + 1 - static_cast<uint32_t>(rule->inputs->size());
  for (const Rule::Input& in : *rule->inputs) {
    uint32_t count = in.list ? listed : 1;
    for (uint32_t k = 0; k < count; ++k)
      if (edges[edge + k].node && in.program >= 0) mask |= (*rule->programs)[static_cast<size_t>(in.program)].saves;
    edge += count;
  }
  return mask;
}

RuleNode* new_rule_node(const Recorded& r) {
  const auto& saves = *r.rule->saves;
  uint64_t mask = saves_needed(r.rule, r.edges, r.nedges);
  for (const Save& s : saves)
    if (s.result && s.index >= r.noutputs)
      raise(PyExc_IndexError, "gradient rule of %s: asks for results[%d] of %u.", r.rule->op->name, s.index,
            r.noutputs);
  // Results that carry no gradient come last; to hooks they are none of the node's.
  uint32_t noutputs = r.noutputs - static_cast<uint32_t>(r.rule->auxiliary);
  while (noutputs > 1 && !is_inexact(as_tensor(r.outputs[noutputs - 1])->dtype)) --noutputs;
  size_t extra = r.nedges * sizeof(Edge) + noutputs * sizeof(Geometry) + saves.size() * sizeof(Saved);
  for (uint32_t i = 0; i < noutputs; ++i) extra += sizeof(int64_t) * as_tensor(r.outputs[i])->ndim;
  for (size_t i = 0; i < saves.size(); ++i)
    if (mask >> i & 1) {
      Arg a = saves[i].result ? arg(as_tensor(r.outputs[saves[i].index])) : r.args[saves[i].index];
      extra += bytes_to_save(saves[i], a, r);
    }

  auto* n = new_node<RuleNode>(r.rule->node_type, &rule_kind, extra);
  n->rule = r.rule;
  Py_INCREF(r.rule);
  char* at = reinterpret_cast<char*>(n + 1);
  n->edges = reinterpret_cast<Edge*>(at);
  std::copy_n(r.edges, r.nedges, n->edges);
  at += r.nedges * sizeof(Edge);
  n->saved = reinterpret_cast<Saved*>(at);
  at += saves.size() * sizeof(Saved);
  n->outputs = reinterpret_cast<Geometry*>(at);
  n->noutputs = noutputs;
  at += noutputs * sizeof(Geometry);
  for (uint32_t i = 0; i < noutputs; ++i) {
    const Tensor* t = as_tensor(r.outputs[i]);
    auto* sizes = reinterpret_cast<int64_t*>(at);
    std::copy_n(t->sizes, t->ndim, sizes);
    n->outputs[i] = {t->dtype, t->device, t->ndim, sizes, nullptr, 0};
    at += sizeof(int64_t) * t->ndim;
  }
  n->version = r.noutputs ? as_tensor(r.outputs[0])->storage->version : 0;
  for (size_t i = 0; i < saves.size(); ++i) n->saved[i].state = Saved::Empty;
  Ref<RuleNode> hold(n);  // from here on it can be destroyed, without the edges, which it takes at the end
  for (size_t i = 0; i < saves.size(); ++i) {
    if (!(mask >> i & 1)) continue;
    Saved& s = n->saved[i];
    if (!saves[i].result) {
      save_argument(s, saves[i], r.args[saves[i].index], at, r);
      continue;
    }
    Tensor* out = as_tensor(r.outputs[saves[i].index]);
    if (saves[i].geometry_only) {
      save_argument(s, saves[i], arg(out), at, r);
      continue;
    }
    if (t_saved_hooks) {
      s.arg = arg(out);
      s.arg.object = pack_saved(out, {});
      s.state = Saved::Packed;
      continue;
    }
    // Without its history: the tensor holds the node, so the node must not hold the tensor.
    s.arg = arg(as_tensor(Ref<>::check(api->detach(out)).release()));
    s.version = out->storage->version;
    s.state = Saved::Result;
  }
  n->nedges = r.nedges;
  finish_node(n);
  return hold.release();
}

void set_saved_tangent(Node* node, size_t output_nr, const Ref<>& tangent) {
  if (node->kind != &rule_kind) return;
  auto* n = static_cast<RuleNode*>(node);
  for (size_t i = 0; i < count_saved(n); ++i)
    if (n->saved[i].state == Saved::Result && (*n->rule->saves)[i].index == output_nr)
      set_tangent(n->saved[i].arg.tensor, tangent);
}

const char* input_name(const Node* n, uint32_t edge) {
  if (n->kind != &rule_kind) return nullptr;
  const Rule* rule = static_cast<const RuleNode*>(n)->rule;
  const uint32_t listed = n->nedges + 1 - static_cast<uint32_t>(rule->inputs->size());
  for (const Rule::Input& in : *rule->inputs) {
    const uint32_t count = in.list ? listed : 1;
    if (edge < count) return rule->op->params[in.param].name;
    edge -= count;
  }
  return nullptr;
}

// ---- the machine

Value value_of(const Arg& a) {
  Value v;
  v.arg = a;
  return v;
}

Value shared_value(const Arg& a) {
  Value v = value_of(a);
  if (a.is_tensor()) v.owned = Ref<>::borrow(object(a.tensor));
  if (a.kind == Kind::Object) v.owned = Ref<>::borrow(a.object);
  return v;
}

Value value_of(Ref<> o) {
  Value v;
  if (o.get() == Py_None) return v;
  if (is_tensor(o.get())) {
    v.arg = arg(tensor(o));
  } else if (PyBool_Check(o.get())) {
    v.arg = arg(o.get() == Py_True);
  } else if (PyLong_Check(o.get())) {
    v.arg = arg(static_cast<int64_t>(PyLong_AsLongLong(o.get())));
  } else if (PyFloat_Check(o.get())) {
    v.arg = arg(PyFloat_AS_DOUBLE(o.get()));
  } else {
    v.arg.kind = Kind::Object;
    v.arg.object = o.get();
  }
  v.owned = std::move(o);
  return v;
}

int64_t number_of_elements(const Geometry& g) {
  int64_t n = 1;
  for (int d = 0; d < g.ndim; ++d) n *= g.sizes[d];
  return n;
}

int64_t* Machine::ints(size_t n) {
  ints_.push_back(std::make_unique<int64_t[]>(n ? n : 1));
  return ints_.back().get();
}

Arg Machine::unpack(uint8_t index) {
  Saved& s = node->saved[index];
  const Save& save = (*node->rule->saves)[index];
  // Whether it is a result whose history goes on: auxiliary results and integers have none.
  const auto goes_on = [&](const Tensor* t) {
    return save.result && grad_enabled() && is_inexact(t->dtype) && save.index < node->noutputs;
  };
  switch (s.state) {
    case Saved::Input: {
      auto* maker = reinterpret_cast<Node*>(s.arg.tensor->grad_fn);
      check_saved_version(s.arg.tensor, s.version, maker ? name_of(maker) : nullptr, s.arg.tensor->output_nr);
      return s.arg;
    }
    case Saved::Result: {
      check_saved_version(s.arg.tensor, s.version, name_of(node), save.index);
      if (!goes_on(s.arg.tensor)) return s.arg;
      keep_.push_back(with_history(s.arg.tensor, node, save.index));
      return arg(tensor(keep_.back()));
    }
    case Saved::Packed: {
      for (auto& [known, t] : *unpacked_)
        if (known == index) return arg(tensor(t));
      Ref<> t = unpack_saved(s.arg.object);
      unpacked_->emplace_back(index, goes_on(tensor(t)) ? with_history(tensor(t), node, save.index) : std::move(t));
      return arg(tensor(unpacked_->back().second));
    }
    case Saved::Tensors: {
      auto* versions = reinterpret_cast<const int64_t*>(s.arg.tensors + s.arg.count);
      Arg list = s.arg;
      Tensor** unpacked = nullptr;
      for (int i = 0; i < s.arg.count; ++i) {
        if (!is_packed(object(s.arg.tensors[i]))) {
          check_saved_version(s.arg.tensors[i], static_cast<uint32_t>(versions[i]), nullptr, 0);
          continue;
        }
        if (!unpacked) {
          unpacked = reinterpret_cast<Tensor**>(ints(static_cast<size_t>(s.arg.count)));
          std::copy_n(s.arg.tensors, s.arg.count, unpacked);
          list.tensors = unpacked;
        }
        keep_.push_back(unpack_saved(object(s.arg.tensors[i])));
        unpacked[i] = tensor(keep_.back());
      }
      return list;
    }
    case Saved::Released: raise_released(node);
    default: return s.arg;
  }
}

Tensor* Machine::grad(uint32_t index) {
  if (index >= node->noutputs)
    raise(PyExc_IndexError, "gradient rule of %s: asks for grads[%u] of %u results.", node->rule->op->name, index,
          node->noutputs);
  if (grads[index]) return as_tensor(grads[index]);
  const Geometry& g = node->outputs[index];
  keep_.push_back(zeros(g.ndim, g.sizes, g.dtype, g.device));
  if (t_strict_zero) keep_.back() = protect(keep_.back().get());
  return tensor(keep_.back());
}

Arg Machine::get(Operand o) {
  switch (o.source) {
    case Operand::Constant: return (*node->rule->constants)[o.index];
    case Operand::Saved: return unpack(o.index);
    case Operand::Grad: return arg(grad(o.index));
    default: return temporaries_[o.index].arg;
  }
}

Geometry Machine::geometry(Operand o) {
  if (o.source == Operand::Saved && node->saved[o.index].state == Saved::Shape)
    return *reinterpret_cast<Geometry*>(node->saved[o.index].arg.object);
  if (o.source == Operand::Grad) return node->outputs[o.index];
  Arg a = get(o);
  if (a.is_tensor()) return geometry_of(a.tensor);
  return {a.kind == Kind::Complex ? DType::Complex128 : DType::Float64, Device{kCPU, -1}, 0, nullptr, nullptr, 0};
}

std::vector<Geometry> Machine::geometries(Operand o) {
  std::vector<Geometry> all;
  if (o.source == Operand::Saved && node->saved[o.index].state == Saved::Shapes) {
    const Saved& s = node->saved[o.index];
    for (int i = 0; i < s.arg.count; ++i) all.push_back(*reinterpret_cast<Geometry**>(s.arg.object)[i]);
    return all;
  }
  Arg a = get(o);
  for (int i = 0; i < a.count; ++i) all.push_back(geometry_of(a.tensors[i]));
  return all;
}

Value Machine::arithmetic(Instruction::Code code, const Arg& a, const Arg& b) {
  using C = Instruction::Code;
  if (a.is_tensor() || b.is_tensor()) {
    // Multipliers that a call left at 1 (alpha, beta) cost nothing.
    if (code == C::Mul && b.kind == Kind::Int && b.i == 1) return shared_value(a);
    switch (code) {
      case C::Add: return value_of(call(ops::add, {a, b}));
      case C::Sub: return value_of(call(ops::sub, {a, b}));
      case C::Mul: return value_of(call(ops::mul, {a, b}));
      case C::Div: return value_of(call(ops::div, {a, b}));
      case C::Pow:
        return value_of(call(!b.is_tensor() ? ops::pow_scalar : a.is_tensor() ? ops::pow : ops::pow_of_scalar, {a, b}));
      case C::Neg: return value_of(call(ops::neg, {a}));
      case C::Eq: return value_of(call(ops::eq, {a, b}));
      case C::Ne: return value_of(call(ops::ne, {a, b}));
      case C::Lt: return value_of(call(ops::lt, {a, b}));
      case C::Le: return value_of(call(ops::le, {a, b}));
      case C::Gt: return value_of(call(ops::gt, {a, b}));
      default: return value_of(call(ops::ge, {a, b}));
    }
  }
  if (!a.is_number() || (code != C::Neg && !b.is_number())) {
    bool equal = a.kind == b.kind &&
                 (a.none() || (a.kind == Kind::DType && a.dtype == b.dtype) ||
                  (a.kind == Kind::Object && PyObject_RichCompareBool(a.object, b.object, Py_EQ) == 1) ||
                  (a.kind == Kind::Ints && a.count == b.count && std::equal(a.ints, a.ints + a.count, b.ints)));
    if (code == C::Eq) return value_of(arg(equal));
    if (code == C::Ne) return value_of(arg(!equal));
    raise(PyExc_TypeError, "gradient rule of %s: arithmetic on something that is neither a tensor nor a number.",
          node->rule->op->name);
  }
  if (code == C::Neg) return arithmetic(C::Mul, arg(int64_t{-1}), a);
  if (a.kind == Kind::Complex || b.kind == Kind::Complex) {
    std::complex<double> x(a.to_double(), a.kind == Kind::Complex ? a.imag : 0),
        y(b.to_double(), b.kind == Kind::Complex ? b.imag : 0);
    std::complex<double> z;
    switch (code) {
      case C::Add: z = x + y; break;
      case C::Sub: z = x - y; break;
      case C::Mul: z = x * y; break;
      case C::Div: z = x / y; break;
      case C::Pow: z = std::pow(x, y); break;
      case C::Eq: return value_of(arg(x == y));
      case C::Ne: return value_of(arg(x != y));
      default: raise(PyExc_TypeError, "gradient rule of %s: complex numbers have no order.", node->rule->op->name);
    }
    Arg r;
    r.kind = Kind::Complex;
    r.d = z.real();
    r.imag = z.imag();
    return value_of(r);
  }
  bool integers = a.kind != Kind::Float && b.kind != Kind::Float;
  double x = a.to_double(), y = b.to_double();
  switch (code) {
    case C::Add: return value_of(integers ? arg(a.to_int() + b.to_int()) : arg(x + y));
    case C::Sub: return value_of(integers ? arg(a.to_int() - b.to_int()) : arg(x - y));
    case C::Mul: return value_of(integers ? arg(a.to_int() * b.to_int()) : arg(x * y));
    case C::Div: return value_of(arg(x / y));
    case C::Pow: return value_of(arg(std::pow(x, y)));
    case C::Eq: return value_of(arg(x == y));
    case C::Ne: return value_of(arg(x != y));
    case C::Lt: return value_of(arg(x < y));
    case C::Le: return value_of(arg(x <= y));
    case C::Gt: return value_of(arg(x > y));
    default: return value_of(arg(x >= y));
  }
}

namespace {

bool fits(const Param& p, const Arg& a, bool numbers) {
  if (a.none()) return p.optional || p.type == ParamType::Any || (p.has_default && p.default_value.none());
  switch (p.type) {
    case ParamType::Tensor: return a.is_tensor() || (numbers && a.is_number());
    case ParamType::Tensors: return a.kind == Kind::Tensors;
    case ParamType::Int: return a.kind == Kind::Int || a.kind == Kind::Bool;
    case ParamType::Float: return a.kind == Kind::Float || a.kind == Kind::Int;
    case ParamType::Bool: return a.kind == Kind::Bool;
    case ParamType::Scalar: return a.is_number();
    case ParamType::Ints: return a.kind == Kind::Ints || a.kind == Kind::Int;
    case ParamType::DType: return a.kind == Kind::DType;
    case ParamType::Device: return a.kind == Kind::Device;
    default: return true;
  }
}

// Whether an overload takes the arguments, and nothing is missing.
bool takes(const Op* op, const Arg* args, int nargs) {
  for (int i = 0; i < op->nparams; ++i)
    if (i < nargs ? !fits(op->params[i], args[i], op->accepts_numbers)
                  : !op->params[i].has_default && !op->params[i].optional)
      return false;
  return true;
}

}  // namespace

Value Machine::run(const Program& p) {
  if (p.ntemporaries > static_cast<int>(std::size(few_))) {
    many_.resize(static_cast<size_t>(p.ntemporaries));
    temporaries_ = many_.data();
  }
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const Instruction& in = p.code[pc];
    const Operand* operands = p.operands.data() + in.first;
    switch (in.code) {
      case Instruction::Call: {
        Arg args[kMaxParams];
        const auto* overload = in.overloads.data();
        const auto* last = overload + in.overloads.size() - 1;
        for (;; ++overload) {
          for (int i = 0; i < overload->nargs; ++i)
            args[i] = get(p.operands[overload->first + static_cast<uint32_t>(i)]);
          if (overload == last || takes(overload->op, args, overload->nargs)) break;
        }
        temporaries_[in.target] = value_of(Ref<>::check(api->call(overload->op, args, overload->nargs)));
        break;
      }
      case Instruction::Builtin: temporaries_[in.target] = in.builtin(*this, operands, in.nargs); break;
      case Instruction::Move: temporaries_[in.target] = shared_value(get(operands[0])); break;
      case Instruction::Jump: pc = in.nargs - size_t{1}; break;
      case Instruction::JumpUnless: {
        Arg a = get(operands[0]);
        bool truth = a.is_number() ? a.to_bool() : a.kind == Kind::Ints ? a.count != 0 : !a.none();
        if (!truth) pc = in.nargs - size_t{1};
        break;
      }
      case Instruction::Neg: temporaries_[in.target] = arithmetic(in.code, get(operands[0]), Arg()); break;
      default: temporaries_[in.target] = arithmetic(in.code, get(operands[0]), get(operands[1]));
    }
  }
  return shared_value(get(p.result));
}

void init_rule_type(PyObject* module) {
  g_rule_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&rule_spec)).release());
  check(PyModule_AddObjectRef(module, "Rule", object(g_rule_type)));
  g_saved_tensor_type = reinterpret_cast<PyTypeObject*>(Ref<>::check(PyType_FromSpec(&saved_tensor_spec)).release());
  check(PyModule_AddObject(module, "set_strict_zero",
                           Ref<>::check(PyCFunction_New(&set_strict_zero_def, nullptr)).release()));
  check(PyModule_AddObject(module, "builtin", Ref<>::check(PyCFunction_New(&is_builtin_def, nullptr)).release()));
}

}  // namespace rl
