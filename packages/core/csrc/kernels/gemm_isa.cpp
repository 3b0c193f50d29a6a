// The matrix product, compiled once per instruction set (see isa.h).
//
// One register-blocked kernel, `tile`, multiplies a few rows of A by one or two vectors' width of B. Two ways lead to
// it:
//   direct  A and B are read in place: small products, and a row vector times a matrix;
//   blocked A and B are copied, converted if need be, into panels that stay in the caches. C is written in place; the
//           sums of types that do not compute in themselves wait in a block of their own.
// `rows_dot_columns` serves the few-row products where both operands are contiguous along k.
//
// A complex product is a real one: A and C are read as twice as many real columns, and an element b of B becomes the
// rows (re b, im b) and (-im b, re b).
#include <cstring>

#include "../determinism.h"
#include "../parallel.h"
#include "gemm.h"
#include "rushlight/half.h"
#include "rushlight/simd.h"

#if defined(__AVX512F__) && defined(__linux__)
#define RL_TILES
#include "tiles.h"
#endif

namespace rl {
namespace RL_ISA {
namespace {

// Integers, rare as they are, get fewer and smaller kernels.
template <class T>
constexpr bool kFloating = T(0.5) != T(0);
template <class T>
constexpr int kRows = kFloating<T> ? kFloatRows : 4;

// ---- element types: what they are stored as, what they compute in, how many real parts they have

template <class R>
struct Complex {
  R part[2];
};

template <class S, class C>
struct ScalarType {
  using Stored = S;
  using Compute = C;
  static constexpr int parts = 1;
  static C get(const S& x, int) { return static_cast<C>(x); }
  static void put(S& x, const C* sum) { x = static_cast<S>(sum[0]); }
};
struct HalfType : ScalarType<Half, float> {
  static constexpr DType dtype = DType::Float16;
  static float get(const Half& x, int) { return to_float(x); }
  static void put(Half& x, const float* sum) { x = to_half(sum[0]); }
};
struct BHalfType : ScalarType<BHalf, float> {
  static constexpr DType dtype = DType::BFloat16;
  static float get(const BHalf& x, int) { return to_float(x); }
  static void put(BHalf& x, const float* sum) { x = to_bhalf(sum[0]); }
};
template <class R>
struct ComplexType {
  using Stored = Complex<R>;
  using Compute = R;
  static constexpr int parts = 2;
  static R get(const Stored& x, int part) { return x.part[part]; }
  static void put(Stored& x, const R* sum) { x.part[0] = sum[0], x.part[1] = sum[1]; }
};

// Types that compute in themselves.
template <class E>
constexpr bool kOwn = sizeof(typename E::Stored) == E::parts * sizeof(typename E::Compute);
template <class E>
constexpr bool kOwnReal = kOwn<E> && E::parts == 1;

template <class E>
constexpr bool kHalf = std::is_same_v<E, HalfType> || std::is_same_v<E, BHalfType>;

// Integers compute unsigned: overflow wraps.
template <class C>
inline C scalar(const GemmScalar& s) {
  return static_cast<C>(static_cast<uint64_t>(s.i));
}
template <>
inline float scalar(const GemmScalar& s) {
  return static_cast<float>(s.re);
}
template <>
inline double scalar(const GemmScalar& s) {
  return s.re;
}
inline bool is_zero(const GemmScalar& s) { return s.re == 0 && s.im == 0 && s.i == 0; }

template <class C>
struct View {
  C* data;
  int64_t row, col;
  C* at(int64_t i, int64_t j) const { return data + i * row + j * col; }
};

// ---- the tile kernel

// What happens to a finished tile: c = relu?(alpha * sum + beta * c + bias). C is contiguous along its rows.
template <class T>
struct Finish {
  T alpha = 1, beta = 0;
  View<const T> bias = {nullptr, 0, 0};  // of the element (0, 0) of the tile
  bool relu = false;

