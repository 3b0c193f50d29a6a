#include "engine.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "anomaly.h"
#include "call.h"

namespace rl {

namespace {

constexpr int32_t kNone = -1;
uint64_t g_passes = 0;

// What a pass knows of a node: the gradients that arrived so far.
struct State {
  Node* node;
  PyObject* single;    // of nodes with one output
  PyObject** several;  // of the others
  int32_t capture;     // first of Task::captures for this node
  bool execute;
  bool queued;
  PyObject** grads() { return several ? several : &single; }
};

struct Capture {
  uint32_t index;  // gradient of the node
  Ref<> grad;
  int32_t next;
};

}  // namespace

// One backward pass. Several may run at once, nested or in threads; each claims the nodes that no other has claimed and
// remembers the rest in a table of its own.
struct Task {
  PassOptions options;
  bool selective = false;  // only what leads to `inputs` runs
  std::vector<State> states;
  std::vector<uint32_t> unused;
  std::vector<Capture> captures;
  std::vector<std::pair<uint64_t, uint32_t>> queue;  // heap of (sequence, slot)
  std::unordered_map<const Node*, uint32_t> elsewhere;
  const std::vector<Root>& roots;
  uint64_t number;
  std::unordered_set<const Node*> reached;  // by a pass that is not selective; found when first asked for

  Task(const PassOptions& o, const std::vector<Root>& roots) : options(o), roots(roots), number(++g_passes) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    for (State& s : states)
      if (s.node) close(s);
  }

  int32_t find(const Node* n) const {
    if (n->task == this) return static_cast<int32_t>(n->slot);
    if (elsewhere.empty()) return kNone;
    auto it = elsewhere.find(n);
    return it == elsewhere.end() ? kNone : static_cast<int32_t>(it->second);
  }

  uint32_t open(Node* n) {
    uint32_t slot;
    if (unused.empty()) {
      slot = static_cast<uint32_t>(states.size());
      states.push_back({});
    } else {
      slot = unused.back();
      unused.pop_back();
    }
    State& s = states[slot];
    s = {n, nullptr, nullptr, kNone, !selective, false};
    if (n->noutputs > 1) {
      s.several = static_cast<PyObject**>(PyMem_Calloc(n->noutputs, sizeof(PyObject*)));
      if (!s.several) {
        s.node = nullptr;
        throw std::bad_alloc();
      }
    }
    if (!n->task) {
      n->task = this;
      n->slot = slot;
    } else {
      elsewhere.emplace(n, slot);
    }
    return slot;
  }

  void close(State& s) {
    for (uint32_t i = 0; i < s.node->noutputs; ++i) Py_XDECREF(s.grads()[i]);
    PyMem_Free(s.several);
    if (s.node->task == this)
      s.node->task = nullptr;
    else
      elsewhere.erase(s.node);
    s.node = nullptr;
  }

  bool wants(const Edge& e) const {
    if (!e.node) return false;
    if (!selective) return true;
    int32_t slot = find(e.node);
    return slot != kNone && (states[slot].execute || states[slot].capture != kNone);
  }

  void send(const Edge& e, Ref<> grad);
  void select(const std::vector<Edge>& inputs);
  void process(uint32_t slot);
  void run();
  bool reaches(const Node*);
};

bool Needs::operator()(uint32_t edge) const {
  return task ? task->wants(node->edges[edge]) : node->edges[edge].node != nullptr;
}

// ---- gradients that fit

Geometry output_geometry(const Edge& e) {
  return is_accumulate(e.node) ? geometry_of(static_cast<AccumulateNode*>(e.node)->tensor) : e.node->outputs[e.index];
}

Ref<> zeros(int ndim, const int64_t* sizes, DType dtype, Device device) {
  auto t = Ref<>::check(api->empty(ndim, sizes, dtype, device));
  auto zero = Ref<>::check(api->from_number(0, 0, Kind::Int, dtype, device));
  check(api->copy(tensor(t), tensor(zero)));
  return t;
}

Ref<> zeros_beside(Tensor* like, int64_t n) {
  if (like->flags & kLayout) return call(ops::new_zeros, {arg(like), arg(&n, 1)});
  return zeros(1, &n, like->dtype, like->device);
}

