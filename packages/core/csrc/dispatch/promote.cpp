// Type promotion as PyTorch defines it.
#include "dispatch.h"

namespace rl {

namespace {

enum Category { kBoolCategory, kIntCategory, kFloatCategory, kComplexCategory };

Category category(DType t) {
  return is_complex(t)      ? kComplexCategory
         : is_floating(t)   ? kFloatCategory
         : t == DType::Bool ? kBoolCategory
                            : kIntCategory;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  Category ca = category(a), cb = category(b);
  if (ca != cb && (ca < kFloatCategory || cb < kFloatCategory))
    return ca > cb ? a : b;  // an integer beside an inexact one
  if (ca == kComplexCategory || cb == kComplexCategory) {
    bool wide = itemsize(real_of(a)) == 8 || itemsize(real_of(b)) == 8;
    return wide ? DType::Complex128 : DType::Complex64;
  }
  if (ca == kFloatCategory) {
    if (itemsize(a) == itemsize(b)) return DType::Float32;  // float16 with bfloat16
    return itemsize(a) > itemsize(b) ? a : b;
  }
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return itemsize(a) > itemsize(b) ? a : b;
}

bool can_cast(DType from, DType to) {
  Category cf = category(from), ct = category(to);
  if (ct == kBoolCategory) return cf == kBoolCategory;
  return cf <= ct;
}

DType number_dtype(const Arg& n) {
  switch (n.kind) {
    case Kind::Bool: return DType::Bool;
    case Kind::Int: return DType::Int64;
    case Kind::Complex: return complex_of(g_default_dtype);
    default: return g_default_dtype;
  }
}

static void join(int& slot, DType t) {
  slot = slot ? 1 + static_cast<int>(promote(static_cast<DType>(slot - 1), t)) : 1 + static_cast<int>(t);
}

void Promotion::add(const Tensor* t) { join(t->flags & kWrapped ? number_ : t->ndim ? dim_ : zero_, t->dtype); }
void Promotion::add(const Arg& n) { join(number_, number_dtype(n)); }

DType Promotion::result() const {
  // A lower priority only counts when its category is higher.
  auto combine = [](int high, int low) {
    if (!high) return low;
    if (!low) return high;
    auto h = static_cast<DType>(high - 1), l = static_cast<DType>(low - 1);
    if (category(l) <= category(h)) return high;
    return 1 + static_cast<int>(promote(h, l));
  };
  // A number that raises the category takes the default dtype of that category, widened only by what is beside it.
  return static_cast<DType>(combine(dim_, combine(zero_, number_)) - 1);
}

}  // namespace rl