  Vec<T> operator()(Vec<T> sum, Vec<T> c, int64_t i, int64_t j, int64_t n) const {
    Vec<T> v = sum * alpha;
    if (beta != T(0)) v += c * beta;
    if (bias.data != nullptr) {
      const T* p = bias.at(i, j);
      if (bias.col == 1) {
        v += load(p, n);
      } else if (bias.col == 0) {
        v += *p;
      } else {
        for (int64_t x = 0; x < n; ++x) v[x] += p[x * bias.col];
      }
    }
    if (relu) v = v < T(0) ? Vec<T>{} : v;  // keeps NaN
    return v;
  }
  // One element.
  void write(T& c, T sum, int64_t i, int64_t j) const {
    T v = sum * alpha;
    if (beta != T(0)) v += c * beta;
    if (bias.data != nullptr) v += *bias.at(i, j);
    c = relu && v < T(0) ? T(0) : v;
  }
  bool plain() const { return alpha == T(1) && beta == T(0) && bias.data == nullptr && !relu; }
  bool adds() const { return beta == T(1) && bias.data == nullptr && !relu; }
  Finish at(int64_t i, int64_t j) const {
    Finish f = *this;
    if (bias.data != nullptr) f.bias.data = bias.at(i, j);
    return f;
  }
};

// Finishes a tile of `rows` rows of `vecs` vectors, of whose last one `last` lanes exist.
template <class T>
[[gnu::noinline]] void finish_tile(int rows, int vecs, const Vec<T>* sum, T* c, int64_t c_row, int64_t last,
                                   const Finish<T>& finish) {
  const bool reads = finish.beta != T(0);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < vecs; ++j, ++sum) {
      T* p = c + i * c_row + j * kLanes<T>;
      if (j + 1 < vecs || last == kLanes<T>) {
        store(p, finish(*sum, reads ? load(p) : Vec<T>{}, i, j * kLanes<T>, kLanes<T>));
      } else {
        store(p, finish(*sum, reads ? load(p, last) : Vec<T>{}, i, j * kLanes<T>, last), last);
      }
    }
  }
}

// R rows of A times N vectors of B. `last` lanes of the last vector exist; the panel form may read all of its lanes.
template <class T, int R, int N, class A, class B>
[[gnu::noinline]] void tile(int64_t k, A a, B b, T* c, int64_t c_row, int64_t last, const Finish<T>& finish) {
  if (k >= 64) {
    repeat<R * N>([&](auto x) RL_INLINE { __builtin_prefetch(c + x.value / N * c_row + x.value % N * kLanes<T>, 1); });
  }
  Vec<T> sum[R * N];
  multiply<T, R, N>(k, a, b, last, sum);
  const bool adds = finish.adds();
  if (adds) {
    const Vec<T> alpha = splat(finish.alpha);
    repeat<R * N>([&](auto x) RL_INLINE {
      constexpr int i = x.value / N, j = x.value % N;
      const T* from = c + i * c_row + j * kLanes<T>;
      sum[x.value] = (j + 1 < N || last == kLanes<T> ? load(from) : load(from, last)) + sum[x.value] * alpha;
    });
  }
  if (adds || finish.plain()) {
    repeat<R * N>([&](auto x) RL_INLINE {
      constexpr int i = x.value / N, j = x.value % N;
      T* to = c + i * c_row + j * kLanes<T>;
      j + 1 < N || last == kLanes<T> ? store(to, sum[x.value]) : store(to, sum[x.value], last);
    });
    return;
  }
  Vec<T> done[R * N];
  repeat<R * N>([&](auto x) RL_INLINE { done[x.value] = sum[x.value]; });
  finish_tile<T>(R, N, done, c, c_row, last, finish);
}

// A and B where they are.
template <class T>
struct StridedA {
  const T* data;
  int64_t row, col;
  T at(int i, int64_t p) const { return data[i * row + p * col]; }
};
template <class T>
struct RowsB {
  const T* data;
  int64_t row;
  Vec<T> vec(int64_t p, int j) const { return load(data + p * row + j * kLanes<T>); }
  Vec<T> last_vec(int64_t p, int j, int64_t n) const { return load(data + p * row + j * kLanes<T>, n); }
};

// Copies of a block: A by rows of a fixed stride, so that a tile needs one pointer; B by panels of kVecs vectors'
// width.
constexpr int64_t kDepth = 256;
template <class T>
constexpr int64_t kStride =
    kDepth + 64 / static_cast<int64_t>(sizeof(T));  // off the power of two: spreads over the cache sets
template <class T>
constexpr int64_t kPanel = kVecs * kLanes<T>;

template <class T>
struct BlockA {
  const T* data;
  T at(int i, int64_t p) const { return data[i * kStride<T> + p]; }
};
template <class T>
struct PanelB {
  const T* data;
  Vec<T> vec(int64_t p, int j) const { return *reinterpret_cast<const Vec<T>*>(data + p * kPanel<T> + j * kLanes<T>); }
  Vec<T> last_vec(int64_t p, int j, int64_t) const { return vec(p, j); }
};

// Calls the tile of `rows` rows (1 to Max) and N vectors.
template <class T, int N, int Max, class A, class B>
inline void run_tile(int rows, int64_t k, A a, B b, T* c, int64_t c_row, int64_t last, const Finish<T>& f) {
  if constexpr (Max == 1) {
    tile<T, 1, N>(k, a, b, c, c_row, last, f);
  } else {
    if (rows == Max) return tile<T, Max, N>(k, a, b, c, c_row, last, f);
    run_tile<T, N, Max - 1>(rows, k, a, b, c, c_row, last, f);
  }
}

// All columns of `rows` rows, N vectors at a time, then what is left.
template <class T, int N, int R>
inline void direct_rows(int rows, int64_t n, int64_t k, StridedA<T> a, RowsB<T> b, T* c, int64_t c_row,
                        const Finish<T>& f) {
  constexpr int64_t width = N * kLanes<T>;
  int64_t j = 0;
  for (; j + width <= n; j += width) {
    run_tile<T, N, R>(rows, k, a, RowsB<T>{b.data + j, b.row}, c + j, c_row, kLanes<T>, f.at(0, j));
  }
  for (; j < n; j += kLanes<T>) {
    run_tile<T, 1, R>(rows, k, a, RowsB<T>{b.data + j, b.row}, c + j, c_row, least(n - j, kLanes<T>), f.at(0, j));
  }
}

// ---- packing

// dst[i * dst_row + j] = src(i, j), whose parts lie beside each other.
template <class E>
void pack(const typename E::Stored* src, int64_t row, int64_t col, int64_t rows, int64_t cols, typename E::Compute* dst,
          int64_t dst_row) {
  using T = typename E::Compute;
  if constexpr (kOwn<E>) {
    const T* from = reinterpret_cast<const T*>(src);
    if (col == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(dst + i * dst_row, src + i * row, static_cast<size_t>(cols) * sizeof(*src));
      }
      return;
    }
    if (E::parts == 1 && row == 1) return transpose(from, col, cols, rows, dst, dst_row);
  }
  if constexpr (kHalf<E>) {
    if (col == 1) {
      for (int64_t i = 0; i < rows; ++i) widen(src + i * row, dst + i * dst_row, cols);
      return;
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      for (int x = 0; x < E::parts; ++x) dst[i * dst_row + j * E::parts + x] = E::get(src[i * row + j * col], x);
    }
  }
}

// (re, im) -> (-im, re) of the complex numbers in a vector.
template <class T>
inline Vec<T> times_i(Vec<T> v) {
  Vec<T> sign, swapped;
#if defined(__clang__)
  for (int i = 0; i < kLanes<T>; ++i) swapped[i] = v[i ^ 1];
#else
  Vec<IntOf<T>> other;
  repeat<kLanes<T>>([&](auto i) RL_INLINE { other[i.value] = i.value ^ 1; });
  swapped = __builtin_shuffle(v, other);
#endif
  repeat<kLanes<T>>([&](auto i) RL_INLINE { sign[i.value] = i.value % 2 == 0 ? T(-1) : T(1); });
  return swapped * sign;
}

