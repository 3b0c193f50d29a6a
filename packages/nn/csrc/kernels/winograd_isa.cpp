// Winograd's convolution (see winograd_lines.h): a tile of 6 x 6 inputs becomes 36 numbers, of which each is multiplied
// with its own matrix (rows x channels) of transformed weights; the 36 sums become 4 x 4 outputs. Channels lie in the
// lanes of vectors throughout.
#include "winograd.h"

#include "rows.h"
#include "runtime.h"
#include "tiles.h"
#include "winograd_lines.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kPoints = 36;
constexpr int64_t kMostSpan = 32;         // tiles side by side that are transformed at a time
constexpr int64_t kDepth = 128;           // products that are added up in registers
constexpr int64_t kChunkBytes = 1 << 20;  // of the points and sums of some tiles, so that they stay in a core's cache
// Of the points that a gradient of weights holds at a time: in the second cache, but not so few that the sums are read
// again for less than their own size.
constexpr int64_t kLeastGradientBytes = 1 << 19, kMostGradientBytes = 8 << 20;
constexpr int64_t kGradientRows = 128;    // of the gradient of weights in one task
constexpr int64_t kSmallGradient = 4096;  // pairs of channels: its sums fit a core's cache, so that
constexpr int64_t kManyTiles = 256;       // are summed up in
constexpr int64_t kSlices = 8;
constexpr int64_t kTaskWork = 1 << 19;  // multiplications that are worth a thread

// Items that are worth a thread, where each takes so many multiplications.
inline int64_t grain_of(int64_t work) { return kTaskWork / (work + 1) + 1; }

// ---- the images as tiles

// Images of some channels, contiguous (batch, groups, channels, *size), and what lies before their first tile.
template <class T>
struct Images {
  const T* data;
  const int64_t* size;
  int64_t groups, channels;
  int64_t padding[2];
};

// The tiles of a batch, in lines: `span` of one image side by side.
struct Tiling {
  int64_t lines_of_image, side_by_side, span, lines;

  explicit Tiling(const WinogradConv& g) {
    const int64_t across = parts(g.out_size[1], kWinogradSide);
    span = parts(across, parts(across, kMostSpan));
    side_by_side = parts(across, span);
    lines_of_image = parts(g.out_size[0], kWinogradSide) * side_by_side;
    lines = g.batch * lines_of_image;
  }
  int64_t image(int64_t line) const { return line / lines_of_image; }
  int64_t top(int64_t line) const { return line % lines_of_image / side_by_side * kWinogradSide; }
  int64_t left(int64_t line) const { return line % side_by_side * span * kWinogradSide; }
};

// Point x of channel c of tile t is data[x * plane + t * row + c].
template <class T>
struct Points {
  T* data;
  int64_t row, plane;

  // A row is no power of two long: that would crowd the sets of a cache.
  static int64_t row_of(int64_t channels) { return parts(channels, kLanes<T>) * kLanes<T> + kLanes<T>; }
  Points(T* to, int64_t tiles, int64_t channels) : data(to), row(row_of(channels)), plane(tiles * row) {}
  Points from_tile(int64_t t) const {
    Points p = *this;
    p.data += t * row;
    return p;
  }
};

// dst[j][i] = src[i][j] in squares, of which the last of a row or column overlaps the one before.
template <class T>
void transpose_overlapping(const T* src, int64_t src_row, int64_t rows, int64_t cols, T* dst, int64_t dst_row) {
  constexpr int64_t side = Square<T>::side;
  if (rows < side || cols < side) return transpose(src, src_row, rows, cols, dst, dst_row);
  for (int64_t y = 0; y < rows; y += side) {
    const int64_t i = least(y, rows - side);
    for (int64_t x = 0; x < cols; x += side) {
      const int64_t j = least(x, cols - side);
      Square<T>::transpose(src + i * src_row + j, src_row, dst + j * dst_row + i, dst_row);
    }
  }
}

// Elements that the rows of a line of tiles take, for kLanes channels, which are innermost.
template <class T>
int64_t strip_size(const Tiling& tiling) {
  return 6 * (kWinogradSide * tiling.span + 2) * kLanes<T>;
}

