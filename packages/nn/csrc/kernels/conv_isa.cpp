// Convolution as a sum over displaced images (TapConv), compiled once per instruction set.
//
// A unit of work is some positions of one image of one group. Its input is copied into `planes`, padded with zeros,
// with a plane for each phase of a strided convolution; then the value that tap t needs for position q lies at
// offset[t] + q, for all q at once: the product kernel reads vectors of positions straight from the planes, and no
// patch is ever copied twice. Positions count the padding between two rows too; their sums are computed and thrown
// away.
#include "conv.h"
#include "rows.h"
#include "runtime.h"
#include "rushlight/simd.h"

namespace rl {
namespace RL_ISA {
namespace {

template <class T>
constexpr int64_t kDepth = 1024 / static_cast<int64_t>(sizeof(T));  // columns of `a` that are worked on at a time
template <class T>
constexpr int64_t kStride = kDepth<T> + 64 / static_cast<int64_t>(sizeof(T));  // spreads rows over the cache sets
template <class T>
constexpr int64_t kTile = kVecs * kLanes<T>;
constexpr int kWide = 8;                      // vectors of a tile of one row
constexpr int64_t kUnitBytes = 768 << 10;     // of planes and sums of a unit, so that they stay in the second cache
constexpr int64_t kGradPositions = 1024;      // positions that a gradient of weights adds up at a time
constexpr int64_t kMostRows = 512;            // of a unit
constexpr int64_t kFewPositions = 192;        // fewer, and copying `a` would show
constexpr int64_t kSmallGradient = 64 << 10;  // elements of a gradient of weights that is added up in slices:
constexpr int64_t kSlices = 8;                // of the batch
constexpr double kTaskWork = 1 << 19;         // multiplications that are worth a thread

// Where the planes of some images hold what. Along the width there is a plane for each phase of the stride, in which
// taps shift positions; or, if `apart`, one for each tap, which costs more copies but leaves no gap between two rows.
struct Layout {
  int64_t size[3];    // of a plane: positions, and the farthest tap
  int64_t plane;      // elements of a plane
  int64_t images;     // whose planes lie next to each other
  int64_t phases[3];  // planes along each dimension
  int64_t channel;    // elements of the planes of a channel
  int64_t positions;  // from the first to the last that counts
  bool apart;

