// Elements around some dimensions of a tensor that follow each other, and the adjoint of that.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"

namespace rl {

enum class PadMode : uint8_t { Constant, Reflect, Replicate, Circular };

// One dimension: [begin, end) of the result is the input moved by `before`, which is negative where elements go.
struct PadLine {
  int64_t in, out, before, begin, end;

  PadLine() = default;
  PadLine(int64_t size, int64_t before_, int64_t after);
  // The element of the input that stands at `p`, -1 for none.
  int64_t source(PadMode mode, int64_t p) const;
};

// The input is (outer, *in, inner), the result (outer, *out, inner); both contiguous.
struct Pad {
  static constexpr int kMostLines = 64;
  PadMode mode;
  int lines;  // at least one
  PadLine line[kMostLines];
  int64_t outer, inner;
};

// `value` is the element that stands where there is no source.
void pad(const Pad& s, int64_t itemsize, const void* x, const void* value, void* y);
// Adds every element of dy to its source, from zero.
void pad_adjoint(DType dtype, const Pad& s, const void* dy, void* dx);

}  // namespace rl