// Transforms the tiles of one line, for kLanes channels from c on. Outside of the images everything is zero.
template <class T, class Transform>
void transform_line(const Images<T>& images, const Tiling& tiling, int64_t group, int64_t line, int64_t c, T* strip,
                    const Points<T>& to) {
  constexpr int64_t lanes = kLanes<T>;
  const int64_t top = tiling.top(line) - images.padding[0], left = tiling.left(line) - images.padding[1];
  const int64_t channels = least(lanes, images.channels - c), height = images.size[0], length = images.size[1];
  const int64_t width = kWinogradSide * (tiling.span - 1) + Transform::from, strip_row = width * lanes;
  const int64_t first = least(most(-left, 0), width), end = most(first, least(length - left, width));
  const T* in =
      images.data + ((tiling.image(line) * images.groups + group) * images.channels + c) * height * length + left;
  if (channels < lanes) zero_row(strip, Transform::from * strip_row);
  for (int64_t i = 0; i < Transform::from; ++i) {
    const int64_t y = top + i;
    T* const row = strip + i * strip_row;
    if (y < 0 || y >= height) {
      zero_row(row, strip_row);
      continue;
    }
    zero_row(row, first * lanes);
    transpose_overlapping(in + y * length + first, height * length, channels, end - first, row + first * lanes, lanes);
    zero_row(row + end * lanes, (width - end) * lanes);
  }
  for (int64_t t = 0; t < tiling.span; ++t) {
    const T* const tile = strip + t * kWinogradSide * lanes;
    T* const point = to.data + t * to.row + c;
    const int64_t plane = to.plane;
    transform_square<T, Transform>([&](int i, int j) RL_INLINE { return load(tile + i * strip_row + j * lanes); },
                                   [&](int i, int j, Vec<T> v) RL_INLINE { store(point + (6 * i + j) * plane, v); });
  }
}

// ---- the convolution

// The rows that one product takes: two vectors of them, or what is left.
template <class T>
struct Block {
  static constexpr int64_t most_rows = 2 * kLanes<T>;
  int64_t first, rows, width;  // the width is that of whole vectors

  Block(const WinogradConv& g, int64_t index)
      : first(index * most_rows), rows(least(most_rows, g.rows - first)), width(parts(rows, kLanes<T>) * kLanes<T>) {}
  static int64_t count(const WinogradConv& g) { return parts(g.rows, most_rows); }
  // Elements of the weights of one point, and of all; no power of two, as in Points.
  static int64_t plane(const WinogradConv& g) { return g.channels * most_rows + kLanes<T>; }
  static int64_t weights(const WinogradConv& g) { return kPoints * plane(g); }
};

// to[x * plane + c * width + m]: the transformed weights of a block of rows, filled up with zeros to whole vectors.
template <class T>
void transform_weights(const WinogradConv& g, int64_t group, const Block<T>& block, T* to) {
  constexpr int64_t lanes = kLanes<T>;
  const T* from = static_cast<const T*>(g.weight) + group * g.rows * g.channels * 9 + block.first * g.weight_row;
  const int64_t plane = Block<T>::plane(g);
  T taps[9 * lanes] = {};
  for (int64_t m = 0; m < block.rows; m += lanes, from += lanes * g.weight_row) {
    const int64_t rows = least(lanes, block.rows - m);
    if (rows < lanes) zero_row(taps, 9 * lanes);
    for (int64_t c = 0; c < g.channels; ++c) {
      transpose(from + c * g.weight_channel, g.weight_row, rows, 9, taps, lanes);
      T* const result = to + c * block.width + m;
      transform_square<T, OfWeight>(
          [&](int i, int j) RL_INLINE { return load(taps + (g.turned ? 8 - 3 * i - j : 3 * i + j) * lanes); },
          [&](int i, int j, Vec<T> v) RL_INLINE { store(result + (6 * i + j) * plane, v); });
    }
  }
}

// sums[x][t][m] of `tiles` tiles: the images times a block of weights, at every point.
template <class T, int N>
void multiply_points(const Points<T>& images, int64_t tiles, const T* weights, int64_t plane, int64_t channels,
                     T* sums) {
  constexpr int64_t width = N * kLanes<T>;
  for (int64_t x = 0; x < kPoints; ++x, weights += plane, sums += tiles * width) {
    for (int64_t c = 0; c < channels; c += kDepth) {
      each_tile<N>(tiles, [&](int64_t t, int64_t height) {
        const StridedA<T> a{images.data + x * images.plane + t * images.row + c, images.row, 1};
        run_tile<T, N>(height, least(kDepth, channels - c), a, PanelB<T>{weights + c * width, width}, sums + t * width,
                       width, c > 0);
      });
    }
  }
}

