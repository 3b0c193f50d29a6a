// Calling operators from C++.
#pragma once
#include <initializer_list>
#include <string>

#include "object.h"

namespace rl {

constexpr int kMaxParams = 24;  // of an operator

const Op* find_op(const char* name);  // throws when there is none
std::string base_name(const Op*);     // "add" of "add.Tensor", as users call it

// An operator that the engine itself uses, looked up at its first use.
class OpHandle {
 public:
  explicit constexpr OpHandle(const char* name) : name_(name) {}
  operator const Op*() {
    if (!op_) op_ = find_op(name_);
    return op_;
  }

 private:
  const char* name_;
  const Op* op_ = nullptr;
};

namespace ops {
extern OpHandle add, sub, mul, div, pow, pow_scalar, pow_of_scalar, neg, eq, ne, lt, le, gt, ge;
extern OpHandle clone, sum, expand, unsqueeze, reshape, conj, real, cast, move, copy_, as_strided, narrow, arange,
    index_add, cat, stack, view_as, new_zeros, view_as_real, view_as_complex;
}  // namespace ops

inline Ref<> call(const Op* op, std::initializer_list<Arg> args) {
  return Ref<>::check(api->call(op, const_cast<Arg*>(args.begin()), static_cast<int>(args.size())));
}
inline Ref<> call_inplace(const Op* op, std::initializer_list<Arg> args) {
  return Ref<>::check(api->call_inplace(op, const_cast<Arg*>(args.begin()), static_cast<int>(args.size())));
}
inline Tensor* tensor(const Ref<>& r) { return as_tensor(r.get()); }

}  // namespace rl
