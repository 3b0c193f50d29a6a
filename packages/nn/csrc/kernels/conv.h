// Convolutions of contiguous (N, C, D, H, W) images in float32 or float64; one and two dimensions have leading ones.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

struct ConvShape {
  int64_t batch, groups;
  int64_t in_channels, out_channels;  // of one group
  int64_t in[3], out[3];
  int64_t kernel[3], stride[3], padding[3], dilation[3];
};

// y = conv(x, w) + bias; bias may be null. w is (groups * out_channels, in_channels, *kernel).
void conv_forward(DType dtype, const ConvShape& s, const void* x, const void* w, const void* bias, void* y);
// dx = the gradient with respect to x: also the transposed convolution of dy, to which `bias` may be added.
void conv_backward_input(DType dtype, const ConvShape& s, const void* dy, const void* w, const void* bias, void* dx);
void conv_backward_weight(DType dtype, const ConvShape& s, const void* x, const void* dy, void* dw);
void conv_backward_bias(DType dtype, const ConvShape& s, const void* dy, void* db);

// A sum over displaced images, to which all of the above come down:
//   out[m][q] = bias[m] + sum over c, t of a[m][c * taps + t] * in[c][origin + q * step + tap[t]]
// where q runs over the positions `out_size`, and the image is zero outside `in_size`.
struct TapConv {
  int64_t batch, groups, channels, rows, taps;
  const int64_t (*tap)[3];  // not negative
  int64_t in_size[3], out_size[3], origin[3], step[3];
  const void* in;  // (batch, groups, channels, *in_size), contiguous
  const void* a;   // (groups, rows, channels * taps), contiguous
  const void* bias;
  void* out;  // by its strides
  int64_t out_batch, out_row, out_stride[3];
};

// The gradient of a: da[m][c * taps + t] = sum over batch and q of dout[m][q] * in[c][origin + q * step + tap[t]].
// `out` is dout, contiguous (batch, groups, rows, *out_size); `a` is written.
struct ConvTable {
  void (*forward[2])(const TapConv&);  // float32, float64
  void (*weight[2])(const TapConv&, void* da);
};

}  // namespace rl

RL_ISA_DECLARE(fill_conv, ConvTable)