template <class T>
struct Forward {
  const WinogradConv& g;
  Tiling tiling{g};
  Images<T> in{static_cast<const T*>(g.in), g.in_size, g.groups, g.channels, {g.padding[0], g.padding[1]}};
  int64_t blocks = Block<T>::count(g), pieces = parts(g.channels, kLanes<T>);
  int64_t tile = kPoints * Points<T>::row_of(g.channels), tile_sums = kPoints * Block<T>::most_rows;
  bool finite = true;

  // Pieces [begin, end), each kLanes channels of a line, of the lines from `first` on.
  void transform(int64_t group, int64_t first, int64_t begin, int64_t end, T* strip, const Points<T>& to) const {
    for (int64_t i = begin; i < end; ++i) {
      transform_line<T, OfInput>(in, tiling, group, first + i / pieces, i % pieces * kLanes<T>, strip,
                                 to.from_tile(i / pieces * tiling.span));
    }
  }

  // Lines [begin, end) times a block of weights, to the end.
  void finish(int64_t group, const Block<T>& block, int64_t begin, int64_t end, const Points<T>& points,
              const T* weights, T* sums, T* strip) {
    constexpr int64_t lanes = kLanes<T>;
    const int64_t tiles = (end - begin) * tiling.span, plane = tiles * block.width;
    (block.width == lanes ? multiply_points<T, 1> : multiply_points<T, 2>)(points, tiles, weights, Block<T>::plane(g),
                                                                           g.channels, sums);
    const int64_t image = g.out_size[0] * g.out_size[1], strip_row = kWinogradSide * tiling.span * lanes;
    Vec<T> check{};  // becomes NaN where something is not finite
    for (int64_t line = begin; line < end; ++line) {
      const int64_t top = tiling.top(line), left = tiling.left(line);
      const int64_t height = least(kWinogradSide, g.out_size[0] - top),
                    count = least(kWinogradSide * tiling.span, g.out_size[1] - left);
      for (int64_t m = 0; m < block.rows; m += lanes) {
        const int64_t row = group * g.rows + block.first + m, rows = least(lanes, block.rows - m);
        const Vec<T> bias = g.bias == nullptr ? Vec<T>{} : load(static_cast<const T*>(g.bias) + row, rows);
        for (int64_t t = 0; t < tiling.span; ++t) {
          const T* const from = sums + ((line - begin) * tiling.span + t) * block.width + m;
          T* const tile = strip + t * kWinogradSide * lanes;
          transform_square<T, OfSums>([&](int i, int j) RL_INLINE { return load(from + (6 * i + j) * plane); },
                                      [&](int i, int j, Vec<T> v) RL_INLINE {
                                        check += v * T(0);
                                        store(tile + i * strip_row + j * lanes, v + bias);
                                      });
        }
        T* out = static_cast<T*>(g.out) + (tiling.image(line) * g.groups * g.rows + row) * image + top * g.out_size[1] +
                 left;
        for (int64_t i = 0; i < height; ++i, out += g.out_size[1]) {
          transpose_overlapping(strip + i * strip_row, lanes, count, rows, out, image);
        }
      }
    }
    if (sum_lanes<T>(check) != 0) __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
  }

  // More weights than tiles: the tiles are transformed beforehand, a block of weights when it is needed.
  void by_rows(int64_t group) {
    const int64_t tiles = tiling.lines * tiling.span;
    const Buffer<T> buffer(tiles * tile);
    const Points<T> points(buffer.data(), tiles, g.channels);
    parallel_for(0, tiling.lines * pieces, grain_of(tiling.span * kPoints * kLanes<T>),
                 [&](int64_t begin, int64_t end) {
                   const Buffer<T> strip(strip_size<T>(tiling));
                   transform(group, 0, begin, end, strip.data(), points);
                 });
    parallel_for(0, blocks, grain_of(tiles * tile * Block<T>::most_rows), [&](int64_t begin, int64_t end) {
      const Buffer<T> weights(Block<T>::weights(g)), sums(tiles * tile_sums), strip(strip_size<T>(tiling));
      for (int64_t i = begin; i < end; ++i) {
        transform_weights<T>(g, group, Block<T>(g, i), weights.data());
        finish(group, Block<T>(g, i), 0, tiling.lines, points, weights.data(), sums.data(), strip.data());
      }
    });
  }

