// Kernels of scaled dot product attention.
#include "bind.h"
#include "kernels/attention.h"

namespace rl {
namespace {

bool fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return false;
}

// The tensor itself if the elements of its rows lie next to each other, else a contiguous copy.
Owned with_rows(Tensor* t) {
  if (t->sizes[3] > 1 && t->strides[3] != 1) return contiguous(t);
  Py_INCREF(t);
  return Owned(reinterpret_cast<PyObject*>(t));
}
void read_strides(const Owned& t, int64_t* strides) {
  for (int d = 0; d < 3; ++d) strides[d] = t->strides[d];
}

// A tensor (*sizes of `like`, last) whose dimensions lie in memory in the order of those of `like`.
Owned empty_ordered(const Tensor* like, int64_t last) {
  static const Op* empty_strided = api->find_op("empty_strided");
  int64_t sizes[4] = {like->sizes[0], like->sizes[1], like->sizes[2], last}, strides[4] = {0, 0, 0, 1};
  int order[3] = {0, 1, 2};
  for (int i = 0; i < 3; ++i) {
    for (int j = i + 1; j < 3; ++j) {
      if (like->strides[order[j]] > like->strides[order[i]]) std::swap(order[i], order[j]);
    }
  }
  int64_t step = last;
  for (int i = 2; i >= 0; --i) {
    strides[order[i]] = step;
    step *= sizes[order[i]] > 0 ? sizes[order[i]] : 1;
  }
  Arg args[3] = {arg(sizes, 4), arg(strides, 4), arg(like->dtype)};
  return Owned(api->call(empty_strided, args, 3));
}

// query (B, H, L, E), key (B, G, S, E), value (B, G, S, W), mask (B, H, L, S), causal, scale
struct Inputs {
  Owned q, k, v;
  Attention a{};

  // Whether the kernels serve; false with an exception where the sizes do not fit.
  bool read(const Call& c, int first) {
    Tensor *query = c.args[first].tensor, *key = c.args[first + 1].tensor, *value = c.args[first + 2].tensor;
    Tensor* mask = tensor_or_null(c.args[first + 3]);
    if (!is_native(query) || key->dtype != query->dtype || value->dtype != query->dtype || query->ndim != 4 ||
        key->ndim != 4 || value->ndim != 4) {
      return false;
    }
    a.batch = query->sizes[0], a.heads = query->sizes[1], a.queries = query->sizes[2], a.depth = query->sizes[3];
    a.keys = key->sizes[2], a.width = value->sizes[3];
    const int64_t shared_heads = key->sizes[1];
    if (key->sizes[0] != a.batch || value->sizes[0] != a.batch || key->sizes[3] != a.depth ||
        value->sizes[1] != shared_heads || value->sizes[2] != a.keys ||
        (shared_heads == 0 ? a.heads != 0 : a.heads % shared_heads != 0)) {
      return fail(c, "query, key and value do not fit");
    }
    a.shared = shared_heads == 0 ? 1 : a.heads / shared_heads;
    if (mask != nullptr) {
      if (mask->dtype != DType::Bool && mask->dtype != query->dtype) return false;
      const int64_t sizes[4] = {a.batch, a.heads, a.queries, a.keys};
      if (mask->ndim != 4) return fail(c, "the mask needs 4 dimensions");
      for (int d = 0; d < 4; ++d) {
        if (mask->sizes[d] != sizes[d]) return fail(c, "the mask does not fit query and key");
        a.mask_stride[d] = mask->strides[d];
      }
      a.mask = mask->data;
      a.mask_is_bool = mask->dtype == DType::Bool;
    }
    a.causal = c.args[first + 4].to_bool();
    a.scale = c.args[first + 5].to_double();
    q = with_rows(query), k = with_rows(key), v = with_rows(value);
    if (!q || !k || !v) return false;
    a.q = q.data(), a.k = k.data(), a.v = v.data();
    read_strides(q, a.q_stride), read_strides(k, a.k_stride), read_strides(v, a.v_stride);
    return true;
  }
  int64_t work() const { return a.batch * a.heads * a.queries * a.keys * (a.depth + a.width); }
};

// nn::attention(query, key, value, mask, causal, scale): the result, and the normalizer of each query.
PyObject* attention_kernel(Call& c) {
  Inputs in;
  if (!in.read(c, 0)) return PyErr_Occurred() ? nullptr : run_composite(c);
  Attention& a = in.a;
  Owned out = empty_ordered(in.q.tensor(), a.width), normalizer = empty(3, in.q->sizes, in.q->dtype);
  if (!out || !normalizer) return nullptr;
  a.out = out.data(), a.normalizer = normalizer.data();
  read_strides(out, a.out_stride);
  if (!run_unlocked(in.work(), [&] { attention_kernels().forward[type_index(in.q->dtype)](a); })) return nullptr;
  return tuple_of({&out, &normalizer});
}

// nn::attention_backward(output_grad, output, normalizer, query, key, value, mask, causal, scale)
PyObject* attention_backward_kernel(Call& c) {
  Inputs in;
  if (!in.read(c, 3)) return PyErr_Occurred() ? nullptr : run_composite(c);
  AttentionBackward b{in.a};
  const Tensor *query = in.q.tensor(), *normalizer = c.args[2].tensor;
  for (int i = 0; i < 2; ++i) {
    const Tensor* t = c.args[i].tensor;
    bool fits = t->ndim == 4 && t->dtype == query->dtype && t->sizes[3] == in.a.width;
    for (int d = 0; fits && d < 3; ++d) fits = t->sizes[d] == query->sizes[d];
    if (!fits) return fail(c, "output_grad and output do not fit the inputs"), nullptr;
  }
  if (normalizer->dtype != query->dtype || normalizer->numel != in.a.batch * in.a.heads * in.a.queries) {
    return fail(c, "the normalizer does not fit the query"), nullptr;
  }
  const Owned dout = with_rows(c.args[0].tensor), out = with_rows(c.args[1].tensor),
              normalizers = contiguous(c.args[2].tensor);
  Owned dq = empty_ordered(query, in.a.depth), dk = empty_ordered(in.k.tensor(), in.a.depth),
        dv = empty_ordered(in.v.tensor(), in.a.width);
  if (!dout || !out || !normalizers || !dq || !dk || !dv) return nullptr;
  b.forward.out = out.data(), b.forward.normalizer = normalizers.data(), b.dout = dout.data();
  b.dq = dq.data(), b.dk = dk.data(), b.dv = dv.data();
  read_strides(out, b.forward.out_stride), read_strides(dout, b.dout_stride);
  read_strides(dq, b.dq_stride), read_strides(dk, b.dk_stride), read_strides(dv, b.dv_stride);
  if (!run_unlocked(in.work(), [&] { attention_kernels().backward[type_index(query->dtype)](b); })) return nullptr;
  return tuple_of({&dq, &dk, &dv});
}

}  // namespace

bool register_attention() {
  return api->register_kernel("nn::attention", "cpu", attention_kernel) == 0 &&
         api->register_kernel("nn::attention_backward", "cpu", attention_backward_kernel) == 0;
}

}  // namespace rl
