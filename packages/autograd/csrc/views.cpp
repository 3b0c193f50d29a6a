#include "views.h"

#include <algorithm>
#include <vector>

#include "call.h"
#include "rule.h"

namespace rl {

namespace {

PyTypeObject* g_copy_slices_type = nullptr;

// backward: the part of the gradient that the view covers goes through `write`, the rest to the base of before.
struct CopySlices : Node {
  Node* write;
  Geometry* view;  // its offset is relative to the start of the storage
  Geometry* base;
};

Ref<> strided(const Ref<>& t, const Geometry& g, int64_t offset) {
  return call(ops::as_strided, {arg(tensor(t)), arg(g.sizes, g.ndim), arg(g.strides, g.ndim), arg(offset)});
}

// A view may be of the parts of a complex base, or of pairs of numbers of a real one: its places count those.
bool of_parts(DType base, DType view) { return is_complex(base) && !is_complex(view); }
bool of_pairs(DType base, DType view) { return !is_complex(base) && is_complex(view); }

void backward_copy_slices(Node* node, PyObject** grads, PyObject** results, const Needs& needs) {
  auto* n = static_cast<CopySlices*>(node);
  if (!grads[0]) return;
  if (!n->write) raise_released(n);
  // A copy of the gradient in memory laid out as the base's, so that the view's strides apply to it.
  const bool parts = of_parts(n->base->dtype, n->view->dtype), pairs = of_pairs(n->base->dtype, n->view->dtype);
  auto [low, extent] = span_of(*n->base);
  if (pairs) {  // which start at even places
    extent += low & 1;
    extent += extent & 1;
    low -= low & 1;
  }
  Ref<> memory = zeros_beside(as_tensor(grads[0]), extent);
  Ref<> whole = strided(memory, *n->base, n->base->offset - low);
  call_inplace(ops::copy_, {arg(tensor(whole)), arg(as_tensor(grads[0]))});
  const int64_t paired[] = {-1, 2};
  Ref<> seen = memory;
  if (parts) seen = call(ops::view_as_real, {arg(tensor(memory))});
  if (pairs)
    seen = call(ops::view_as_complex, {arg(tensor(call(ops::reshape, {arg(tensor(memory)), arg(paired, 2)})))});
  Ref<> part = strided(seen, *n->view, n->view->offset - (parts ? 2 * low : pairs ? low / 2 : low));

  Node* write = n->write;
  Ref<> written = call(ops::clone, {arg(tensor(part))});
  PyObject* write_grads[] = {written.get()};
  // The other inputs of the write have the same edges here; its first is the view, and is always wanted.
  write->kind->backward(write, write_grads, results, Needs{nullptr, write});
  Ref<> before(std::exchange(results[0], nullptr));
  if (before)
    before = fit_gradient(before.get(), *n->view, node, 0);
  else
    before = zeros(n->view->ndim, n->view->sizes, tensor(part)->dtype, tensor(part)->device);
  call_inplace(ops::copy_, {arg(tensor(part)), arg(tensor(before))});
  // Written through `part`, so read through a view made after that.
  results[0] = strided(memory, *n->base, n->base->offset - low).release();
  for (uint32_t i = 1; i < n->nedges; ++i)
    if (!needs(i)) Py_CLEAR(results[i]);
}

void release_copy_slices(Node* node) { Py_CLEAR(static_cast<CopySlices*>(node)->write); }

int traverse_copy_slices(Node* node, visitproc visit, void* arg) {
  Py_VISIT(static_cast<CopySlices*>(node)->write);
  return 0;
}

const NodeKind copy_slices_kind = {backward_copy_slices, release_copy_slices, traverse_copy_slices, release_copy_slices,
                                   false};

Geometry* store(char*& at, const Tensor* t) {
  auto* g = reinterpret_cast<Geometry*>(at);
  auto* v = reinterpret_cast<int64_t*>(g + 1);
  *g = geometry_of(t);
  std::copy_n(t->sizes, t->ndim, v);
  std::copy_n(t->strides, t->ndim, v + t->ndim);
  g->sizes = v;
  g->strides = v + t->ndim;
  at = reinterpret_cast<char*>(v + 2 * t->ndim);
  return g;
}

}  // namespace

std::pair<int64_t, int64_t> span_of(const Geometry& g) {
  int64_t extent = 1;
  for (int d = 0; d < g.ndim; ++d) extent += g.sizes[d] ? (g.sizes[d] - 1) * g.strides[d] : 0;
  return {g.offset, extent};
}

Node* copy_slices(Tensor* view, Node* write) {
  Tensor* base = view->base;
  size_t extra = sizeof(Edge) * write->nedges + 2 * sizeof(Geometry) +
                 2 * sizeof(int64_t) * (view->ndim + 2 * base->ndim) + sizeof(Geometry);
  auto* n = new_node<CopySlices>(g_copy_slices_type, &copy_slices_kind, extra);
  Ref<Node> hold(n);
  char* at = reinterpret_cast<char*>(n + 1);
  n->edges = reinterpret_cast<Edge*>(at);
  at += sizeof(Edge) * write->nedges;
  n->outputs = store(at, base);
  n->noutputs = 1;
  n->base = store(at, base);
  n->view = store(at, view);
  n->version = view->storage->version;
  n->write = write;
  Py_INCREF(write);
  n->edges[0] = gradient_edge(base);
  for (uint32_t i = 1; i < write->nedges; ++i) {
    n->edges[i] = write->edges[i];
    Py_XINCREF(n->edges[i].node);
  }
  n->nedges = write->nedges;
  finish_node(n);
  return hold.release();
}

namespace {

Node* view_node(const Op* op, Tensor* from, const Arg* args, Tensor* view) {
  PyObject* output = object(view);
  Edge edge = gradient_edge(from);
  Ref<Node> hold(edge.node);
  RuleNode* n = new_rule_node({rule_of(op), args, &output, 1, &edge, 1});
  hold.release();
  return n;
}

}  // namespace

Node* view_of_base(Tensor* view) {
  ThreadBitsScope recorded(0, kNoGrad);
  if (of_pairs(view->base->dtype, view->dtype)) {
    std::vector<int64_t> sizes(view->sizes, view->sizes + view->ndim),
        strides(view->strides, view->strides + view->ndim);
    for (int64_t& stride : strides) stride *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    const int ndim = view->ndim + 1;
    Ref<> pairs = call(ops::as_strided,
                       {arg(view->base), arg(sizes.data(), ndim), arg(strides.data(), ndim), arg(2 * view->offset)});
    Arg args[] = {arg(tensor(pairs))};
    return view_node(ops::view_as_complex, tensor(pairs), args, view);
  }
  Ref<> parts;
  if (of_parts(view->base->dtype, view->dtype)) parts = call(ops::view_as_real, {arg(view->base)});
  Tensor* from = parts ? tensor(parts) : view->base;
  Arg args[] = {arg(from), arg(view->sizes, view->ndim), arg(view->strides, view->ndim), arg(view->offset)};
  return view_node(ops::as_strided, from, args, view);
}

void init_views() { g_copy_slices_type = new_node_type("CopySlices"); }

}  // namespace rl