  // Else the weights are, and a task takes as many lines as its core's cache holds.
  void by_lines(int64_t group) {
    const int64_t weights_size = Block<T>::weights(g), threads = runtime.num_threads();
    const Buffer<T> weights(blocks * weights_size);
    parallel_for(0, blocks, grain_of(weights_size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        transform_weights<T>(g, group, Block<T>(g, i), weights.data() + i * weights_size);
      }
    });
    const int64_t line_bytes = tiling.span * (tile + tile_sums) * static_cast<int64_t>(sizeof(T));
    int64_t chunks = parts(tiling.lines, most(1, kChunkBytes / line_bytes));
    chunks = least(tiling.lines, parts(chunks, threads) * threads);  // evenly round the threads
    const int64_t tiles = parts(tiling.lines, chunks) * tiling.span;
    parallel_for(0, chunks, grain_of(tiles * tile * g.rows), [&](int64_t begin, int64_t end) {
      const Buffer<T> buffer(tiles * tile), sums(tiles * tile_sums), strip(strip_size<T>(tiling));
      const Points<T> points(buffer.data(), tiles, g.channels);
      for (int64_t x = begin; x < end; ++x) {
        const int64_t first = tiling.lines * x / chunks, last = tiling.lines * (x + 1) / chunks;
        transform(group, first, 0, (last - first) * pieces, strip.data(), points);
        for (int64_t i = 0; i < blocks; ++i) {
          finish(group, Block<T>(g, i), first, last, points, weights.data() + i * weights_size, sums.data(),
                 strip.data());
        }
      }
    });
  }
};

template <class T>
bool forward(const WinogradConv& g) {
  Forward<T> f{g};
  for (int64_t group = 0; group < g.groups; ++group) {
    f.tiling.lines* f.tiling.span < g.rows ? f.by_rows(group) : f.by_lines(group);
  }
  return f.finite;
}

// ---- the gradient of the weights

template <class T>
struct WeightGradient {
  const WinogradConv& g;
  T* dw;
  Tiling tiling{g};
  Images<T> in{static_cast<const T*>(g.in), g.in_size, g.groups, g.channels, {g.padding[0], g.padding[1]}};
  Images<T> out{static_cast<const T*>(g.out), g.out_size, g.groups, g.rows, {0, 0}};
  int64_t in_pieces = parts(g.channels, kLanes<T>), pieces = in_pieces + parts(g.rows, kLanes<T>);
  int64_t row = in_pieces * kLanes<T>, plane = g.rows * row;  // of sums, which are (points, rows, row)
  int64_t in_tile = kPoints * Points<T>::row_of(g.channels), out_tile = kPoints * Points<T>::row_of(g.rows);
  int64_t line_bytes = tiling.span * (in_tile + out_tile) * static_cast<int64_t>(sizeof(T));
  bool finite = true;