  Layout(const TapConv& g, const int64_t* out_size, int64_t image_count, int64_t rows, int lanes)
      : images(image_count) {
    int64_t width_taps = 1;  // taps are a product of three sets, the width innermost
    while (width_taps < g.taps && g.tap[width_taps][2] != g.tap[0][2]) ++width_taps;
    for (int d = 0; d < 3; ++d) {
      int64_t farthest = 0, phase = 0;
      for (int64_t t = 0; t < g.taps; ++t) {
        farthest = most(farthest, g.tap[t][d] / g.step[d]);
        phase = most(phase, g.tap[t][d] % g.step[d]);
      }
      size[d] = out_size[d] + farthest;
      phases[d] = phase + 1;
    }
    // Cycles for the sums of a gap against those for a copied element, for each position and channel.
    const double gap = static_cast<double>(size[2] - out_size[2]) / static_cast<double>(out_size[2]);
    apart = gap * static_cast<double>(rows * g.taps) / (2 * lanes) > 0.5 * static_cast<double>(width_taps - phases[2]);
    if (apart) size[2] = out_size[2], phases[2] = width_taps;
    plane = size[0] * size[1] * size[2];
    channel = phases[0] * phases[1] * phases[2] * plane * images;
    positions = (images - 1) * plane + ((out_size[0] - 1) * size[1] + out_size[1] - 1) * size[2] + out_size[2];
  }
};

// offset[c * taps + t] of `channels` channels.
void fill_offsets(const TapConv& g, const Layout& l, int64_t channels, int64_t* offset) {
  for (int64_t t = 0; t < g.taps; ++t) {
    int64_t phase = 0, shift = 0;
    for (int d = 0; d < 3; ++d) {
      const bool by_tap = d == 2 && l.apart;
      phase = phase * l.phases[d] + (by_tap ? t % l.phases[2] : g.tap[t][d] % g.step[d]);
      shift = shift * l.size[d] + (by_tap ? 0 : g.tap[t][d] / g.step[d]);
    }
    offset[t] = phase * l.plane * l.images + shift;
  }
  for (int64_t i = g.taps; i < channels * g.taps; ++i) offset[i] = offset[i - g.taps] + l.channel;
}

// to[i] = from[2 * i]
template <class T>
inline void copy_even(T* to, const T* from, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<T> < n; i += kLanes<T>)
    store(to + i, load_even(from + 2 * i));  // reads no further than the last element
  for (; i < n; ++i) to[i] = from[2 * i];
}

// One plane: plane[d][h][w] = in[start + (d, h, w) * step], zero outside.
template <class T>
void fill_plane(const T* in, const int64_t* in_size, const int64_t* start, const int64_t* step, const int64_t* size,
                T* plane) {
  const int64_t first = start[2] < 0 ? least(parts(-start[2], step[2]), size[2]) : 0;
  const int64_t end = most(first, least(size[2], parts(in_size[2] - start[2], step[2])));
  for (int64_t d = 0; d < size[0]; ++d) {
    const int64_t in_d = start[0] + d * step[0];
    for (int64_t h = 0; h < size[1]; ++h, plane += size[2]) {
      const int64_t in_h = start[1] + h * step[1];
      if (in_d < 0 || in_d >= in_size[0] || in_h < 0 || in_h >= in_size[1]) {
        zero_row(plane, size[2]);
        continue;
      }
      const T* row = in + (in_d * in_size[1] + in_h) * in_size[2] + start[2];
      zero_row(plane, first);
      if (step[2] == 1) {
        copy_row(plane + first, row + first, end - first);
      } else if (step[2] == 2) {
        copy_even(plane + first, row + 2 * first, end - first);
      } else {
        for (int64_t w = first; w < end; ++w) plane[w] = row[w * step[2]];
      }
      zero_row(plane + end, size[2] - end);
    }
  }
}

// The planes of `channels` channels of images that lie `image_stride` apart.
template <class T>
void fill_planes(const TapConv& g, const Layout& l, const int64_t* origin, const T* in, int64_t image_stride,
                 int64_t channels, T* planes) {
  const int64_t image = g.in_size[0] * g.in_size[1] * g.in_size[2];
  for (int64_t c = 0; c < channels; ++c, in += image) {
    for (int64_t p0 = 0; p0 < l.phases[0]; ++p0) {
      for (int64_t p1 = 0; p1 < l.phases[1]; ++p1) {
        for (int64_t p2 = 0; p2 < l.phases[2]; ++p2) {
          const int64_t start[3] = {origin[0] + p0, origin[1] + p1, origin[2] + (l.apart ? g.tap[p2][2] : p2)};
          for (int64_t n = 0; n < l.images; ++n, planes += l.plane) {
            fill_plane(in + n * image_stride, g.in_size, start, g.step, l.size, planes);
          }
        }
      }
    }
  }
}

// ---- the sum

template <class T>
struct RowsA {
  const T* data;
  T at(int i, int64_t p) const { return data[i * kStride<T> + p]; }
};
template <class T>
struct PlanesB {
  const T* data;
  const int64_t* offset;
  Vec<T> vec(int64_t p, int j) const { return load(data + offset[p] + j * kLanes<T>); }
  Vec<T> last_vec(int64_t p, int j, int64_t) const { return vec(p, j); }
};

template <class T, int R, int N>
[[gnu::noinline]] void conv_tile(int64_t k, RowsA<T> a, PlanesB<T> b, T* sums, int64_t row, bool add) {
  Vec<T> sum[R * N];
  multiply<T, R, N>(k, a, b, kLanes<T>, sum);
  repeat<R * N>([&](auto x) RL_INLINE {
    T* to = sums + x.value / N * row + x.value % N * kLanes<T>;
    store(to, add ? load(to) + sum[x.value] : sum[x.value]);
  });
}

template <class T, int N, int Max>
inline void run_tile(int rows, int64_t k, RowsA<T> a, PlanesB<T> b, T* sums, int64_t row, bool add) {
  if constexpr (Max > 1) {
    if (rows < Max) return run_tile<T, N, Max - 1>(rows, k, a, b, sums, row, add);
  }
  conv_tile<T, Max, N>(k, a, b, sums, row, add);
}

// Some positions of some rows of one image. With `filled` planes of all channels, the unit fills none of its own.
struct Unit {
  int64_t batch, group, first_row, rows;
  int64_t out_size[3], origin[3];
  int64_t out_offset;  // of its first position
};

// What the units of a task share.
template <class T>
struct Workspace {
  int64_t step;      // columns of `a` at a time: whole channels, where they fit
  int64_t channels;  // whose planes are there at a time
  Buffer<T> planes, a, sums;
  Buffer<int64_t> offsets;
  int64_t copied = -1;  // first row of all groups that `a` holds, if it holds all columns