// One panel of B, `width` columns wide.
template <class E>
void pack_panel(const typename E::Stored* src, int64_t row, int64_t col, int64_t depth, int64_t width,
                typename E::Compute* dst) {
  using T = typename E::Compute;
  constexpr int64_t full = kPanel<T> / E::parts;
  if (width < full) std::memset(dst, 0, static_cast<size_t>(depth * E::parts * kPanel<T>) * sizeof(T));
  if constexpr (kOwn<E>) {
    if (col == 1 && width == full) {
      for (int64_t p = 0; p < depth; ++p, dst += E::parts * kPanel<T>) {
        const T* from = reinterpret_cast<const T*>(src + p * row);
        repeat<kVecs>([&](auto x) RL_INLINE {
          const Vec<T> v = load(from + x.value * kLanes<T>);
          store(dst + x.value * kLanes<T>, v);
          if (E::parts == 2) store(dst + kPanel<T> + x.value * kLanes<T>, times_i<T>(v));
        });
      }
      return;
    }
  }
  pack<E>(src, row, col, depth, width, dst, E::parts * kPanel<T>);
  if constexpr (E::parts == 2) {
    for (int64_t p = 0; p < depth; ++p, dst += 2 * kPanel<T>) {
      repeat<kVecs>([&](auto x) RL_INLINE {
        store(dst + kPanel<T> + x.value * kLanes<T>, times_i<T>(load(dst + x.value * kLanes<T>)));
      });
    }
  }
}

// ---- blocked products

// c += alpha * a @ b on packed blocks, tile by tile: a panel of B stays in the first-level cache while A passes by.
template <class T>
void multiply_block(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t c_row,
                    const Finish<T>& finish) {
  const int64_t tiles = parts(m, kRows<T>);
  for (int64_t j = 0; j < n; j += kPanel<T>, b += kDepth * kPanel<T>) {
    const int64_t width = least(n - j, kPanel<T>), vecs = parts(width, kLanes<T>),
                  last = width - (vecs - 1) * kLanes<T>;
    for (int64_t t = 0, i = 0; t < tiles; ++t) {
      const int rows = static_cast<int>((m - i + tiles - t - 1) / (tiles - t));  // nearly equal heights
      const BlockA<T> block{a + i * kStride<T>};
      const PanelB<T> panel{b};
      const Finish<T> f = finish.at(i, j);
      T* to = c + i * c_row + j;
      if (vecs == kVecs) {
        run_tile<T, kVecs, kRows<T>>(rows, k, block, panel, to, c_row, last, f);
      } else if (kVecs == 3 && vecs == 2) {
        run_tile<T, 2, kRows<T>>(rows, k, block, panel, to, c_row, last, f);
      } else {
        run_tile<T, 1, kRows<T>>(rows, k, block, panel, to, c_row, last, f);
      }
      i += rows;
    }
  }
}

// One matrix of a batch.
template <class S>
struct Operands {
  View<const S> a, b;
  View<S> c;
  View<const S> bias;
};

template <class T>
inline Finish<T> finish_of(const GemmArgs& g) {
  Finish<T> finish;
  finish.alpha = scalar<T>(g.alpha);
  finish.beta = is_zero(g.beta) ? T(0) : scalar<T>(g.beta);
  finish.bias = {static_cast<const T*>(g.bias), g.bias_row, g.bias_col};
  finish.relu = g.relu;
  return finish;
}

// c = finish(sum), element by element: for what does not compute in itself, or whose C is not contiguous.
template <class E>
void finish_block(const GemmArgs& g, const Operands<typename E::Stored>& o, int64_t m, int64_t n,
                  const typename E::Compute* sums, int64_t row) {
  using T = typename E::Compute;
  const bool reads = !is_zero(g.beta);
  if constexpr (kHalf<E>) {
    if (!reads && g.alpha.re == 1 && o.bias.data == nullptr && !g.relu && o.c.col == 1) {
      for (int64_t i = 0; i < m; ++i) narrow(sums + i * row, o.c.at(i, 0), n);
      return;
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      auto& c = *o.c.at(i, j);
      const T* sum = sums + i * row + j * E::parts;
      T v[2] = {sum[0], T(0)};
      if constexpr (E::parts == 1) {
        v[0] *= scalar<T>(g.alpha);
        if (reads) v[0] += scalar<T>(g.beta) * E::get(c, 0);
        if (o.bias.data != nullptr) v[0] += E::get(*o.bias.at(i, j), 0);
        if (g.relu) v[0] = v[0] < T(0) ? T(0) : v[0];
      } else {
        const T re = sum[0], im = sum[1];
        const T alpha_re = static_cast<T>(g.alpha.re), alpha_im = static_cast<T>(g.alpha.im);
        v[0] = alpha_im == 0 ? re * alpha_re : re * alpha_re - im * alpha_im;
        v[1] = alpha_im == 0 ? im * alpha_re : re * alpha_im + im * alpha_re;
        if (reads) {
          const T beta_re = static_cast<T>(g.beta.re), beta_im = static_cast<T>(g.beta.im);
          const T c_re = E::get(c, 0), c_im = E::get(c, 1);
          v[0] += c_re * beta_re - c_im * beta_im;
          v[1] += c_re * beta_im + c_im * beta_re;
        }
        if (o.bias.data != nullptr) {
          v[0] += E::get(*o.bias.at(i, j), 0);
          v[1] += E::get(*o.bias.at(i, j), 1);
        }
      }
      E::put(c, v);
    }
  }
}

// Where the sums of a blocked product go.
enum class Sums { InPlace, Turned, Staged };  // C; transposed into C, which is not read; through finish_block

