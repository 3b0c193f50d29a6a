// Kernels of bags of embeddings.
#include "bind.h"
#include "kernels/bag.h"

namespace rl {
namespace {

PyObject* fail(const Call& c, const char* rule) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s.", c.op->name, rule);
  return nullptr;
}

// The bags of the arguments weight, indices, bounds, factors, and mode and padding_idx at `options`.
struct BagArguments {
  Owned table, indices, bounds, factors;
  Bags bags;

  // False without an exception where the portable definition serves, with one where the arguments do not fit.
  bool read(const Call& c, int first, int options) {
    const Tensor *weight = c.args[first].tensor, *at = c.args[first + 1].tensor, *ends = c.args[first + 2].tensor;
    const Tensor* by = tensor_or_null(c.args[first + 3]);
    const int64_t mode = c.args[options].to_int();
    if (!is_native(weight) || (by != nullptr && by->dtype != weight->dtype)) return false;
    if (weight->ndim != 2 || at->dtype != DType::Int64 || ends->dtype != DType::Int64 || at->ndim != 1 ||
        ends->ndim != 1 || ends->numel < 1 || mode < 0 || mode > 2 || (by != nullptr && by->numel != at->numel)) {
      return fail(c, "weight, indices, bounds and factors do not fit") != nullptr;
    }
    table = contiguous(c.args[first].tensor), indices = contiguous(c.args[first + 1].tensor);
    bounds = contiguous(c.args[first + 2].tensor), factors = contiguous_or_none(c.args[first + 3]);
    if (!table || !indices || !bounds || PyErr_Occurred()) return false;
    bags = {bounds->numel - 1,
            weight->sizes[0],
            weight->sizes[1],
            reinterpret_cast<const int64_t*>(indices.data()),
            reinterpret_cast<const int64_t*>(bounds.data()),
            c.args[options + 1].to_int(),
            static_cast<BagMode>(mode),
            factors.data()};
    return check(at->numel);
  }

  bool check(int64_t length) const {
    const auto fail = [](const char* text, int64_t a, int64_t b) {
      PyErr_Format(PyExc_RuntimeError, text, static_cast<long long>(a), static_cast<long long>(b));
      return false;
    };
    if (bags.bounds[0] != 0) {
      return fail(
          "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
          "However, got %lld",
          bags.bounds[0], 0);
    }
    for (int64_t b = 0; b < bags.bags; ++b) {
      if (bags.bounds[b] > bags.bounds[b + 1] && (b + 1 < bags.bags || bags.bounds[b] <= length))
        return fail("embedding_bag: offsets must not decrease, got %lld before %lld.", bags.bounds[b],
                    bags.bounds[b + 1]);
      if (bags.bounds[b] > length || bags.bounds[b + 1] > length) {
        return fail("offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld", length,
                    bags.bounds[b] > length ? bags.bounds[b] : bags.bounds[b + 1]);
      }
    }
    for (int64_t i = 0; i < length; ++i) {
      if (bags.indices[i] < 0 || bags.indices[i] >= bags.rows) {
        return fail("embedding_bag: an index of input takes value %lld which is not in the valid range [0, %lld)",
                    bags.indices[i], bags.rows);
      }
    }
    return true;
  }
};

// nn::bag(weight, indices, bounds, factors, mode, padding_idx)
PyObject* bag_kernel(Call& c) {
  if (is_half(c.args[0].tensor)) return run_wide(c);
  BagArguments a;
  if (!a.read(c, 0, 4)) return PyErr_Occurred() ? nullptr : run_composite(c);
  const bool is_max = a.bags.mode == BagMode::Max;
  const int64_t sizes[2] = {a.bags.bags, a.bags.width}, none = 0;
  Owned y = empty(2, sizes, a.table->dtype);
  Owned source = empty(is_max ? 2 : 1, is_max ? sizes : &none, DType::Int64);
  if (!y || !source) return nullptr;
  if (!run_unlocked(a.indices->numel * a.bags.width, [&] {
        bag_kernels().forward[type_index(y->dtype)](a.bags, a.table.data(), y.data(),
                                                    reinterpret_cast<int64_t*>(source.data()));
      })) {
    return nullptr;
  }
  return tuple_of({&y, &source});
}

// nn::bag_backward(output_grad, weight, indices, bounds, factors, source, mode, padding_idx)
PyObject* bag_backward_kernel(Call& c) {
  if (is_half(c.args[1].tensor)) return run_wide(c);
  BagArguments a;
  if (!a.read(c, 1, 6)) return PyErr_Occurred() ? nullptr : run_composite(c);
  const Owned dy = contiguous(c.args[0].tensor), source = contiguous(c.args[5].tensor);
  if (!dy || !source) return nullptr;
  bool fits = dy->dtype == a.table->dtype && dy->numel == a.bags.bags * a.bags.width;
  if (a.bags.mode == BagMode::Max) {
    const int64_t* from = reinterpret_cast<const int64_t*>(source.data());
    fits = fits && source->dtype == DType::Int64 && source->numel == dy->numel;
    for (int64_t i = 0; fits && i < source->numel; ++i) fits = from[i] >= 0 && from[i] < a.bags.rows;
  }
  if (!fits) return fail(c, "output_grad or source does not fit");
  Owned dtable = empty_like(a.table.tensor());
  Owned dfactors = a.factors ? empty(1, a.indices->sizes, a.table->dtype) : Owned();
  if (!dtable || PyErr_Occurred()) return nullptr;
  const int type = type_index(dtable->dtype);
  if (!run_unlocked(dtable->numel, [&] {
        bag_kernels().backward[type](a.bags, dy.data(), reinterpret_cast<const int64_t*>(source.data()), dtable.data());
        if (dfactors) bag_kernels().backward_factors[type](a.bags, a.table.data(), dy.data(), dfactors.data());
      })) {
    return nullptr;
  }
  return tuple_of({&dtable, &dfactors});
}

}  // namespace

bool register_bag() {
  return api->register_kernel("nn::bag", "cpu", bag_kernel) == 0 &&
         api->register_kernel("nn::bag_backward", "cpu", bag_backward_kernel) == 0;
}

}  // namespace rl