  static int64_t step_of(const TapConv& g) {
    const int64_t taps = most(g.taps, 1);
    return taps <= kDepth<T> ? kDepth<T> / taps * taps : kDepth<T>;
  }
  static int64_t channels_of(const TapConv& g) {
    return least(g.channels, g.taps <= kDepth<T> ? step_of(g) / most(g.taps, 1) : 2);
  }
  // Elements of the planes, and of what a product may read behind them.
  static int64_t space_of(const Layout& l, int64_t channels) { return channels * l.channel + (kWide + 1) * kLanes<T>; }
  static int64_t width_of(int64_t rows) { return rows == 1 ? kWide * kLanes<T> : kTile<T>; }
  static int64_t row_of(const Layout& l, int64_t rows) { return parts(l.positions, width_of(rows)) * width_of(rows); }

  Workspace(const TapConv& g, const Layout& l, int64_t rows, bool has_planes)
      : step(step_of(g)),
        channels(channels_of(g)),
        planes(has_planes ? space_of(l, channels) : 0),
        a(rows * kStride<T>),
        sums(rows * row_of(l, rows)),
        offsets(channels * g.taps) {}
};

template <class T>
void run_unit(const TapConv& g, const Unit& u, const Layout& l, const T* filled, Workspace<T>& space) {
  const int64_t depth = g.channels * g.taps, width = Workspace<T>::width_of(u.rows),
                row = Workspace<T>::row_of(l, u.rows);
  const int64_t image = g.in_size[0] * g.in_size[1] * g.in_size[2], first_row = u.group * g.rows + u.first_row;
  const T* in = static_cast<const T*>(g.in) + (u.batch * g.groups + u.group) * g.channels * image;
  const T* weights = static_cast<const T*>(g.a) + first_row * depth;
  T *a = space.a.data(), *sums = space.sums.data();

  fill_offsets(g, l, space.channels, space.offsets.data());
  if (depth == 0) zero_row(sums, u.rows * row);
  for (int64_t p = 0; p < depth; p += space.step) {
    const int64_t k = least(space.step, depth - p), first = p / g.taps, channels = (p + k - 1) / g.taps - first + 1;
    const T* planes = filled != nullptr ? filled + first * l.channel : space.planes.data();
    if (filled == nullptr) {
      fill_planes(g, l, u.origin, in + first * image, 0, channels, space.planes.data());
      zero_row(space.planes.data() + channels * l.channel, (kWide + 1) * kLanes<T>);
    }
    if (space.copied != first_row) {
      for (int64_t i = 0; i < u.rows; ++i) copy_row(a + i * kStride<T>, weights + i * depth + p, k);
      if (k == depth) space.copied = first_row;
    }
    const int64_t* offsets = space.offsets.data() + p % g.taps;
    for (int64_t q = 0; q < l.positions; q += width) {
      const PlanesB<T> b{planes + q, offsets};
      if (u.rows == 1) {
        conv_tile<T, 1, kWide>(k, RowsA<T>{a}, b, sums + q, row, p > 0);
        continue;
      }
      const int64_t tiles = parts(u.rows, kFloatRows);
      for (int64_t t = 0, i = 0; t < tiles; ++t) {
        const int height = static_cast<int>((u.rows - i + tiles - t - 1) / (tiles - t));
        (l.positions - q > kTile<T> - kLanes<T>
             ? run_tile<T, kVecs, kFloatRows>
             : run_tile<T, 1, kFloatRows>)(height, k, RowsA<T>{a + i * kStride<T>}, b, sums + i * row + q, row, p > 0);
        i += height;
      }
    }
  }

  for (int64_t i = 0; i < u.rows; ++i) {
    const T bias = g.bias != nullptr ? static_cast<const T*>(g.bias)[first_row + i] : T(0);
    T* out = static_cast<T*>(g.out) + u.batch * g.out_batch + (first_row + i) * g.out_row + u.out_offset;
    for (int64_t d = 0; d < u.out_size[0]; ++d) {
      for (int64_t h = 0; h < u.out_size[1]; ++h) {
        const T* from = sums + i * row + (d * l.size[1] + h) * l.size[2];
        T* to = out + d * g.out_stride[0] + h * g.out_stride[1];
        int64_t w = 0;
        if (g.out_stride[2] == 1) {
          for (; w + kLanes<T> <= u.out_size[2]; w += kLanes<T>) store(to + w, load(from + w) + bias);
          if (w < u.out_size[2]) store<T>(to + w, load(from + w, u.out_size[2] - w) + bias, u.out_size[2] - w);
        } else {
          for (; w < u.out_size[2]; ++w) to[w * g.out_stride[2]] = from[w] + bias;
        }
      }
    }
  }
}

inline int64_t grain_of_copies(int64_t elements) { return (1 << 15) / (elements + 1) + 1; }

// The dimension along which positions are shared out.
inline int split_dimension(const TapConv& g) { return g.out_size[0] > 1 ? 0 : g.out_size[1] > 1 ? 1 : 2; }

template <class T>
void forward(const TapConv& g) {
  const int split = split_dimension(g);
  const int64_t images = g.batch * g.groups, length = g.out_size[split];
  const int64_t positions = g.out_size[0] * g.out_size[1] * g.out_size[2], line = positions / length;
  const double work = static_cast<double>(positions * g.rows) * static_cast<double>(g.channels * g.taps);
  // Enough units, but none so small that copying its weights or its halo costs much.
  int64_t row_chunks = parts(g.rows, kMostRows);
  const int64_t bytes =
      static_cast<int64_t>(sizeof(T)) * (parts(g.rows, row_chunks) + 2 * Workspace<T>::channels_of(g));
  int64_t line_chunks = least(length, parts(positions * bytes, kUnitBytes));
  const int64_t units = runtime.num_threads() == 1 ? 1 : 2 * runtime.num_threads();
  while (images * line_chunks * row_chunks < units &&
         work > kTaskWork * static_cast<double>(line_chunks * row_chunks)) {
    if (line_chunks < length && positions / (line_chunks + 1) >= kFewPositions) {
      ++line_chunks;
    } else if (g.rows / (row_chunks + 1) >= 2 * kFloatRows) {
      ++row_chunks;
    } else {
      break;
    }
  }
  const int64_t chunk = parts(length, line_chunks), row_chunk = parts(g.rows, row_chunks);
  line_chunks = parts(length, chunk);
  row_chunks = parts(g.rows, row_chunk);
  int64_t out_size[3] = {g.out_size[0], g.out_size[1], g.out_size[2]};
  out_size[split] = chunk;
  const Layout whole(g, out_size, 1, row_chunk, kLanes<T>);
  out_size[split] = length - (line_chunks - 1) * chunk;
  const Layout rest(g, out_size, 1, row_chunk, kLanes<T>);
  const auto unit_at = [&](int64_t x) {
    const int64_t lines = x / row_chunks % line_chunks * chunk, image = x / (row_chunks * line_chunks);
    Unit u{image / g.groups, image % g.groups, x % row_chunks * row_chunk, 0, {}, {}, lines * g.out_stride[split]};
    u.rows = least(row_chunk, g.rows - u.first_row);
    for (int d = 0; d < 3; ++d) u.out_size[d] = g.out_size[d], u.origin[d] = g.origin[d];
    u.out_size[split] = least(chunk, length - lines);
    u.origin[split] += lines * g.step[split];
    return u;
  };
  const auto layout_of = [&](const Unit& u) -> const Layout& { return u.out_size[split] == chunk ? whole : rest; };
  const double unit_work = work / static_cast<double>(line_chunks * row_chunks) + static_cast<double>(line * chunk);
  const int64_t grain = static_cast<int64_t>(kTaskWork / unit_work) + 1;

  // Units that differ in their rows only share their planes.
  const bool shared = row_chunks > 1;
  const int64_t space = Workspace<T>::space_of(whole.channel > rest.channel ? whole : rest, g.channels);
  const Buffer<T> planes(shared ? images * line_chunks * space : 0);
  if (shared) {
    const int64_t image_size = g.in_size[0] * g.in_size[1] * g.in_size[2], some = 16;  // channels
    const int64_t pieces = parts(g.channels, some);
    parallel_for(0, images * line_chunks * pieces, grain_of_copies(some * whole.channel),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t x = begin; x < end; ++x) {
                     const Unit u = unit_at(x / pieces * row_chunks);
                     const Layout& l = layout_of(u);
                     const int64_t c = x % pieces * some, count = least(some, g.channels - c);
                     T* to = planes.data() + x / pieces * space + c * l.channel;
                     const int64_t channel = (u.batch * g.groups + u.group) * g.channels + c;
                     fill_planes(g, l, u.origin, static_cast<const T*>(g.in) + channel * image_size, 0, count, to);
                     if (c + count == g.channels) zero_row(to + count * l.channel, (kWide + 1) * kLanes<T>);
                   }
                 });
  }
  parallel_for(0, images * line_chunks * row_chunks, grain, [&](int64_t begin, int64_t end) {
    Workspace<T> workspace(g, whole.channel > rest.channel ? whole : rest, row_chunk, !shared);
    for (int64_t x = begin; x < end; ++x) {
      const Unit u = unit_at(x);
      run_unit<T>(g, u, layout_of(u), shared ? planes.data() + x / row_chunks * space : nullptr, workspace);
    }
  });
}