// The block (m, n) of C at (0, 0) of the operands: some columns of B are copied, then block after block of A.
template <class E>
void blocked(const GemmArgs& g, const Operands<typename E::Stored>& o, int64_t m, int64_t n, Sums where) {
  using T = typename E::Compute;
  constexpr int64_t depth_step = kDepth / E::parts, width = kPanel<T> / E::parts,
                    most_rows = 1024 / static_cast<int64_t>(sizeof(T));
  const int64_t row_step = parts(m, parts(m, most_rows)), cols = parts(n, width) * kPanel<T>,
                a_size = row_step * kStride<T>, b_size = cols * kDepth, c_size = where == Sums::InPlace ? 0 : m * cols;
  T* pa = static_cast<T*>(gemm_scratch((a_size + b_size + c_size) * static_cast<int64_t>(sizeof(T))));
  T* pb = pa + a_size;
  T* sums = pb + b_size;
  int64_t row = cols;
  Finish<T> finish;
  if (where != Sums::Staged) finish = finish_of<T>(g), finish.bias.data = nullptr, finish.relu = false;
  if constexpr (kOwn<E>) {
    if (where == Sums::InPlace) sums = reinterpret_cast<T*>(o.c.data), row = o.c.row * E::parts;
  }
  if (g.k == 0) std::memset(sums, 0, static_cast<size_t>(c_size) * sizeof(T));
  for (int64_t p = 0; p < g.k; p += depth_step) {
    const int64_t depth = least(g.k - p, depth_step);
    for (int64_t j = 0; j < n; j += width) {
      pack_panel<E>(o.b.at(p, j), o.b.row, o.b.col, depth, least(n - j, width), pb + j * E::parts * kDepth);
    }
    if constexpr (kOwn<E>) {
      if (where != Sums::Staged && p + depth == g.k) {
        finish.bias = {reinterpret_cast<const T*>(o.bias.data), o.bias.row * E::parts, o.bias.col};
        finish.relu = g.relu;
      }
    }
    for (int64_t i = 0; i < m; i += row_step) {
      const int64_t rows = least(m - i, row_step);
      pack<E>(o.a.at(i, p), o.a.row, o.a.col, rows, depth, pa, kStride<T>);
      multiply_block<T>(rows, n * E::parts, depth * E::parts, pa, pb, sums + i * row, row, finish.at(i, 0));
    }
    finish.beta = 1;
  }
  if constexpr (kOwnReal<E>) {
    if (where == Sums::Turned) return transpose(sums, cols, m, n, o.c.data, o.c.col);
  }
  if (where == Sums::Staged) finish_block<E>(g, o, m, n, sums, cols);
}

#if defined(RL_TILES)

// ---- products of halves in tiles: 16 lines (rows of A, columns of B) of 32 halves each

constexpr int64_t kTileLines = 16, kTileDepth = 32, kTileSize = kTileLines * kTileDepth;

// One tile of A, line after line, or of B, whose row p holds the halves 2 p and 2 p + 1 of all lines (`pairs`). What
// lies beyond `depth` and `lines` is zero.
void pack_tile(const uint16_t* src, int64_t along, int64_t across, int64_t depth, int64_t lines, bool pairs,
               uint16_t* dst) {
  alignas(64) uint16_t other[kTileSize];
  const bool by_lines = across != 1 || along == 1;
  uint16_t* to = by_lines == pairs ? other : dst;
  if (along == 1) {
    const auto mask = static_cast<__mmask32>((uint64_t{1} << depth) - 1);
    for (int64_t l = 0; l < kTileLines; ++l) {
      const __m512i v = l < lines ? _mm512_maskz_loadu_epi16(mask, src + l * across) : _mm512_setzero_si512();
      _mm512_storeu_si512(to + l * kTileDepth, v);
    }
  } else if (across == 1) {
    const auto mask = static_cast<__mmask16>((1u << lines) - 1);
    const auto line = [&](int64_t p) RL_INLINE {
      return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(p < depth ? mask : __mmask16{0}, src + p * along));
    };
    for (int64_t p = 0; p < kTileDepth; p += 2) {
      _mm512_storeu_si512(to + p * kTileLines, _mm512_or_si512(line(p), _mm512_slli_epi32(line(p + 1), 16)));
    }
  } else {
    std::memset(to, 0, kTileSize * sizeof(*to));
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t p = 0; p < depth; ++p) to[l * kTileDepth + p] = src[l * across + p * along];
    }
  }
  // Of pairs as numbers, one form is the transpose of the other.
  if (to == other) {
    transpose(reinterpret_cast<const float*>(other), kTileLines, kTileLines, kTileLines, reinterpret_cast<float*>(dst),
              kTileLines);
  }
}

// All tiles of `lines` lines, an even number of tiles across; tiles of the same lines follow each other.
void pack_tiles(const void* from, int64_t along, int64_t across, int64_t depth, int64_t lines, bool pairs,
                uint16_t* dst) {
  const auto* src = static_cast<const uint16_t*>(from);
  for (int64_t l = 0; l < parts(lines, 2 * kTileLines) * 2 * kTileLines; l += kTileLines) {
    for (int64_t p = 0; p < depth; p += kTileDepth, dst += kTileSize) {
      const int64_t count = most(0, least(lines - l, kTileLines));
      pack_tile(count == 0 ? src : src + l * across + p * along, along, across, least(depth - p, kTileDepth), count,
                pairs, dst);
    }
  }
}