namespace {

Ref<> shape_tuple(int ndim, const int64_t* sizes) {
  auto list = Ref<>::check(PyList_New(ndim));
  for (int d = 0; d < ndim; ++d) PyList_SET_ITEM(list.get(), d, Ref<>::check(PyLong_FromLongLong(sizes[d])).release());
  return list;
}

bool same_shape(const Tensor* t, const Geometry& g) {
  return t->ndim == g.ndim && std::equal(g.sizes, g.sizes + g.ndim, t->sizes);
}

bool broadcasts_to(const Geometry& small, const Tensor* large) {
  if (small.ndim > large->ndim) return false;
  for (int d = 1; d <= small.ndim; ++d) {
    int64_t n = small.sizes[small.ndim - d];
    if (n != 1 && n != large->sizes[large->ndim - d]) return false;
  }
  return true;
}

// The inverse of broadcasting.
Ref<> sum_to(Tensor* t, const Geometry& g) {
  int64_t dims[kMaxRank];
  int n = 0, lead = t->ndim - g.ndim;
  for (int d = 0; d < t->ndim; ++d)
    if (d < lead || (g.sizes[d - lead] == 1 && t->sizes[d] != 1)) dims[n++] = d;
  if (n == lead) return call(ops::sum, {arg(t), arg(dims, n), arg(false)});
  Ref<> sum = call(ops::sum, {arg(t), arg(dims, n), arg(true)});
  return lead ? call(ops::reshape, {arg(tensor(sum)), arg(g.sizes, g.ndim)}) : sum;
}

}  // namespace

Ref<> fit_gradient(PyObject* grad, const Geometry& like, const Node* from, uint32_t index) {
  Tensor* t = as_tensor(grad);
  Ref<> result = Ref<>::borrow(grad);
  if (!same_shape(t, like)) {
    if (!broadcasts_to(like, t)) {
      auto got = shape_tuple(t->ndim, t->sizes), wanted = shape_tuple(like.ndim, like.sizes);
      raise(PyExc_RuntimeError,
            "Function %s returned an invalid gradient at index %u - got %R but expected shape compatible with %R. "
            "Return one of the shape of the input.",
            name_of(from), index, got.get(), wanted.get());
    }
    result = sum_to(t, like);
    t = tensor(result);
  }
  if (t->dtype != like.dtype) {
    if (is_complex(t->dtype) && !is_complex(like.dtype)) result = call(ops::real, {arg(t)});
    if (tensor(result)->dtype != like.dtype) result = call(ops::cast, {arg(tensor(result)), arg(like.dtype)});
  }
  return result;
}

// ---- saved values that are no longer what they were

void check_saved_version(const Tensor* t, uint32_t saved_version, const char* maker, uint32_t output_nr) {
  if (t->storage->version == saved_version) return;
  static const char* const legacy[kNumDTypes] = {"Byte",   "Char",         "Short",         "Int",
                                                 "Long",   "Half",         "BFloat16",      "Float",
                                                 "Double", "ComplexFloat", "ComplexDouble", "Bool"};
  auto shape = Ref<>::check(PyList_New(t->ndim));
  for (int d = 0; d < t->ndim; ++d)
    PyList_SET_ITEM(shape.get(), d, Ref<>::check(PyLong_FromLongLong(t->sizes[d])).release());
  auto origin = maker ? Ref<>::check(PyUnicode_FromFormat(", which is output %u of %s,", output_nr, maker))
                      : Ref<>::check(PyUnicode_FromString(""));
  const std::string where = write_since(t->storage, saved_version);
  const std::string advice =
      !where.empty()      ? "It was written to by " + where + ". Use the operator that returns a new tensor there."
      : anomaly_enabled() ? "Where it was written to is unknown: it was not in this thread in anomaly mode."
                          : "Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
                            "and the one that wrote, with torch.autograd.set_detect_anomaly(True).";
  raise(PyExc_RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[rushlight.%sTensor %S]%U is at version %u; expected version %u instead. %s",
        legacy[static_cast<int>(t->dtype)], shape.get(), origin.get(), t->storage->version, saved_version,
        advice.c_str());
}

void raise_released(const Node* node) {
  raise(PyExc_RuntimeError,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). "
        "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if "
        "you need to backward through the graph a second time or if you need to access saved tensors after calling "
        "backward. It was %s that was met again.",
        name_of(node));
}

static PyObject* or_none(PyObject* o) { return o ? o : Py_None; }

Ref<> tuple_or_none(PyObject* const* items, uint32_t n) {
  auto tuple = Ref<>::check(PyTuple_New(n));
  for (uint32_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(or_none(items[i])));
  return tuple;
}

// ---- a pass