// ---- the gradient of the weights

// Few rows: dot products along the positions, which need no transposed copy of dout.
constexpr int kFewRows = 20, kDotRows = kFloatRows < 6 ? 2 : kFloatRows < 14 ? 3 : 6, kDotCols = 4;
// Else `da` transposed: broadcast elements of the planes, for some columns of `da`, times vectors along the rows of
// dout.
constexpr int kGradCols = kFloatRows < 6 ? 4 : kFloatRows < 14 ? 6 : 8;
constexpr int64_t kGradDepth = 256;  // positions at a time, so that the vectors stay in the first cache

template <class T, int R>
struct PlanesA {
  const T* row[R];
  T at(int i, int64_t p) const { return row[i][p]; }
};
template <class T>
struct PanelB {
  const T* data;
  Vec<T> vec(int64_t p, int j) const { return load(data + p * kTile<T> + j * kLanes<T>); }
  Vec<T> last_vec(int64_t p, int j, int64_t) const { return vec(p, j); }
};

template <class T, int R, int N>
[[gnu::noinline]] void grad_tile(int64_t k, const T* planes, const int64_t* offset, const T* panel, T* sums,
                                 int64_t row) {
  PlanesA<T, R> a;
  repeat<R>([&](auto i) RL_INLINE { a.row[i.value] = planes + offset[i.value]; });
  Vec<T> sum[R * N];
  multiply<T, R, N>(k, a, PanelB<T>{panel}, kLanes<T>, sum);
  repeat<R * N>([&](auto x) RL_INLINE {
    T* to = sums + x.value / N * row + x.value % N * kLanes<T>;
    store(to, load(to) + sum[x.value]);
  });
}