// The block (m, n) of C at (0, 0) of the operands, four tiles of sums at a time.
template <class E>
void tiled(const GemmArgs& g, const Operands<typename E::Stored>& o, int64_t m, int64_t n) {
  constexpr int64_t depth_step = 512, pair = 2 * kTileLines;
  const int64_t rows = parts(m, pair) * pair, cols = parts(n, pair) * pair;
  auto* pa = static_cast<uint16_t*>(gemm_scratch((rows + cols) * depth_step * 2 + rows * cols * 4));
  uint16_t* pb = pa + rows * depth_step;
  auto* sums = reinterpret_cast<float*>(pb + cols * depth_step);
  const int64_t sums_row = cols * static_cast<int64_t>(sizeof(float)), a_row = kTileDepth * 2;
  if (g.k == 0) std::memset(sums, 0, static_cast<size_t>(rows * sums_row));
  const TileUse use;
  for (int64_t p = 0; p < g.k; p += depth_step) {
    const int64_t depth = least(g.k - p, depth_step), steps = parts(depth, kTileDepth);
    pack_tiles(o.a.at(0, p), o.a.col, o.a.row, depth, m, false, pa);
    pack_tiles(o.b.at(p, 0), o.b.row, o.b.col, depth, n, true, pb);
    for (int64_t j = 0; j < cols; j += pair) {
      for (int64_t i = 0; i < rows; i += pair) {
        float *upper = sums + i * cols + j, *lower = upper + kTileLines * cols;
        if (p == 0) {
          tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
        } else {
          tile_load<0>(upper, sums_row), tile_load<1>(upper + kTileLines, sums_row);
          tile_load<2>(lower, sums_row), tile_load<3>(lower + kTileLines, sums_row);
        }
        const uint16_t *a = pa + i * steps * kTileDepth, *b = pb + j * steps * kTileDepth;
        for (int64_t s = 0; s < steps; ++s, a += kTileSize, b += kTileSize) {
          tile_load<4>(a, a_row), tile_load<6>(b, a_row);
          tile_load<5>(a + steps * kTileSize, a_row), tile_load<7>(b + steps * kTileSize, a_row);
          tile_multiply<E::dtype, 0, 4, 6>(), tile_multiply<E::dtype, 1, 4, 7>();
          tile_multiply<E::dtype, 2, 5, 6>(), tile_multiply<E::dtype, 3, 5, 7>();
        }
        tile_store<0>(upper, sums_row), tile_store<1>(upper + kTileLines, sums_row);
        tile_store<2>(lower, sums_row), tile_store<3>(lower + kTileLines, sums_row);
      }
    }
  }
  finish_block<E>(g, o, m, n, sums, cols);
}

#endif

// ---- direct products

template <class T>
constexpr int64_t kDirectB = 32768 / static_cast<int64_t>(sizeof(T));  // elements of B that a direct product may copy

// C = A @ B without copies of A. B must be contiguous along its rows.
template <class T>
void direct(int64_t m, int64_t n, int64_t k, const Operands<T>& o, const Finish<T>& finish) {
  constexpr int rows = kRows<T> < 8 ? kRows<T> : 8;
  const RowsB<T> b{o.b.data, o.b.row};
  const int64_t tiles = parts(m, rows);
  for (int64_t t = 0, i = 0; t < tiles; ++t) {
    const int height = static_cast<int>((m - i + tiles - t - 1) / (tiles - t));
    const StridedA<T> a{o.a.at(i, 0), o.a.row, o.a.col};
    direct_rows<T, kVecs, rows>(height, n, k, a, b, o.c.data + i * o.c.row, o.c.row, finish.at(i, 0));
    i += height;
  }
}

// ---- few rows

// The sums of the lanes of `Count` vectors: squares of them are turned, so that whole vectors are added.
template <class T, int Count>
RL_INLINE inline void sum_all_lanes(const Vec<T>* v, T* total) {
  if constexpr (kVecBytes < 32) {
    repeat<Count>([&](auto x) RL_INLINE { total[x.value] = sum_lanes<T>(v[x.value]); });
  } else {
    typedef typename Square<T>::Line Line;
    constexpr int side = Square<T>::side;
    for (int first = 0; first < Count; first += side) {
      Line lines[side] = {}, turned[side], sum{};
      const int count = Count - first < side ? Count - first : side;
      for (int i = 0; i < count; ++i) {
        Line half[kVecBytes / 32];
        std::memcpy(half, &v[first + i], kVecBytes);
        lines[i] = half[0];
        if constexpr (kVecBytes == 64) lines[i] += half[1];
      }
      Square<T>::transpose(reinterpret_cast<const T*>(lines), side, reinterpret_cast<T*>(turned), side);
      for (const Line& line : turned) sum += line;
      std::memcpy(total + first, &sum, static_cast<size_t>(count) * sizeof(T));
    }
  }
}

// R rows of A times C columns of B, all contiguous along k.
template <class T, int R, int C>
inline void dots(int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_col, View<T> c, const Finish<T>& finish) {
  Vec<T> sum[R * C];
  repeat<R * C>([&](auto x) RL_INLINE { sum[x.value] = Vec<T>{}; });
  const auto step = [&](int64_t p, auto get) RL_INLINE {
    Vec<T> col[C];
    repeat<C>([&](auto j) RL_INLINE { col[j.value] = get(b + j.value * b_col + p); });
    repeat<R>([&](auto i) RL_INLINE {
      const Vec<T> row = get(a + i.value * a_row + p);
      repeat<C>([&](auto j) RL_INLINE { sum[i.value * C + j.value] += row * col[j.value]; });
    });
  };
  int64_t p = 0;
  for (; p + kLanes<T> <= k; p += kLanes<T>) step(p, [](const T* x) RL_INLINE { return load(x); });
  if (p < k) step(p, [&](const T* x) RL_INLINE { return load(x, k - p); });
  T total[R * C];
  sum_all_lanes<T, R * C>(sum, total);
  repeat<R * C>([&](auto x) RL_INLINE {
    constexpr int i = x.value / C, j = x.value % C;
    finish.write(*c.at(i, j), total[x.value], i, j);
  });
}

template <class T, int R>
[[gnu::noinline]] void dots_row_group(int64_t k, int64_t n, const T* a, int64_t a_row, const T* b, int64_t b_col,
                                      View<T> c, const Finish<T>& finish) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    dots<T, R, 4>(k, a, a_row, b + j * b_col, b_col, {c.at(0, j), c.row, c.col}, finish.at(0, j));
  }
  for (; j < n; ++j) dots<T, R, 1>(k, a, a_row, b + j * b_col, b_col, {c.at(0, j), c.row, c.col}, finish.at(0, j));
}