void Task::send(const Edge& e, Ref<> grad) {
  int32_t found = find(e.node);
  if (selective && found == kNone) return;
  uint32_t slot = found == kNone ? open(e.node) : static_cast<uint32_t>(found);
  State& s = states[slot];
  if (selective && !s.execute && s.capture == kNone) return;
  if (grad) {
    PyObject*& sum = s.grads()[e.index];
    if (!sum) {
      sum = grad.release();
    } else {
      Ref<> old(std::exchange(sum, nullptr));
      Tensor* t = tensor(old);
      bool inplace = !options.create_graph && Py_REFCNT(old.get()) == 1 && t->storage->refs == 1 &&
                     !t->storage->owner && !t->array && !t->base && t->contiguous() &&
                     t->numel == tensor(grad)->numel && t->dtype == tensor(grad)->dtype;
      Ref<> total = inplace ? call_inplace(ops::add, {arg(t), arg(tensor(grad))}) : sum_gradients(t, tensor(grad));
      states[slot].grads()[e.index] = total.release();
    }
  }
  State& now = states[slot];
  if (!now.queued) {
    now.queued = true;
    queue.emplace_back(e.node->sequence, slot);
    std::push_heap(queue.begin(), queue.end());
  }
}

// Marks what has to run so that the inputs get their gradients. Nothing older than the oldest input matters.
void Task::select(const std::vector<Edge>& inputs) {
  selective = true;
  uint64_t oldest = UINT64_MAX;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Edge& e = inputs[i];
    captures.push_back({e.index, {}, kNone});
    if (!e.node) continue;  // nothing leads to it
    oldest = std::min(oldest, e.node->sequence);
    int32_t found = find(e.node);
    uint32_t slot = found == kNone ? open(e.node) : static_cast<uint32_t>(found);
    if (options.accumulate && is_accumulate(e.node)) {
      states[slot].execute = true;
    } else {
      captures.back().next = states[slot].capture;
      states[slot].capture = static_cast<int32_t>(i);
    }
  }
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // (slot, next edge)
  std::vector<bool> visited(states.size());
  auto leads = [&](uint32_t slot) { return states[slot].execute || states[slot].capture != kNone; };
  auto visit = [&](Node* n) {  // the slot; pushed when it is new
    int32_t found = find(n);
    uint32_t slot = found == kNone ? open(n) : static_cast<uint32_t>(found);
    if (visited.size() < states.size()) visited.resize(states.size());
    if (!visited[slot]) {
      visited[slot] = true;
      stack.emplace_back(slot, 0);
    }
    return slot;
  };
  for (const Root& r : roots) {
    visit(r.edge.node);
    while (!stack.empty()) {
      auto [slot, i] = stack.back();
      Node* n = states[slot].node;
      if (i < n->nedges) {
        stack.back().second = i + 1;
        Node* child = n->edges[i].node;
        if (child && child->sequence >= oldest && leads(visit(child))) states[slot].execute = true;
      } else {
        stack.pop_back();
        if (!stack.empty() && leads(slot)) states[stack.back().first].execute = true;
      }
    }
  }
}

namespace {

std::string hook_name(PyObject* hook) {
  Ref<> name(PyObject_GetAttrString(hook, "__name__"));
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : Py_TYPE(hook)->tp_name;
}

PyObject* checked_grad(PyObject* value, PyObject* hook) {
  if (value != Py_None && !is_tensor(value))
    raise(PyExc_TypeError,
          "expected Variable, but hook returned '%s'. Return a Tensor from '%s', or None to keep the gradient.",
          Py_TYPE(value)->tp_name, hook_name(hook).c_str());
  return value;
}

void check_replacement(const Tensor* was, const Tensor* now, PyObject* hook) {
  if (was->dtype != now->dtype)
    raise(PyExc_RuntimeError,
          "hook '%s' has changed the type of value (was %s got %s). Return a gradient of the dtype of the tensor.",
          hook_name(hook).c_str(), name(was->dtype), name(now->dtype));
  if (was->ndim != now->ndim || !std::equal(was->sizes, was->sizes + was->ndim, now->sizes))
    raise(PyExc_RuntimeError,
          "hook '%s' has changed the size of value (was %R got %R). Return a gradient of the shape of the tensor.",
          hook_name(hook).c_str(), shape_tuple(was->ndim, was->sizes).get(), shape_tuple(now->ndim, now->sizes).get());
}

// Tensor hooks: each sees the gradient and may replace it.
void run_tensor_hooks(PyObject* hooks, PyObject*& grad) {
  if (!hooks || !PyDict_GET_SIZE(hooks)) return;
  auto all = Ref<>::check(PyDict_Values(hooks));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* hook = PyList_GET_ITEM(all.get(), i);
    auto value = Ref<>::check(PyObject_CallOneArg(hook, or_none(grad)));
    if (checked_grad(value.get(), hook) == Py_None) continue;
    if (grad) check_replacement(as_tensor(grad), tensor(value), hook);
    Py_XSETREF(grad, value.release());
  }
}