template <class T, int N, int Max>
inline void run_grad_tile(int columns, int64_t k, const T* planes, const int64_t* offset, const T* panel, T* sums,
                          int64_t row) {
  if constexpr (Max > 1) {
    if (columns < Max) return run_grad_tile<T, N, Max - 1>(columns, k, planes, offset, panel, sums, row);
  }
  grad_tile<T, Max, N>(k, planes, offset, panel, sums, row);
}

// sums[j][i] += sum over positions of planes[offset[j]] * dout[i], for all columns j and the rows i of `panel`.
template <class T, int N>
void grad_panel(int64_t positions, const T* planes, const int64_t* offset, int64_t columns, const T* panel, T* sums,
                int64_t row) {
  for (int64_t p = 0; p < positions; p += kGradDepth) {
    const int64_t k = least(positions - p, kGradDepth);
    const int64_t tiles = parts(columns, kGradCols);
    for (int64_t t = 0, j = 0; t < tiles; ++t) {
      const int height = static_cast<int>((columns - j + tiles - t - 1) / (tiles - t));
      run_grad_tile<T, N, kGradCols>(height, k, planes + p, offset + j, panel + p * kTile<T>, sums + j * row, row);
      j += height;
    }
  }
}

// sums[i * sums_row + j] += a[i] * columns[j], lane by lane.
template <class T, int R, int C>
[[gnu::noinline]] void dot_tile(int64_t positions, const T* a, int64_t a_row, const T* planes, const int64_t* offset,
                                Vec<T>* sums, int64_t sums_row) {
  Vec<T> sum[R * C];
  const T* column[C];
  repeat<C>([&](auto j) RL_INLINE { column[j.value] = planes + offset[j.value]; });
  repeat<R * C>([&](auto x) RL_INLINE { sum[x.value] = sums[x.value / C * sums_row + x.value % C]; });
  for (int64_t q = 0; q < positions; q += kLanes<T>) {
    Vec<T> col[C];
    repeat<C>([&](auto j) RL_INLINE { col[j.value] = load(column[j.value] + q); });
    repeat<R>([&](auto i) RL_INLINE {
      const Vec<T> row = load(a + i.value * a_row + q);
      repeat<C>([&](auto j) RL_INLINE { sum[i.value * C + j.value] += row * col[j.value]; });
    });
  }
  repeat<R * C>([&](auto x) RL_INLINE { sums[x.value / C * sums_row + x.value % C] = sum[x.value]; });
}

