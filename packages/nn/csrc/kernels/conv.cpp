#include "conv.h"

#include <array>
#include <vector>

#include "runtime.h"
#include "winograd.h"

namespace rl {
namespace {

const ConvTable& table() {
  static const ConvTable filled = [] {
    ConvTable t{};
    RL_ISA_CALL(fill_conv, t);
    return t;
  }();
  return filled;
}
const WinogradTable& winograd_table() {
  static const WinogradTable filled = [] {
    WinogradTable t{};
    RL_ISA_CALL(fill_winograd, t);
    return t;
  }();
  return filled;
}
int type_index(DType dtype) { return dtype == DType::Float64; }

int64_t product(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// The taps of a correlation with s.kernel; `g.tap` points into `taps`.
TapConv correlation(const ConvShape& s, std::vector<std::array<int64_t, 3>>& taps) {
  for (int64_t d = 0; d < s.kernel[0]; ++d) {
    for (int64_t h = 0; h < s.kernel[1]; ++h) {
      for (int64_t w = 0; w < s.kernel[2]; ++w)
        taps.push_back({d * s.dilation[0], h * s.dilation[1], w * s.dilation[2]});
    }
  }
  TapConv g{};
  g.batch = s.batch, g.groups = s.groups, g.channels = s.in_channels, g.rows = s.out_channels;
  g.taps = static_cast<int64_t>(taps.size());
  g.tap = reinterpret_cast<const int64_t (*)[3]>(taps.data());
  for (int d = 0; d < 3; ++d) {
    g.in_size[d] = s.in[d];
    g.out_size[d] = s.out[d];
    g.origin[d] = -s.padding[d];
    g.step[d] = s.stride[d];
  }
  return g;
}

void set_contiguous_output(TapConv& g, void* out) {
  g.out = out;
  g.out_stride[2] = 1;
  g.out_stride[1] = g.out_size[2];
  g.out_stride[0] = g.out_size[1] * g.out_size[2];
  g.out_row = product(g.out_size);
  g.out_batch = g.groups * g.rows * g.out_row;
}

bool is_pointwise(const ConvShape& s) {
  for (int d = 0; d < 3; ++d) {
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0) return false;
  }
  return runtime.gemm != nullptr;
}

// out[n, g] = matrix[g] @ in[n, g], with a bias per row.
void pointwise(DType dtype, const ConvShape& s, int64_t rows, int64_t depth, const void* matrix, int64_t row,
               int64_t col, const void* in, const void* bias, void* out) {
  const int64_t positions = product(s.out), in_group = depth * positions, out_group = rows * positions;
  for (int64_t group = 0; group < s.groups; ++group) {
    const auto at = [&](const void* p, int64_t index) { return static_cast<const char*>(p) + index * itemsize(dtype); };
    const int64_t a_batch = 0, b_batch = s.groups * in_group, c_batch = s.groups * out_group;
    GemmArgs g;
    g.m = rows, g.n = positions, g.k = depth;
    g.a = at(matrix, group * rows * depth), g.a_row = row, g.a_col = col;
    g.b = at(in, group * in_group), g.b_row = positions, g.b_col = 1;
    g.c = const_cast<char*>(at(out, group * out_group)), g.c_row = positions, g.c_col = 1;
    if (bias != nullptr) g.bias = at(bias, group * rows), g.bias_row = 1;
    g.batch_ndim = 1, g.batch_sizes = &s.batch, g.a_batch = &a_batch, g.b_batch = &b_batch, g.c_batch = &c_batch;
    runtime.gemm(dtype, g);
  }
}

// dw[g] = sum over n of dy[n, g] @ x[n, g]^T.
void pointwise_weight(DType dtype, const ConvShape& s, const void* x, const void* dy, void* dw) {
  const int64_t positions = product(s.out);
  const auto at = [&](const void* p, int64_t index) { return static_cast<const char*>(p) + index * itemsize(dtype); };
  for (int64_t group = 0; group < s.groups; ++group) {
    for (int64_t n = 0; n < s.batch; ++n) {
      const int64_t block = n * s.groups + group;
      GemmArgs g;
      g.m = s.out_channels, g.n = s.in_channels, g.k = positions;
      g.a = at(dy, block * s.out_channels * positions), g.a_row = positions, g.a_col = 1;
      g.b = at(x, block * s.in_channels * positions), g.b_row = 1, g.b_col = positions;
      g.c = const_cast<char*>(at(dw, group * s.out_channels * s.in_channels)), g.c_row = s.in_channels, g.c_col = 1;
      if (n > 0) g.beta = GemmScalar{};
      runtime.gemm(dtype, g);
    }
  }
}

// What pays for the transforms of tiles and weights (docs/decisions/0011): so many channels, and so many tiles, which
// are more where pairs of channels, each with 36 points, leave the cache.
constexpr int64_t kWinogradChannels = 16;
struct EnoughTiles {
  int64_t few_pairs, of_few_pairs, of_many_pairs;
};
constexpr EnoughTiles kProduct{1 << 16, 4, 8}, kGradient{1 << 12, 4, 32};

// Whether Winograd's way is faster.
bool is_winograd(const ConvShape& s, const EnoughTiles& enough) {
  for (int d = 0; d < 3; ++d) {
    if (s.stride[d] != 1 || s.dilation[d] != 1 || s.kernel[d] != (d == 0 ? 1 : 3)) return false;
  }
  const auto tiles = [&](int d) { return (s.out[d] + kWinogradSide - 1) / kWinogradSide; };
  const int64_t batch = runtime.batch_invariant() ? 1 : s.batch;
  const int64_t enough_tiles =
      s.in_channels * s.out_channels <= enough.few_pairs ? enough.of_few_pairs : enough.of_many_pairs;
  return s.in[0] == 1 && s.padding[0] == 0 && s.in_channels >= kWinogradChannels &&
         s.out_channels >= kWinogradChannels && batch * tiles(1) * tiles(2) >= enough_tiles;
}

WinogradConv winograd_forward(const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  return {s.batch,
          s.groups,
          s.in_channels,
          s.out_channels,
          {s.in[1], s.in[2]},
          {s.out[1], s.out[2]},
          {s.padding[1], s.padding[2]},
          x,
          w,
          s.in_channels * 9,
          9,
          false,
          bias,
          y};
}
// The gradient of the input is the convolution of dy with the turned weights of all (output, input) channels.
WinogradConv winograd_backward(const ConvShape& s, const void* dy, const void* w, const void* bias, void* dx) {
  return {s.batch,
          s.groups,
          s.out_channels,
          s.in_channels,
          {s.out[1], s.out[2]},
          {s.in[1], s.in[2]},
          {2 - s.padding[1], 2 - s.padding[2]},
          dy,
          w,
          9,
          s.in_channels * 9,
          true,
          bias,
          dx};
}

// to[g][c][m][t] = w[g][m][c][tap[t]]: the weights of the gradient of the input.
template <class T>
void swap_channels(const ConvShape& s, const T* w, const std::vector<int64_t>& tap, T* to) {
  const int64_t kernel = product(s.kernel), taps = static_cast<int64_t>(tap.size());
  const int64_t grain = (1 << 15) / (s.out_channels * taps + 1) + 1;
  parallel_for(0, s.groups * s.in_channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = w + (i / s.in_channels * s.out_channels * s.in_channels + i % s.in_channels) * kernel;
      for (int64_t m = 0; m < s.out_channels; ++m) {
        for (int64_t t = 0; t < taps; ++t) {
          to[(i * s.out_channels + m) * taps + t] = from[m * s.in_channels * kernel + tap[static_cast<size_t>(t)]];
        }
      }
    }
  });
}