void replace_grads(PyObject* value, PyObject** grads, uint32_t n, PyObject* hook) {
  if (value == Py_None) return;
  Ref<> tuple = Ref<>::borrow(value);
  if (!PyTuple_Check(value)) tuple = Ref<>::check(PyTuple_Pack(1, value));
  if (PyTuple_GET_SIZE(tuple.get()) != static_cast<Py_ssize_t>(n))
    raise(PyExc_RuntimeError, "hook '%s' has returned an incorrect number of values (got %zd, but expected %u)",
          hook_name(hook).c_str(), PyTuple_GET_SIZE(tuple.get()), n);
  for (uint32_t i = 0; i < n; ++i) {
    PyObject* g = checked_grad(PyTuple_GET_ITEM(tuple.get(), i), hook);
    Py_XSETREF(grads[i], g == Py_None ? nullptr : Py_NewRef(g));
  }
}

void run_before_hooks(PyObject* hooks, PyObject** grads, uint32_t n) {
  auto all = Ref<>::check(PyDict_Values(hooks));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
    PyObject* hook = PyList_GET_ITEM(all.get(), i);
    auto value = Ref<>::check(PyObject_CallOneArg(hook, tuple_or_none(grads, n).get()));
    replace_grads(value.get(), grads, n, hook);
  }
}

void run_after_hooks(PyObject* hooks, PyObject** results, uint32_t nresults, PyObject* outputs) {
  auto all = Ref<>::check(PyDict_Values(hooks));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
    auto inputs = tuple_or_none(results, nresults);
    PyObject *args[] = {inputs.get(), outputs}, *hook = PyList_GET_ITEM(all.get(), i);
    auto value = Ref<>::check(PyObject_Vectorcall(hook, args, 2, nullptr));
    replace_grads(value.get(), results, nresults, hook);
  }
}

// Gradients of a node's inputs, owned.
struct Results {
  PyObject* inline_[8] = {};
  PyObject** v = inline_;
  uint32_t n;
  explicit Results(uint32_t n) : n(n) {
    if (n <= 8) return;
    v = static_cast<PyObject**>(PyMem_Calloc(n, sizeof(PyObject*)));
    if (!v) throw std::bad_alloc();
  }
  ~Results() {
    for (uint32_t i = 0; i < n; ++i) Py_XDECREF(v[i]);
    if (v != inline_) PyMem_Free(v);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
};

}  // namespace

void Task::process(uint32_t slot) {
  Node* n = states[slot].node;
  // `states` may grow while hooks and operators run, so its elements are not held on to.
  Results grads(n->noutputs);
  for (uint32_t i = 0; i < n->noutputs; ++i) grads.v[i] = std::exchange(states[slot].grads()[i], nullptr);

  if (is_accumulate(n)) {
    if (Meta* m = meta_if_any(static_cast<AccumulateNode*>(n)->tensor)) run_tensor_hooks(m->hooks, grads.v[0]);
  } else if (n->hooks) {
    for (uint32_t i = 0; i < n->hooks->ntensors; ++i) {
      uint32_t index = n->hooks->tensors[i].index;
      Ref<> hooks = Ref<>::borrow(n->hooks->tensors[i].hooks);
      run_tensor_hooks(hooks.get(), grads.v[index]);
      PyObject* link = n->hooks->tensors[i].retain;
      PyObject* t = link ? PyWeakref_GET_OBJECT(link) : Py_None;
      if (t != Py_None && grads.v[index]) {
        PyObject*& kept = meta_of(as_tensor(t)).grad;
        auto* grad = as_tensor(grads.v[index]);  // whose memory other gradients may share
        Ref<> sum = kept ? sum_gradients(as_tensor(kept), grad) : call(ops::clone, {arg(grad)});
        std::swap(kept, *reinterpret_cast<PyObject**>(&sum));
      }
    }
  }
  for (int32_t c = states[slot].capture; c != kNone; c = captures[c].next)
    captures[c].grad = Ref<>::borrow(grads.v[captures[c].index]);
  if (!states[slot].execute) {
    close(states[slot]);
    return;
  }

  if (n->hooks && n->hooks->before) run_before_hooks(Ref<>::borrow(n->hooks->before).get(), grads.v, n->noutputs);
  Ref<> outputs;
  if (n->hooks && n->hooks->after) outputs = tuple_or_none(grads.v, n->noutputs);

  Results results(n->nedges);
  bool any = n->kind->runs_without_grads;
  for (uint32_t i = 0; i < n->noutputs; ++i) any = any || grads.v[i];
  if (any) {
    if (n->trace || anomaly_enabled())
      backward_with_trace(n, grads.v, results.v, Needs{this, n});
    else
      n->kind->backward(n, grads.v, results.v, Needs{this, n});
  }
  if (!options.retain_graph) n->kind->release(n);
  if (outputs && n->hooks && n->hooks->after)
    run_after_hooks(Ref<>::borrow(n->hooks->after).get(), results.v, n->nedges, outputs.get());

  for (uint32_t i = 0; i < n->noutputs; ++i) Py_CLEAR(grads.v[i]);
  for (uint32_t i = 0; i < n->nedges; ++i) {
    const Edge& e = n->edges[i];
    if (!wants(e)) continue;
    Ref<> g(std::exchange(results.v[i], nullptr));
    if (g) g = fit_gradient(g.get(), output_geometry(e), n, i);
    send(e, std::move(g));
  }
  if (!selective) {  // a selective pass asks what it wants of nodes until its end
    close(states[slot]);
    unused.push_back(slot);
  }
}