  // Pieces [begin, end) of lines from `first` on: kLanes channels of the input or of the gradient of the output.
  void transform(int64_t group, int64_t first, int64_t begin, int64_t end, const Points<T>& x,
                 const Points<T>& dy) const {
    const Buffer<T> strip(strip_size<T>(tiling));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t line = i / pieces, piece = i % pieces, tile = line * tiling.span;
      if (piece < in_pieces) {
        transform_line<T, OfInput>(in, tiling, group, first + line, piece * kLanes<T>, strip.data(), x.from_tile(tile));
      } else {
        transform_line<T, OfOutputGradient>(out, tiling, group, first + line, (piece - in_pieces) * kLanes<T>,
                                            strip.data(), dy.from_tile(tile));
      }
    }
  }

  // sums[m][c] = or += sum over tiles of dy[t][m] * x[t][c] at one point, for some rows from `first` on.
  void multiply(const Points<T>& x, const Points<T>& dy, int64_t point, int64_t first, int64_t rows, int64_t tiles,
                T* sums, bool add) const {
    for (int64_t t = 0; t < tiles; t += kDepth) {
      for (int64_t c = 0; c < row; c += 2 * kLanes<T>) {
        const PanelB<T> b{x.data + point * x.plane + t * x.row + c, x.row};
        each_tile<2>(rows, [&](int64_t m, int64_t height) {
          const StridedA<T> a{dy.data + point * dy.plane + t * dy.row + first + m, 1, dy.row};
          (row - c > kLanes<T> ? run_tile<T, 2> : run_tile<T, 1, kTileRows<2>>)(height, least(kDepth, tiles - t), a, b,
                                                                                sums + (first + m) * row + c, row,
                                                                                add || t > 0);
        });
      }
    }
  }

  void write(int64_t group, const T* sums) {
    parallel_for(0, g.rows, grain_of(kPoints * g.channels), [&](int64_t begin, int64_t end) {
      constexpr int64_t lanes = kLanes<T>;
      Vec<T> check{};  // becomes NaN where something is not finite
      T taps[9 * lanes];
      for (int64_t m = begin; m < end; ++m) {
        for (int64_t c = 0; c < g.channels; c += lanes) {
          transform_square<T, OfWeightSums>([&](int i, int j)
                                                RL_INLINE { return load(sums + m * row + c + (6 * i + j) * plane); },
                                            [&](int i, int j, Vec<T> v) RL_INLINE {
                                              check += v * T(0);
                                              store(taps + (3 * i + j) * lanes, v);
                                            });
          transpose(taps, lanes, 9, least(lanes, g.channels - c), dw + ((group * g.rows + m) * g.channels + c) * 9, 9);
        }
      }
      if (sum_lanes<T>(check) != 0) __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
    });
  }

  // A small gradient: each task sums up a slice of the tiles, all of it in its core's cache.
  void by_slices(int64_t group) {
    const int64_t size = kPoints * plane, most_lines = most(1, kChunkBytes / line_bytes);
    const Buffer<T> sums(kSlices * size);
    parallel_for(0, kSlices, 1, [&](int64_t begin, int64_t end) {
      const int64_t tiles = most_lines * tiling.span;
      const Buffer<T> in_points(tiles * in_tile), out_points(tiles * out_tile);
      const Points<T> x(in_points.data(), tiles, g.channels), dy(out_points.data(), tiles, g.rows);
      for (int64_t slice = begin; slice < end; ++slice) {
        const int64_t from = tiling.lines * slice / kSlices, to = tiling.lines * (slice + 1) / kSlices;
        for (int64_t first = from; first < to; first += most_lines) {
          const int64_t lines = least(most_lines, to - first);
          transform(group, first, 0, lines * pieces, x, dy);
          for (int64_t point = 0; point < kPoints; ++point) {
            multiply(x, dy, point, 0, g.rows, lines * tiling.span, sums.data() + slice * size + point * plane,
                     first > from);
          }
        }
      }
    });
    parallel_for(0, size, grain_of(kSlices), [&](int64_t begin, int64_t end) {
      for (int64_t slice = 1; slice < kSlices; ++slice) {
        for (int64_t i = begin; i < end; ++i) sums[i] += sums[slice * size + i];
      }
    });
    write(group, sums.data());
  }

  // Else the tasks transform tiles together, then share out the points.
  void by_points(int64_t group) {
    const int64_t sums_bytes = kPoints * plane * static_cast<int64_t>(sizeof(T));
    const int64_t bytes = least(most(sums_bytes, kLeastGradientBytes), kMostGradientBytes);
    const int64_t chunks = parts(tiling.lines, most(1, bytes / line_bytes));
    const int64_t tiles = parts(tiling.lines, chunks) * tiling.span, blocks = parts(g.rows, kGradientRows);
    const Buffer<T> in_points(tiles * in_tile), out_points(tiles * out_tile), sums(kPoints * plane);
    const Points<T> x(in_points.data(), tiles, g.channels), dy(out_points.data(), tiles, g.rows);
    for (int64_t i = 0; i < chunks; ++i) {
      const int64_t first = tiling.lines * i / chunks, lines = tiling.lines * (i + 1) / chunks - first;
      parallel_for(0, lines * pieces, grain_of(tiling.span * kPoints * kLanes<T>),
                   [&](int64_t begin, int64_t end) { transform(group, first, begin, end, x, dy); });
      parallel_for(0, kPoints * blocks, grain_of(tiles * kGradientRows * g.channels), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t point = k / blocks, m = k % blocks * kGradientRows;
          multiply(x, dy, point, m, least(kGradientRows, g.rows - m), lines * tiling.span, sums.data() + point * plane,
                   i > 0);
        }
      });
    }
    write(group, sums.data());
  }
};

template <class T>
bool weight(const WinogradConv& g, void* dw) {
  WeightGradient<T> gradient{g, static_cast<T*>(dw)};
  const bool small = g.rows * g.channels <= kSmallGradient && gradient.tiling.lines * gradient.tiling.span > kManyTiles;
  for (int64_t group = 0; group < g.groups; ++group) small ? gradient.by_slices(group) : gradient.by_points(group);
  return gradient.finite;
}

}  // namespace

void fill_winograd(WinogradTable& table) {
  table.forward[0] = forward<float>;
  table.forward[1] = forward<double>;
  table.weight[0] = weight<float>;
  table.weight[1] = weight<double>;
}

}  // namespace RL_ISA
}  // namespace rl