template <class T, int R>
inline void run_dot_tiles(int rows, int64_t positions, const T* a, int64_t a_row, const T* planes,
                          const int64_t* offset, int64_t columns, Vec<T>* sums, int64_t sums_row) {
  if constexpr (R > 1) {
    if (rows < R) return run_dot_tiles<T, R - 1>(rows, positions, a, a_row, planes, offset, columns, sums, sums_row);
  }
  int64_t j = 0;
  for (; j + kDotCols <= columns; j += kDotCols) {
    dot_tile<T, R, kDotCols>(positions, a, a_row, planes, offset + j, sums + j, sums_row);
  }
  for (; j < columns; ++j) dot_tile<T, R, 1>(positions, a, a_row, planes, offset + j, sums + j, sums_row);
}

// One row of dout at the positions of the planes, zero at those that do not count and up to `row`.
template <class T>
void spread_row(const TapConv& g, const Layout& l, const int64_t* out_size, const T* dout, int64_t out_batch,
                int64_t row, T* to) {
  T* const end = to + row;
  for (int64_t n = 0; n < l.images; ++n) {
    T* line = to + n * l.plane;
    T* const image_end = n + 1 < l.images ? line + l.plane : end;
    for (int64_t d = 0; d < out_size[0]; ++d) {
      for (int64_t h = 0; h < out_size[1]; ++h) {
        copy_row(line, dout + n * out_batch + (d * g.out_size[1] + h) * g.out_size[2], out_size[2]);
        T* const next = h + 1 < out_size[1]   ? line + l.size[2]
                        : d + 1 < out_size[0] ? line + (l.size[1] - h) * l.size[2]
                                              : image_end;
        zero_row(line + out_size[2], next - line - out_size[2]);
        line = next;
      }
    }
  }
}

