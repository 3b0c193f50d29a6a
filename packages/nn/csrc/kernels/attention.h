// Scaled dot product attention on float32 or float64 memory, without a matrix of all scores.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"
#include "rushlight/isa.h"

namespace rl {

// Strides of (batch, head, row); the elements of a row lie next to each other.
struct Attention {
  int64_t batch, heads, queries, keys, depth, width;
  int64_t shared;  // query heads that share a head of keys and values
  const void *q, *k, *v;
  int64_t q_stride[3], k_stride[3], v_stride[3];
  const void* mask;  // null, or (batch, heads, queries, keys) by its strides: added, or where true a key counts
  bool mask_is_bool;
  int64_t mask_stride[4];
  bool causal;  // key j counts for query i where j <= i
  double scale;
  void* out;
  int64_t out_stride[3];
  void* normalizer;  // (batch, heads, queries): the logarithm of the sum of exponentials, infinity without any key
};

struct AttentionBackward {
  Attention forward;  // out and normalizer as it left them
  const void* dout;
  int64_t dout_stride[3];
  void *dq, *dk, *dv;
  int64_t dq_stride[3], dk_stride[3], dv_stride[3];
};

struct AttentionTable {  // float32, float64
  void (*forward[2])(const Attention&);
  void (*backward[2])(const AttentionBackward&);
};

// The kernels that fit this machine.
const AttentionTable& attention_kernels();

}  // namespace rl

RL_ISA_DECLARE(fill_attention, AttentionTable)
