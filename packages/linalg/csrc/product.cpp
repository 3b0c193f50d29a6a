// The product of several matrices in the order that takes the fewest operations.
#include <algorithm>

#include "kernel.h"

namespace rl {

namespace {

void check_chain(const std::vector<Tensor*>& chain) {
  const auto count = static_cast<int>(chain.size());
  if (count < 2) fail(PyExc_RuntimeError, "multi_dot(): expected at least 2 tensors but got %d", count);
  for (int i = 0; i < count; ++i) {
    const Tensor *x = chain[static_cast<size_t>(i)], *first = chain[0];
    const bool end = i == 0 || i == count - 1;
    if (x->ndim != 2 && !(end && x->ndim == 1))
      fail(PyExc_RuntimeError, "multi_dot(): tensor %d must be %s2D but got %dD", i, end ? "1D or " : "", x->ndim);
    if (x->dtype != first->dtype)
      fail(PyExc_RuntimeError,
           "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %d %s",
           name(first->dtype), i, name(x->dtype));
    if (x->device != first->device)
      fail(PyExc_RuntimeError, "multi_dot(): all tensors must be on the same device but tensor %d is on another", i);
    if (i == 0) continue;
    const Tensor* before = chain[static_cast<size_t>(i) - 1];
    if (before->sizes[before->ndim - 1] != x->sizes[0])
      fail(PyExc_RuntimeError, "multi_dot(): tensors %d and %d with %lld columns and %lld rows cannot be multiplied",
           i - 1, i, static_cast<long long>(before->sizes[before->ndim - 1]), static_cast<long long>(x->sizes[0]));
  }
}

// Cormen et al., "Introduction to algorithms", section 15.2.
class Chain {
 public:
  explicit Chain(const std::vector<Tensor*>& chain) : chain_(chain), n_(chain.size()), split_(n_ * n_, 0) {
    std::vector<double> sizes, cost(n_ * n_, 0.0);
    for (const Tensor* x : chain)
      sizes.push_back(x->ndim == 1 && x == chain[0] ? 1.0 : static_cast<double>(x->sizes[0]));
    const Tensor* last = chain.back();
    sizes.push_back(last->ndim == 1 ? 1.0 : static_cast<double>(last->sizes[1]));
    for (size_t length = 1; length < n_; ++length)
      for (size_t i = 0; i + length < n_; ++i) {
        const size_t j = i + length;
        double best = -1;
        for (size_t k = i; k < j; ++k) {
          const double found = cost[i * n_ + k] + cost[(k + 1) * n_ + j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (best >= 0 && found >= best) continue;
          best = found;
          split_[i * n_ + j] = k;
        }
        cost[i * n_ + j] = best;
      }
  }
  // Vectors at the ends take part as matmul takes them.
  Owned product(size_t i, size_t j) const {
    if (i == j) {
      auto* x = reinterpret_cast<PyObject*>(chain_[i]);
      Py_INCREF(x);
      return Owned(x);
    }
    static const Op* matmul = api->find_op("matmul");
    const size_t k = split_[i * n_ + j];
    const Owned left = product(i, k), right = product(k + 1, j);
    Arg args[] = {arg(left.get()), arg(right.get())};
    return Owned(api->call(matmul, args, 2));
  }

 private:
  const std::vector<Tensor*>& chain_;
  size_t n_;
  std::vector<size_t> split_;
};

}  // namespace

PyObject* multi_dot(PyObject*, PyObject* tensors) {
  PyObject* items = PySequence_Fast(tensors, "multi_dot: expects a sequence of tensors.");
  if (!items) return nullptr;
  PyObject* result = nullptr;
  try {
    std::vector<Tensor*> chain;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items, i);
      if (!PyObject_TypeCheck(item, api->tensor_type))
        fail(PyExc_TypeError, "multi_dot: expects a sequence of tensors.");
      chain.push_back(reinterpret_cast<Tensor*>(item));
    }
    check_chain(chain);
    result = Chain(chain).product(0, chain.size() - 1).release();
  } catch (const PythonError&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  Py_DECREF(items);
  return result;
}

}  // namespace rl