// Rows [first_row, first_row + rows) and channels [first, first + channels) of the gradient, summed over some images.
template <class T>
void weight_block(const TapConv& g, int64_t group, int64_t first_row, int64_t rows, int64_t first, int64_t channels,
                  int64_t begin, int64_t end, T* da) {
  const int split = split_dimension(g);
  const int64_t length = g.out_size[split], out_image = g.out_size[0] * g.out_size[1] * g.out_size[2];
  const int64_t image = g.in_size[0] * g.in_size[1] * g.in_size[2];
  // Some lines of one image at a time, or all of some images.
  const int64_t lines = parts(length, parts(out_image, kGradPositions));
  const int64_t batch = lines < length ? 1 : most(1, least(end - begin, kGradPositions / out_image));
  int64_t out_size[3] = {g.out_size[0], g.out_size[1], g.out_size[2]},
          origin[3] = {g.origin[0], g.origin[1], g.origin[2]};
  out_size[split] = lines;
  const Layout largest(g, out_size, batch, rows, kLanes<T>);
  const int64_t columns = channels * g.taps, most_row = parts(largest.positions, kLanes<T>) * kLanes<T>;
  const bool few = rows < kFewRows;
  const int64_t padded_rows = parts(rows, kTile<T>) * kTile<T>;
  const Buffer<T> planes(channels * largest.channel + 2 * kLanes<T>), a(rows * most_row);
  const Buffer<T> panel(few ? 0 : most_row * kTile<T>), sums(few ? 0 : columns * padded_rows);
  const Buffer<Vec<T>> lanes(few ? rows * columns : 0);
  const Buffer<int64_t> offset(columns);
  if (few) {
    for (int64_t i = 0; i < rows * columns; ++i) lanes[i] = Vec<T>{};
  } else {
    zero_row(sums.data(), columns * padded_rows);
  }

  const int64_t in_batch = g.groups * g.channels * image, out_batch = g.groups * g.rows * out_image;
  for (int64_t n = begin; n < end; n += batch) {
    const T* in = static_cast<const T*>(g.in) + n * in_batch + (group * g.channels + first) * image;
    const T* dout = static_cast<const T*>(g.out) + n * out_batch + (group * g.rows + first_row) * out_image;
    for (int64_t line = 0; line < length; line += lines) {
      out_size[split] = least(lines, length - line);
      origin[split] = g.origin[split] + line * g.step[split];
      const Layout l(g, out_size, least(batch, end - n), rows, kLanes<T>);
      const int64_t row = parts(l.positions, kLanes<T>) * kLanes<T>;
      fill_planes(g, l, origin, in, in_batch, channels, planes.data());
      zero_row(planes.data() + channels * l.channel, 2 * kLanes<T>);
      fill_offsets(g, l, channels, offset.data());
      int64_t start[3] = {0, 0, 0};
      start[split] = line;
      const int64_t from = (start[0] * g.out_size[1] + start[1]) * g.out_size[2] + start[2];
      for (int64_t i = 0; i < rows; ++i)
        spread_row(g, l, out_size, dout + i * out_image + from, out_batch, row, a.data() + i * row);
      if (few) {
        for (int64_t i = 0; i < rows; i += kDotRows) {
          run_dot_tiles<T, kDotRows>(static_cast<int>(least(kDotRows, rows - i)), row, a.data() + i * row, row,
                                     planes.data(), offset.data(), columns, lanes.data() + i * columns, columns);
        }
        continue;
      }
      for (int64_t i = 0; i < rows; i += kTile<T>) {
        const int64_t count = least(rows - i, kTile<T>);
        if (count < kTile<T>) zero_row(panel.data(), row * kTile<T>);
        transpose(a.data() + i * row, row, count, l.positions, panel.data(), kTile<T>);
        (count > kTile<T> - kLanes<T> ? grad_panel<T, kVecs> : grad_panel<T, 1>)(l.positions, planes.data(),
                                                                                 offset.data(), columns, panel.data(),
                                                                                 sums.data() + i, padded_rows);
      }
    }
  }
  const int64_t to_row = g.channels * g.taps;
  T* to = da + (group * g.rows + first_row) * to_row + first * g.taps;
  if (!few) return transpose(sums.data(), padded_rows, columns, rows, to, to_row);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[i * to_row + j] = sum_lanes<T>(lanes[i * columns + j]);
  }
}

