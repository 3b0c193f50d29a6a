// Elements chosen by index tensors: what x[i], index_put_, index_select and their kin share.
#pragma once
#include "../kernels/index.h"
#include "view.h"

namespace rl {

// Places of `self` that a list of index tensors (null: all of a dimension; bool: a mask over as many dimensions as it
// has) chooses, and the shape of the result.
class Selection {
 public:
  Selection(const Tensor* self, Tensor* const* indices, int n);
  // The structure of the places; valid as long as this object.
  Blocks blocks(int itemsize) const;
  [[noreturn]] void out_of_bounds(const int64_t* index) const;  // IndexError about one that a kernel found
  void check_bounds() const;                                    // of all of them
  Dims sizes;                                                   // of the result

 private:
  Dims outer_sizes_, outer_strides_, inner_sizes_, inner_strides_;  // strides in bytes
  int64_t count_ = 1;
  std::vector<Ref<Tensor>> held_;
  std::vector<IndexList> lists_;
  std::vector<int> dims_;  // that the lists index
};

Ref<Tensor> index(Tensor* self, Tensor* const* indices, int n);
// Writes `values`, which broadcast, in place. Does not bump the version.
void index_put(Tensor* self, Tensor* const* indices, int n, Tensor* values, bool accumulate);
// A dense tensor of coordinates: (set elements, dimensions), or transposed.
Ref<Tensor> coordinates(Tensor* t, bool transposed);
// Raises IndexError unless `t` has a dtype that indices may have. True: it is a mask.
bool is_mask(const Tensor* t);

}  // namespace rl
