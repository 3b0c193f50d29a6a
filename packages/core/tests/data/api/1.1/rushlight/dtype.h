// Element types. The order is part of the ABI.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rl {

enum class DType : uint8_t {
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  Bool
};
constexpr int kNumDTypes = 12;

constexpr int64_t itemsize(DType t) {
  constexpr int64_t sizes[kNumDTypes] = {1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1};
  return sizes[static_cast<int>(t)];
}
constexpr const char* name(DType t) {
  constexpr const char* names[kNumDTypes] = {"uint8",    "int8",    "int16",   "int32",     "int64",      "float16",
                                             "bfloat16", "float32", "float64", "complex64", "complex128", "bool"};
  return names[static_cast<int>(t)];
}
constexpr bool is_integral(DType t) { return t <= DType::Int64; }  // bool is not integral here
constexpr bool is_floating(DType t) { return t >= DType::Float16 && t <= DType::Float64; }
constexpr bool is_complex(DType t) { return t == DType::Complex64 || t == DType::Complex128; }
constexpr bool is_inexact(DType t) { return is_floating(t) || is_complex(t); }

// The real dtype that holds one component of a complex dtype (the dtype itself when real).
constexpr DType real_of(DType t) {
  return t == DType::Complex64 ? DType::Float32 : t == DType::Complex128 ? DType::Float64 : t;
}
constexpr DType complex_of(DType t) {
  return t == DType::Float64 || t == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

}  // namespace rl