template <class T>
void weight(const TapConv& g, void* da) {
  const int64_t positions = g.out_size[0] * g.out_size[1] * g.out_size[2];
  const double work =
      static_cast<double>(g.batch * g.groups * positions * g.rows) * static_cast<double>(g.channels * g.taps);
  // Blocks of the gradient whose sums fit the second cache, enough to go round; slices of the batch where there are
  // few.
  const int64_t row_block = least(g.rows, g.rows < kFewRows ? g.rows : 4 * kTile<T>),
                row_blocks = parts(g.rows, row_block);
  const int64_t wanted = runtime.num_threads() == 1 ? 1 : 2 * runtime.num_threads();
  int64_t channel_blocks = parts(g.channels * g.taps, 320);
  while (g.groups * row_blocks * channel_blocks < wanted && parts(g.channels, channel_blocks) * g.taps > 96)
    ++channel_blocks;
  const int64_t channel_block = parts(g.channels, channel_blocks);
  channel_blocks = parts(g.channels, channel_block);
  const int64_t blocks = g.groups * row_blocks * channel_blocks;
  const int64_t slices =
      g.rows * g.channels * g.taps * g.groups < kSmallGradient && work > kTaskWork ? least(g.batch, kSlices) : 1;
  const int64_t size = g.groups * g.rows * g.channels * g.taps;
  const Buffer<T> partial(slices > 1 ? slices * size : 0);
  T* to = slices > 1 ? partial.data() : static_cast<T*>(da);
  const int64_t grain = static_cast<int64_t>(kTaskWork * static_cast<double>(blocks * slices) / (work + 1)) + 1;
  parallel_for(0, blocks * slices, grain, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      const int64_t slice = x / blocks, c = x % channel_blocks * channel_block,
                    r = x / channel_blocks % row_blocks * row_block;
      weight_block<T>(g, x / (channel_blocks * row_blocks) % g.groups, r, least(row_block, g.rows - r), c,
                      least(channel_block, g.channels - c), g.batch * slice / slices, g.batch * (slice + 1) / slices,
                      to + slice * size);
    }
  });
  if (slices == 1) return;
  for (int64_t i = 0; i < size; ++i) {
    T sum = 0;
    for (int64_t slice = 0; slice < slices; ++slice) sum += partial[slice * size + i];
    static_cast<T*>(da)[i] = sum;
  }
}

}  // namespace

void fill_conv(ConvTable& table) {
  table.forward[0] = forward<float>;
  table.forward[1] = forward<double>;
  table.weight[0] = weight<float>;
  table.weight[1] = weight<double>;
}

}  // namespace RL_ISA
}  // namespace rl
