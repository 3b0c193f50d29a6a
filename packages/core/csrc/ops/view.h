// Geometry of views: sizes, strides and offset being rearranged before a tensor is made of them.
#pragma once
#include "ops.h"

namespace rl {

struct Geometry {
  int ndim;
  int64_t sizes[kMaxRank], strides[kMaxRank];
  int64_t offset;  // from the start of the storage

  explicit Geometry(const Tensor* t);
  void erase(int dim);
  void insert(int dim, int64_t size, int64_t stride);              // throws beyond kMaxRank
  void select(int dim, int64_t index);                             // IndexError; negative indices count from the end
  void slice(int dim, int64_t start, int64_t stop, int64_t step);  // bounds already inside the dimension
  Ref<Tensor> make(Tensor* of) const { return view(of, ndim, sizes, strides, offset); }
};

// True where some layer (autograd, a mode, an override) wants to see what happens to `t`.
inline bool layered(const Tensor* t) { return ((t->flags & kLayerBits) | t_word) & g_layer_bits; }

// Strides under which `t` has the new sizes without a copy; false: there are none.
bool view_strides(const Tensor* t, int ndim, const int64_t* sizes, int64_t* strides);
// Replaces a -1 by what is left of numel; throws where the sizes do not fit.
void infer_size(int64_t numel, int ndim, int64_t* sizes);

// A view where that is possible, else a copy. Dispatches where layers are active.
Ref<Tensor> reshape(Tensor* t, int ndim, const int64_t* sizes);
Ref<Tensor> expand(Tensor* t, int ndim, const int64_t* sizes);  // -1 keeps a size
// The shape that two shapes broadcast to; throws IndexError-free RuntimeError with PyTorch's words.
void broadcast(const char* op, Dims& into, int ndim, const int64_t* sizes);

// Clamps Python-style slice bounds to a dimension.
void adjust_slice(int64_t size, int64_t step, int64_t* start, int64_t* stop);

}  // namespace rl