// One phase of the gradient of the input: the elements whose padded coordinate is phase[d] modulo the stride.
template <class T>
void input_phase(DType dtype, const ConvShape& s, const int64_t* phase, const T* dy, const T* w, const void* bias,
                 T* dx) {
  TapConv g{};
  g.batch = s.batch, g.groups = s.groups, g.channels = s.out_channels, g.rows = s.in_channels;
  g.in = dy;
  g.bias = bias;
  const int64_t image_stride[3] = {s.in[1] * s.in[2], s.in[2], 1};
  std::vector<int64_t> of[3];  // the taps along each dimension that meet this phase
  int64_t first = 0, farthest[3];
  for (int d = 0; d < 3; ++d) {
    farthest[d] = 0;
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      if (k * s.dilation[d] % s.stride[d] != phase[d]) continue;
      of[d].push_back(k);
      farthest[d] = k * s.dilation[d] / s.stride[d];
    }
    // The padded coordinate u = stride * v + phase runs over [padding, padding + in).
    const int64_t below = s.padding[d] - phase[d];
    const int64_t v = below <= 0 ? 0 : (below + s.stride[d] - 1) / s.stride[d];
    const int64_t u = s.stride[d] * v + phase[d] - s.padding[d];
    if (u >= s.in[d]) return;
    g.out_size[d] = (s.in[d] - u + s.stride[d] - 1) / s.stride[d];
    g.in_size[d] = s.out[d];
    g.origin[d] = v - farthest[d];
    g.step[d] = 1;
    g.out_stride[d] = image_stride[d] * s.stride[d];
    first += u * image_stride[d];
  }
  std::vector<std::array<int64_t, 3>> taps;
  std::vector<int64_t> index;
  for (int64_t a : of[0]) {
    for (int64_t b : of[1]) {
      for (int64_t c : of[2]) {
        taps.push_back({farthest[0] - a * s.dilation[0] / s.stride[0], farthest[1] - b * s.dilation[1] / s.stride[1],
                        farthest[2] - c * s.dilation[2] / s.stride[2]});
        index.push_back((a * s.kernel[1] + b) * s.kernel[2] + c);
      }
    }
  }
  g.taps = static_cast<int64_t>(taps.size());
  g.tap = reinterpret_cast<const int64_t (*)[3]>(taps.data());
  const Buffer<T> weights(s.groups * s.in_channels * s.out_channels * g.taps);
  swap_channels(s, w, index, weights.data());
  g.a = weights.data();
  g.out = dx + first;
  g.out_row = product(s.in);
  g.out_batch = s.groups * s.in_channels * g.out_row;
  table().forward[type_index(dtype)](g);
}

