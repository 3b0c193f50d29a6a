// Pointwise loops over strided memory: no allocation, no threads, no exceptions.
#pragma once
#include <cstdint>

#include "rushlight/dtype.h"

namespace rl {

// Computes n elements. data[0] is the output, the inputs follow; strides are in bytes and may be 0 or negative.
// The output may be one of the inputs (same pointer and stride); any other overlap is the caller's to resolve.
using Loop = void (*)(char* const* data, const int64_t* strides, int64_t n, const void* params);

// The loop of `op` whose inputs all have dtype `compute`, or null where the op has none.
//
// The output has dtype `compute`, except: comparisons, logical ops and predicates (is*, signbit) write bool; abs,
// angle, real and imag of a complex dtype write the real dtype. Exceptions among the inputs: `where(cond, a, b)` and
// `masked_fill(self, mask)` take bool conditions. Float16 and BFloat16 are computed in float32 and rounded once.
//
// `params` points to an array of values of the compute dtype (float for Float16 and BFloat16), in this order:
//   add, sub               alpha (params may be null: alpha 1)        out = a + alpha * b
//   pow_scalar             exponent                                   out = a ** exponent
//   rpow_scalar            base                                       out = base ** a
//   clamp, hardtanh        min, max (an infinity, or the integer limit, where absent)
//   masked_fill            value
//   lerp_scalar            weight                                     (lerp takes a weight tensor as third input)
//   addcmul, addcdiv       value                                      out = a + value * b * c
//   nan_to_num             nan, posinf, neginf
//   threshold              threshold, value;     threshold_backward(grad, x): threshold
//   leaky_relu             negative_slope;       leaky_relu_backward(grad, x): negative_slope
//   elu                    alpha, scale, input_scale
//   softplus               beta, threshold;      softplus_backward(grad, x): beta, threshold
//   softshrink, hardshrink lambda
// and otherwise:
//   round_decimals         int64_t decimals
//   div_trunc, div_floor, remainder, fmod of integers: int*, set to 1 where a divisor is zero (the element becomes 0)
Loop find_loop(const char* op, DType compute);

}  // namespace rl