// C = A @ B where both are contiguous along k and A has few rows: nothing is copied, B comes from memory once.
template <class T>
void rows_dot_columns(int64_t k, int64_t m, int64_t n, const Operands<T>& o, const Finish<T>& finish) {
  constexpr int64_t some = 16;  // columns
  for (int64_t j = 0; j < n; j += some) {
    for (int64_t i = 0; i < m; i += 4) {
      const T *a = o.a.at(i, 0), *b = o.b.at(0, j);
      const View<T> c = {o.c.at(i, j), o.c.row, o.c.col};
      const Finish<T> f = finish.at(i, j);
      const int64_t count = least(some, n - j);
      switch (least(m - i, 4)) {
        case 1: dots_row_group<T, 1>(k, count, a, o.a.row, b, o.b.col, c, f); break;
        case 2: dots_row_group<T, 2>(k, count, a, o.a.row, b, o.b.col, c, f); break;
        case 3: dots_row_group<T, 3>(k, count, a, o.a.row, b, o.b.col, c, f); break;
        default: dots_row_group<T, 4>(k, count, a, o.a.row, b, o.b.col, c, f);
      }
    }
  }
}

// A row times B that is contiguous along its rows: adds up the rows of B, eight at a time.
template <class T>
[[gnu::noinline]] void row_times_rows(int64_t k, int64_t n, const Operands<T>& o, const Finish<T>& finish) {
  constexpr int64_t width = 4096 / static_cast<int64_t>(sizeof(T));
  alignas(64) T sums[width];
  for (int64_t begin = 0; begin < n; begin += width) {
    const int64_t count = least(n - begin, width);
    std::memset(sums, 0, sizeof(sums));
    int64_t p = 0;
    const auto add = [&](auto rows) RL_INLINE {
      Vec<T> x[rows.value];
      repeat<rows.value>([&](auto i) RL_INLINE { x[i.value] = splat(*o.a.at(0, p + i.value)); });
      const T* b = o.b.at(p, begin);
      int64_t j = 0;
      for (; j + kLanes<T> <= count; j += kLanes<T>) {
        Vec<T> v = load(sums + j);
        repeat<rows.value>([&](auto i) RL_INLINE { v += x[i.value] * load(b + i.value * o.b.row + j); });
        store(sums + j, v);
      }
      if (j < count) {
        Vec<T> v = load(sums + j);
        repeat<rows.value>([&](auto i) RL_INLINE { v += x[i.value] * load(b + i.value * o.b.row + j, count - j); });
        store(sums + j, v);
      }
    };
    for (; p + 8 <= k; p += 8) add(Constant<8>{});
    for (; p < k; ++p) add(Constant<1>{});
    for (int64_t j = 0; j < count; ++j) finish.write(*o.c.at(0, begin + j), sums[j], 0, begin + j);
  }
}

// The product of two long vectors: chunks of fixed length, so that the order of additions is too.
template <class T>
void long_dot(int64_t k, const Operands<T>& o, const Finish<T>& finish) {
  constexpr int64_t most_chunks = 1024;
  const int64_t chunk = most(1 << 15, parts(k, most_chunks)), chunks = parts(k, chunk);
  T sums[most_chunks];
  parallel_for(0, chunks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      const int64_t p = x * chunk;
      dots<T, 1, 1>(least(k - p, chunk), o.a.data + p, 0, o.b.data + p, 0, {sums + x, 0, 0}, Finish<T>{});
    }
  });
  T sum = 0;
  for (int64_t x = 0; x < chunks; ++x) sum += sums[x];
  finish.write(*o.c.data, sum, 0, 0);
}

// The same for complex vectors.
template <class T>
void complex_dot(const GemmArgs& g, const Operands<Complex<T>>& o) {
  constexpr int64_t most_chunks = 1024;
  const int64_t chunk = most(1 << 14, parts(g.k, most_chunks)), chunks = parts(g.k, chunk);
  T sums[most_chunks][2];
  parallel_for(0, chunks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      const T* a = o.a.at(0, x * chunk)->part;
      const T* b = o.b.at(x * chunk, 0)->part;
      const int64_t n = 2 * least(g.k - x * chunk, chunk);
      // Of (re, im) in turn: the products of equal parts, and with (-im, re) those of unequal parts.
      Vec<T> equal[2] = {}, unequal[2] = {};
      const auto step = [&](Vec<T> u, Vec<T> v, int which) RL_INLINE {
        equal[which] += u * v;
        unequal[which] += u * times_i<T>(v);
      };
      int64_t p = 0;
      for (; p + 2 * kLanes<T> <= n; p += 2 * kLanes<T>) {
        step(load(a + p), load(b + p), 0);
        step(load(a + p + kLanes<T>), load(b + p + kLanes<T>), 1);
      }
      for (; p < n; p += kLanes<T>) step(load(a + p, least(n - p, kLanes<T>)), load(b + p, least(n - p, kLanes<T>)), 0);
      const Vec<T> straight = equal[0] + equal[1], turned = unequal[0] + unequal[1];
      T re = 0, im = 0;
      for (int i = 0; i < kLanes<T>; i += 2) re += straight[i] - straight[i + 1], im += turned[i + 1] - turned[i];
      sums[x][0] = re, sums[x][1] = im;
    }
  });
  T sum[2] = {};
  for (int64_t x = 0; x < chunks; ++x) sum[0] += sums[x][0], sum[1] += sums[x][1];
  finish_block<ComplexType<T>>(g, o, 1, 1, sum, 2);
}

// ---- entry

// Multiplications; a double, since the k of an expanded operand is not bounded by memory.
inline double work(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}
constexpr double kTaskWork = 1 << 19;  // multiplications that are worth a thread: some microseconds

// A product that the blocked path is not worth: everything fits the caches and the copies would dominate.
template <class T>
inline bool is_small(const GemmArgs& g) {
  return work(g.m, g.n, g.k) <= 64 * 64 * 64 && g.k * g.n <= kDirectB<T>;
}

// Small products that make a task of a batch.
inline int64_t batch_grain(const GemmArgs& g) {
  return static_cast<int64_t>(kTaskWork / (work(g.m, g.n, g.k) + 512)) + 1;
}