bool Task::reaches(const Node* n) {
  if (selective) {
    int32_t slot = find(n);
    return slot != kNone && (states[slot].execute || states[slot].capture != kNone);
  }
  if (reached.empty()) {
    std::vector<const Node*> stack;
    for (const Root& r : roots) stack.push_back(r.edge.node);
    while (!stack.empty()) {
      const Node* at = stack.back();
      stack.pop_back();
      if (!reached.insert(at).second) continue;
      for (uint32_t i = 0; i < at->nedges; ++i)
        if (at->edges[i].node) stack.push_back(at->edges[i].node);
    }
  }
  return reached.count(n);
}

void Task::run() {
  for (const Root& r : roots) send(r.edge, Ref<>::borrow(r.grad));
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end());
    uint32_t slot = queue.back().second;
    queue.pop_back();
    process(slot);
    if (PyErr_CheckSignals() < 0) throw PythonError();
  }
}

namespace {

thread_local Task* t_task = nullptr;  // the innermost pass of this thread

struct TaskScope {
  Task* before;
  explicit TaskScope(Task* task) : before(std::exchange(t_task, task)) {}
  ~TaskScope() { t_task = before; }
};

}  // namespace

bool is_selective_pass() { return t_task && t_task->selective; }
uint64_t pass_number() { return t_task ? t_task->number : 0; }
bool pass_reaches(const Node* n) { return t_task && t_task->reaches(n); }

std::vector<Ref<>> run_backward(const std::vector<Root>& roots, const std::vector<Edge>& inputs,
                                const PassOptions& options) {
  ThreadBitsScope mode(options.create_graph ? 0u : kNoGrad, options.create_graph ? kNoGrad : 0u);
  Task task(options, roots);
  TaskScope scope(&task);
  if (!inputs.empty()) task.select(inputs);
  task.run();
  std::vector<Ref<>> grads;
  for (auto& capture : task.captures) grads.push_back(std::move(capture.grad));
  return grads;
}

PyObject* apply_node(Node* n, PyObject* args) {
  if (PyTuple_GET_SIZE(args) != static_cast<Py_ssize_t>(n->noutputs))
    raise(PyExc_TypeError, "%s: takes %u gradients, got %zd. Pass one for each output, None where there is none.",
          name_of(n), n->noutputs, PyTuple_GET_SIZE(args));
  Results grads(n->noutputs), results(n->nedges);
  for (uint32_t i = 0; i < n->noutputs; ++i) {
    PyObject* g = PyTuple_GET_ITEM(args, i);
    if (g != Py_None && !is_tensor(g))
      raise(PyExc_TypeError, "%s: gradients are Tensors or None, got argument %u=%s.", name_of(n), i,
            Py_TYPE(g)->tp_name);
    grads.v[i] = g == Py_None ? nullptr : Py_NewRef(g);
  }
  n->kind->backward(n, grads.v, results.v, Needs{nullptr, n});
  auto tuple = tuple_or_none(results.v, n->nedges);
  return n->nedges == 1 ? Py_NewRef(PyTuple_GET_ITEM(tuple.get(), 0)) : tuple.release();
}

}  // namespace rl