template <class T>
void backward_input(DType dtype, const ConvShape& s, const T* dy, const T* w, const void* bias, T* dx) {
  int64_t phase[3];
  for (phase[0] = 0; phase[0] < s.stride[0]; ++phase[0]) {
    for (phase[1] = 0; phase[1] < s.stride[1]; ++phase[1]) {
      for (phase[2] = 0; phase[2] < s.stride[2]; ++phase[2]) input_phase<T>(dtype, s, phase, dy, w, bias, dx);
    }
  }
}

template <class T>
void backward_bias(const ConvShape& s, const T* dy, T* db) {
  const int64_t image = product(s.out), channels = s.groups * s.out_channels;
  parallel_for(0, channels, (1 << 15) / (s.batch * image + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      T total = 0;
      for (int64_t n = 0; n < s.batch; ++n) {
        const T* row = dy + (n * channels + c) * image;
        T lane[16] = {};
        int64_t i = 0;
        for (; i + 16 <= image; i += 16) {
          for (int64_t x = 0; x < 16; ++x) lane[x] += row[i + x];
        }
        T sum = 0;
        for (; i < image; ++i) sum += row[i];
        for (T x : lane) sum += x;
        total += sum;
      }
      db[c] = total;
    }
  });
}

}  // namespace

void conv_forward(DType dtype, const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  if (is_pointwise(s)) return pointwise(dtype, s, s.out_channels, s.in_channels, w, s.in_channels, 1, x, bias, y);
  if (is_winograd(s, kProduct) && winograd_table().forward[type_index(dtype)](winograd_forward(s, x, w, bias, y)))
    return;
  std::vector<std::array<int64_t, 3>> taps;
  TapConv g = correlation(s, taps);
  g.in = x, g.a = w, g.bias = bias;
  set_contiguous_output(g, y);
  table().forward[type_index(dtype)](g);
}

void conv_backward_input(DType dtype, const ConvShape& s, const void* dy, const void* w, const void* bias, void* dx) {
  if (is_pointwise(s)) return pointwise(dtype, s, s.in_channels, s.out_channels, w, 1, s.in_channels, dy, bias, dx);
  if (is_winograd(s, kProduct) && winograd_table().forward[type_index(dtype)](winograd_backward(s, dy, w, bias, dx)))
    return;
  dtype == DType::Float64 ? backward_input(dtype, s, static_cast<const double*>(dy), static_cast<const double*>(w),
                                           bias, static_cast<double*>(dx))
                          : backward_input(dtype, s, static_cast<const float*>(dy), static_cast<const float*>(w), bias,
                                           static_cast<float*>(dx));
}

void conv_backward_weight(DType dtype, const ConvShape& s, const void* x, const void* dy, void* dw) {
  if (is_pointwise(s)) return pointwise_weight(dtype, s, x, dy, dw);
  if (is_winograd(s, kGradient)) {
    const WinogradConv g = winograd_forward(s, x, nullptr, nullptr, const_cast<void*>(dy));
    if (winograd_table().weight[type_index(dtype)](g, dw)) return;
  }
  std::vector<std::array<int64_t, 3>> taps;
  TapConv g = correlation(s, taps);
  g.in = x;
  set_contiguous_output(g, const_cast<void*>(dy));
  table().weight[type_index(dtype)](g, dw);
}

void conv_backward_bias(DType dtype, const ConvShape& s, const void* dy, void* db) {
  dtype == DType::Float64 ? backward_bias(s, static_cast<const double*>(dy), static_cast<double*>(db))
                          : backward_bias(s, static_cast<const float*>(dy), static_cast<float*>(db));
}

}  // namespace rl