template <class S>
inline Operands<S> operands(const GemmArgs& g, int64_t batch) {
  Operands<S> o{{static_cast<const S*>(g.a), g.a_row, g.a_col},
                {static_cast<const S*>(g.b), g.b_row, g.b_col},
                {static_cast<S*>(g.c), g.c_row, g.c_col},
                {static_cast<const S*>(g.bias), g.bias_row, g.bias_col}};
  for (int d = g.batch_ndim - 1; d >= 0; --d) {
    const int64_t index = batch % g.batch_sizes[d];
    batch /= g.batch_sizes[d];
    o.a.data += index * g.a_batch[d];
    o.b.data += index * g.b_batch[d];
    o.c.data += index * g.c_batch[d];
  }
  return o;
}

// The same for any B, which is copied if need be.
template <class T>
[[gnu::noinline]] void direct_copied(const GemmArgs& g, Operands<T> o, const Finish<T>& finish) {
  const int64_t n = parts(g.n, kLanes<T>) * kLanes<T>;  // of few columns many times as much
  T* copy = static_cast<T*>(gemm_scratch(g.k * n * static_cast<int64_t>(sizeof(T))));
  pack<ScalarType<T, T>>(o.b.data, o.b.row, o.b.col, g.k, g.n, copy, n);
  o.b = {copy, n, 1};
  direct<T>(g.m, g.n, g.k, o, finish);
}

// Columns [begin, end) of the operands.
template <class S>
inline Operands<S> columns(Operands<S> o, int64_t begin) {
  o.b.data = o.b.at(0, begin);
  o.c.data = o.c.at(0, begin);
  return o;
}

// Products of few rows, which are bound by memory. C may have any strides. False: not for this one.
template <class T>
bool run_few_rows(const GemmArgs& g, int64_t batch, const Finish<T>& finish) {
  const int64_t most_rows = work(1, g.n, g.k) < 1 << 17 ? 8 : 16;  // a larger B is not worth copies for more
  const bool along_k =
      g.b_row == 1 && (g.a_col == 1 || g.k == 1) && g.m <= most_rows && (g.m == 1 || g.k >= 2 * kLanes<T>);
  const bool along_n = g.m == 1 && g.b_col == 1;
  if (batch > 1 ? !along_k || !is_small<T>(g) : !along_k && !along_n) return false;
  if (batch > 1) {
    parallel_for(0, batch, batch_grain(g), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) rows_dot_columns<T>(g.k, g.m, g.n, operands<T>(g, i), finish);
    });
    return true;
  }
  const Operands<T> o = operands<T>(g, 0);
  if (g.m == 1 && g.n == 1 && along_k && g.k > 1 << 16) {
    long_dot<T>(g.k, o, finish);
    return true;
  }
  // A thread gets 64 kB of B at least, in multiples of the kernels' width.
  const int64_t unit = along_n ? 16 * kLanes<T> : 4;
  const int64_t grain = parts((1 << 16) / static_cast<int64_t>(sizeof(T)), unit * most(g.k, 1));
  parallel_for(0, parts(g.n, unit), grain, [&](int64_t begin, int64_t end) {
    const int64_t n = least(g.n, end * unit) - begin * unit;
    const Operands<T> part = columns(o, begin * unit);
    const Finish<T> f = finish.at(0, begin * unit);
    along_n ? row_times_rows<T>(g.k, n, part, f) : rows_dot_columns<T>(g.k, g.m, n, part, f);
  });
  return true;
}

// Small C, long sums: A and B are read once, in place; pieces of k of a fixed length are added up in order. False: not
// for this one.
template <class T>
bool run_long_sums(const GemmArgs& g, int64_t batch) {
  constexpr int64_t cells = 64 * 64, least_chunk = 1024, most_chunks = 256;
  if (batch > 1 || g.m * g.n > cells || g.k < 4 * least_chunk || g.m == 1 || g.b_col != 1) return false;
  const int64_t chunk = most(least_chunk, parts(g.k, most_chunks)), chunks = parts(g.k, chunk), size = g.m * g.n;
  T* sums = static_cast<T*>(gemm_scratch(chunks * size * static_cast<int64_t>(sizeof(T))));
  const int64_t grain = static_cast<int64_t>(kTaskWork / work(g.m, g.n, chunk)) + 1;
  parallel_for(0, chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      Operands<T> o = operands<T>(g, 0);
      o.a.data = o.a.at(0, x * chunk), o.b.data = o.b.at(x * chunk, 0);
      o.c = {sums + x * size, g.n, 1};
      direct<T>(g.m, g.n, least(g.k - x * chunk, chunk), o, Finish<T>{});
    }
  });
  const Finish<T> finish = finish_of<T>(g);
  T* c = static_cast<T*>(g.c);
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      T sum = 0;
      for (int64_t x = 0; x < chunks; ++x) sum += sums[x * size + i * g.n + j];
      finish.write(c[i * g.c_row + j * g.c_col], sum, i, j);
    }
  }
  return true;
}

// The products that are not worth copies; false: not this one.
template <class T>
bool run_in_place(const GemmArgs& g, int64_t batch) {
  const Finish<T> finish = finish_of<T>(g);
  if constexpr (kFloating<T>) {
    if (run_few_rows<T>(g, batch, finish)) return true;
  }
  if (!is_small<T>(g) || (g.c_col != 1 && g.n != 1)) return false;
  const bool copies = g.b_col != 1 && g.n != 1;
  parallel_for(0, batch, batch_grain(g), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Operands<T> o = operands<T>(g, i);
      copies ? direct_copied<T>(g, o, finish) : direct<T>(g.m, g.n, g.k, o, finish);
    }
  });
  return true;
}

// Where the sums of this product go.
template <class E>
Sums sums_of(const GemmArgs& g) {
  if (!kOwn<E> || g.k == 0) return Sums::Staged;
  if (E::parts == 2) {
    const bool real = g.alpha.im == 0 && g.beta.im == 0 && (g.bias == nullptr || g.bias_col == 1);
    return g.c_col == 1 && real ? Sums::InPlace : Sums::Staged;
  }
  if (g.c_col == 1 || g.n == 1) return Sums::InPlace;
  return g.c_row == 1 && is_zero(g.beta) ? Sums::Turned : Sums::Staged;
}

