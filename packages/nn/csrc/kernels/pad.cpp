#include "pad.h"

#include <algorithm>

#include "runtime.h"

namespace rl {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements that are worth a thread

struct Wide {  // a complex128
  uint64_t word[2];
};

int64_t rows(const Pad& s, int64_t PadLine::* size) {
  int64_t total = 1;
  for (int d = 0; d + 1 < s.lines; ++d) total *= s.line[d].*size;
  return total;
}

// The row of the input that stands at a row of the result, -1 for none. Rows run along the last line.
int64_t source_row(const Pad& s, int64_t row) {
  int64_t at = 0, stride = 1;
  for (int d = s.lines - 2; d >= 0; --d) {
    const int64_t before = d > 0 ? row / s.line[d].out : 0;
    const int64_t source = s.line[d].source(s.mode, row - before * s.line[d].out);
    if (source < 0) return -1;
    at += source * stride;
    row = before;
    stride *= s.line[d].in;
  }
  return at;
}

// f(first element of the result, source or -1) for the positions of the last line outside of its middle.
template <class F>
void each_edge(const Pad& s, const F& f) {
  const PadLine& last = s.line[s.lines - 1];
  for (int64_t p = 0; p < last.begin; ++p) f(p * s.inner, last.source(s.mode, p));
  for (int64_t p = last.end; p < last.out; ++p) f(p * s.inner, last.source(s.mode, p));
}

template <class U>
void pad_rows(const Pad& s, const void* x_, const void* value_, void* y_) {
  const U *x = static_cast<const U*>(x_), value = *static_cast<const U*>(value_);
  U* const y = static_cast<U*>(y_);
  const PadLine& last = s.line[s.lines - 1];
  const int64_t in_rows = rows(s, &PadLine::in), out_rows = rows(s, &PadLine::out), width = last.out * s.inner;
  parallel_for(0, s.outer * out_rows, kGrain / (width + 1) + 1, [&](int64_t begin, int64_t end) {
    int64_t o = begin / out_rows, row = begin % out_rows;
    for (int64_t i = begin; i < end; ++i, ++row) {
      if (row == out_rows) ++o, row = 0;
      const int64_t source = source_row(s, row);
      U* const to = y + i * width;
      if (source < 0) {
        std::fill_n(to, width, value);
        continue;
      }
      const U* const from = x + (o * in_rows + source) * last.in * s.inner;
      each_edge(s, [&](int64_t at, int64_t p) {
        p < 0 ? std::fill_n(to + at, s.inner, value) : std::copy_n(from + p * s.inner, s.inner, to + at);
      });
      std::copy_n(from + (last.begin - last.before) * s.inner, (last.end - last.begin) * s.inner,
                  to + last.begin * s.inner);
    }
  });
}

template <class T>
void add_rows(const Pad& s, const void* dy_, void* dx_) {
  const T* const dy = static_cast<const T*>(dy_);
  T* const dx = static_cast<T*>(dx_);
  const PadLine& last = s.line[s.lines - 1];
  const int64_t in_rows = rows(s, &PadLine::in), out_rows = rows(s, &PadLine::out), width = last.out * s.inner;
  const int64_t image = in_rows * last.in * s.inner;
  parallel_for(0, s.outer, kGrain / (out_rows * width + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      std::fill_n(dx + o * image, image, T(0));
      for (int64_t row = 0; row < out_rows; ++row) {
        const int64_t source = source_row(s, row);
        if (source < 0) continue;
        const T* const from = dy + (o * out_rows + row) * width;
        T* const to = dx + o * image + source * last.in * s.inner;
        const auto add = [&](int64_t at, int64_t p, int64_t count) {
          for (int64_t i = 0; i < count; ++i) to[p + i] += from[at + i];
        };
        each_edge(s, [&](int64_t at, int64_t p) {
          if (p >= 0) add(at, p * s.inner, s.inner);
        });
        add(last.begin * s.inner, (last.begin - last.before) * s.inner, (last.end - last.begin) * s.inner);
      }
    }
  });
}

}  // namespace

PadLine::PadLine(int64_t size, int64_t before_, int64_t after)
    : in(size),
      out(size + before_ + after),
      before(before_),
      begin(std::clamp<int64_t>(before_, 0, std::max<int64_t>(out, 0))),
      end(std::max(begin, std::min(out, size + before_))) {}

int64_t PadLine::source(PadMode mode, int64_t p) const {
  if (p >= begin && p < end) return p - before;
  const int64_t at = p - before;
  switch (mode) {
    case PadMode::Constant: return -1;
    case PadMode::Replicate: return std::clamp<int64_t>(at, 0, in - 1);
    case PadMode::Reflect: return in - 1 - std::abs(in - 1 - std::abs(at));
    case PadMode::Circular: break;
  }
  const int64_t kept = end - begin, round = (p - begin) % kept;  // what negative padding has left goes round
  return begin - before + (round < 0 ? round + kept : round);
}

void pad(const Pad& s, int64_t itemsize, const void* x, const void* value, void* y) {
  switch (itemsize) {
    case 1: return pad_rows<uint8_t>(s, x, value, y);
    case 2: return pad_rows<uint16_t>(s, x, value, y);
    case 4: return pad_rows<uint32_t>(s, x, value, y);
    case 8: return pad_rows<uint64_t>(s, x, value, y);
    default: return pad_rows<Wide>(s, x, value, y);
  }
}

void pad_adjoint(DType dtype, const Pad& s, const void* dy, void* dx) {
  dtype == DType::Float64 ? add_rows<double>(s, dy, dx) : add_rows<float>(s, dy, dx);
}

}  // namespace rl