// Blocks of C, so that the columns of B fit the second-level cache, and enough of them to go round.
template <class E>
void run_blocked(const GemmArgs& g, int64_t batch) {
  using S = typename E::Stored;
  constexpr int64_t width = kPanel<typename E::Compute> / E::parts, weight = E::parts * E::parts;
  const Sums where = sums_of<E>(g);
  const int64_t most_rows = where == Sums::InPlace ? 1024 : 256,
                most_cols = kHalf<E> ? 512 : 4096 / static_cast<int64_t>(sizeof(S));
  int64_t row_blocks = parts(g.m, most_rows), col_blocks = parts(g.n, most_cols);
  const int64_t tasks = num_threads();
  // Of a shallow product C is most of the memory, and who reads it next shares it out by rows.
  const int64_t favour = 4 * g.k <= g.m ? 4 : 1;
  while (batch * row_blocks * col_blocks < tasks &&
         weight * work(g.m / row_blocks, g.n / col_blocks, g.k) > kTaskWork) {
    ++(favour * g.m / row_blocks > g.n / col_blocks ? row_blocks : col_blocks);
  }
  const int64_t block_m = parts(g.m, row_blocks), block_n = parts(parts(g.n, col_blocks), width) * width;
  row_blocks = parts(g.m, block_m), col_blocks = parts(g.n, block_n);
  const int64_t grain = static_cast<int64_t>(kTaskWork / (weight * work(block_m, block_n, g.k + 1))) + 1;
  parallel_for(0, batch * row_blocks * col_blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; ++x) {
      Operands<S> o = operands<S>(g, x / (row_blocks * col_blocks));
      const int64_t i = x / col_blocks % row_blocks * block_m, j = x % col_blocks * block_n;
      o.a.data = o.a.at(i, 0);
      o.b.data = o.b.at(0, j);
      o.c.data = o.c.at(i, j);
      if (o.bias.data != nullptr) o.bias.data = o.bias.at(i, j);
      const int64_t m = least(g.m - i, block_m), n = least(g.n - j, block_n);
#if defined(RL_TILES)
      if constexpr (kHalf<E>) {
        if (has_tiles(E::dtype)) {
          tiled<E>(g, o, m, n);
          continue;
        }
      }
#endif
      blocked<E>(g, o, m, n, where);
    }
  });
}

// (A @ B)^T = B^T @ A^T.
inline GemmArgs transposed(const GemmArgs& g) {
  GemmArgs s = g;
  s.m = g.n, s.n = g.m;
  s.a = g.b, s.a_row = g.b_col, s.a_col = g.b_row, s.a_batch = g.b_batch;
  s.b = g.a, s.b_row = g.a_col, s.b_col = g.a_row, s.b_batch = g.a_batch;
  s.c_row = g.c_col, s.c_col = g.c_row;
  s.bias_row = g.bias_col, s.bias_col = g.bias_row;
  return s;
}

template <class E>
void run(const GemmArgs& g) {
  using T = typename E::Compute;
  const bool by_shape = !g_determinism.batch_invariant;  // the way of a product may depend on its size
  if constexpr (kOwnReal<E>) {                           // the shortest way for the commonest small product
    if (by_shape && g.batch_ndim == 0 && g.b_col == 1 && g.c_col == 1 && g.m > 1 && g.n > 1 && is_small<T>(g)) {
      return direct<T>(g.m, g.n, g.k, operands<T>(g, 0), finish_of<T>(g));
    }
  }
  int64_t batch = 1;
  for (int d = 0; d < g.batch_ndim; ++d) batch *= g.batch_sizes[d];
  if (batch == 0 || g.m == 0 || g.n == 0) return;
  // C is to be contiguous along its rows, a single column to be a row.
  const bool turned = g.n == 1 ? g.m != 1 || !by_shape : g.c_col != 1 && g.c_row == 1;
  const GemmArgs plain = turned ? transposed(g) : g;
  if constexpr (kOwnReal<E>) {
    if (!by_shape) return run_blocked<E>(plain, batch);
    if (run_in_place<T>(plain, batch)) return;
    if (kFloating<T> && (run_long_sums<T>(g, batch) || run_long_sums<T>(transposed(g), batch))) return;
    // Few rows times a B that is contiguous along k: transposing A and C is less work than transposing B.
    if (!turned && g.b_row == 1 && g.b_col != 1 && g.a_col == 1 && g.c_col == 1 && is_zero(g.beta) && g.m >= 12 &&
        2 * (g.m * g.k + g.m * g.n) < g.n * g.k) {
      return run_blocked<E>(transposed(g), batch);
    }
  }
  if constexpr (E::parts == 2) {
    if (by_shape && batch == 1 && g.m == 1 && g.n == 1 && g.a_col == 1 && g.b_row == 1) {
      return complex_dot<T>(g, operands<typename E::Stored>(g, 0));
    }
  }
  run_blocked<E>(plain, batch);
}

}  // namespace

void fill_gemm(GemmTable& table) {
  const auto set = [&](DType dtype, void (*fn)(const GemmArgs&)) { table.fn[static_cast<int>(dtype)] = fn; };
  set(DType::UInt8, run<ScalarType<uint8_t, uint32_t>>);
  set(DType::Int8, run<ScalarType<int8_t, uint32_t>>);
  set(DType::Int16, run<ScalarType<int16_t, uint32_t>>);
  set(DType::Int32, run<ScalarType<uint32_t, uint32_t>>);
  set(DType::Int64, run<ScalarType<uint64_t, uint64_t>>);
  set(DType::Float16, run<HalfType>);
  set(DType::BFloat16, run<BHalfType>);
  set(DType::Float32, run<ScalarType<float, float>>);
  set(DType::Float64, run<ScalarType<double, double>>);
  set(DType::Complex64, run<ComplexType<float>>);
  set(DType::Complex128, run<ComplexType<double>>);
}

}  // namespace RL_ISA
}  // namespace rl
