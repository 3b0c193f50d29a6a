// The blocks of reductions, vectorised by the compiler: accumulators are small arrays of independent lanes.
#include <float.h>
#include <math.h>

#include <type_traits>

#include "hypot.h"
#include "reduce.h"
#include "rushlight/half.h"

namespace rl {
namespace RL_ISA {
namespace {

// ---- Stored types, and the few wide types that blocks are made of ----

struct Flag {  // an element of a bool tensor: true where the byte is not zero
  uint8_t byte;
};

template <class T>
struct Complex {
  T re, im;
};
template <class T>
Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <class T>
constexpr DType dtype_of() {
  return sizeof(T) == 1   ? (T(-1) < T(0) ? DType::Int8 : DType::UInt8)
         : sizeof(T) == 2 ? DType::Int16
         : sizeof(T) == 4 ? DType::Int32
                          : DType::Int64;
}
template <>
constexpr DType dtype_of<Flag>() {
  return DType::Bool;
}
template <>
constexpr DType dtype_of<Half>() {
  return DType::Float16;
}
template <>
constexpr DType dtype_of<BHalf>() {
  return DType::BFloat16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::Float32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::Float64;
}
template <>
constexpr DType dtype_of<Complex<float>>() {
  return DType::Complex64;
}
template <>
constexpr DType dtype_of<Complex<double>>() {
  return DType::Complex128;
}

template <class W>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;
template <>
constexpr bool kIsFloat<double> = true;

float convert(Half v, float) { return to_float(v); }
float convert(BHalf v, float) { return to_float(v); }
template <class W>
W convert(Flag v, W) {
  return v.byte != 0;
}
float convert(Complex<float> v, float) { return hypot(v.re, v.im); }
double convert(Complex<double> v, double) { return hypot(v.re, v.im); }
template <class T, class W>
W convert(T v, W) {
  return static_cast<W>(v);
}

template <class T, class W>
void load(const char* in, int64_t stride, int64_t n, void* out) {
  W* w = static_cast<W*>(out);
  if (stride == sizeof(T)) {
    const T* v = reinterpret_cast<const T*>(in);
    if constexpr (std::is_same_v<T, W>) {
      __builtin_memcpy(w, v, static_cast<size_t>(n) * sizeof(T));
    } else if constexpr (dtype_of<T>() == DType::Float16 || dtype_of<T>() == DType::BFloat16) {
      widen(v, w, n);
    } else {
      for (int64_t i = 0; i < n; ++i) w[i] = convert(v[i], W{});
    }
  } else {
    for (int64_t i = 0; i < n; ++i) w[i] = convert(*reinterpret_cast<const T*>(in + i * stride), W{});
  }
}

template <class W, class T>
void store(W v, T* out) {
  *out = static_cast<T>(v);
}
template <class W>
void store(W v, Flag* out) {
  out->byte = v != 0;
}
void store(float v, Half* out) { *out = to_half(v); }
void store(float v, BHalf* out) { *out = to_bhalf(v); }

// ---- Reductions that are a map and an associative merge ----

template <class T>
struct SumOf {
  using W = T;
  using Acc = T;
  static Acc identity() { return Acc{}; }
  static Acc map(W v, double) { return v; }
  static Acc merge(Acc a, Acc b) { return a + b; }
  static Acc finish(Acc a, const ReduceParams& p) { return divided(a, p.divisor); }

 private:
  static int64_t divided(int64_t a, double) { return a; }
  static float divided(float a, double by) { return a / static_cast<float>(by); }
  static double divided(double a, double by) { return a / by; }
  template <class R>
  static Complex<R> divided(Complex<R> a, double by) {
    return {a.re / static_cast<R>(by), a.im / static_cast<R>(by)};
  }
};

template <class T>
struct SumOfInts : SumOf<int64_t> {
  using W = T;
};

struct SumOfBHalf : SumOf<float> {  // whose conversion the compiler vectorises in place
  using W = BHalf;
  static float map(BHalf v, double) { return to_float(v); }
};

template <class T>
struct NanSumOf : SumOf<T> {
  static T map(T v, double) { return v == v ? v : T(0); }
};

template <class T>
struct ProdOf {
  using W = T;
  using Acc = T;
  static Acc identity() { return {1}; }
  static Acc map(W v, double) { return v; }
  static Acc merge(Acc a, Acc b) { return a * b; }
  static Acc finish(Acc a, const ReduceParams&) { return a; }
};

template <class T>
struct ProdOfInts {  // unsigned, so that it wraps
  using W = T;
  using Acc = uint64_t;
  static Acc identity() { return 1; }
  static Acc map(W v, double) { return static_cast<Acc>(static_cast<int64_t>(v)); }
  static Acc merge(Acc a, Acc b) { return a * b; }
  static Acc finish(Acc a, const ReduceParams&) { return a; }
};

template <class T, bool kMax>
struct ExtremeOf {
  using W = T;
  using Acc = T;
  static T identity() {
    if constexpr (kIsFloat<T>) {
      return kMax ? -static_cast<T>(INFINITY) : static_cast<T>(INFINITY);
    } else {
      const T least = T(-1) < T(0) ? static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1)) : T(0);
      return kMax ? least : static_cast<T>(~least);
    }
  }
  static T map(T v, double) { return v; }
  static bool better(T a, T b) { return (kMax ? a > b : a < b) | (a != a); }
  static T merge(T a, T b) { return better(b, a) ? b : a; }  // NaN wins
  static T finish(T a, const ReduceParams&) { return a; }
};

template <class T>
bool nonzero(T v) {
  return v != 0;
}
template <class T>
bool nonzero(Complex<T> v) {
  return (v.re != 0) | (v.im != 0);
}

template <class T>
struct Norm1Of : SumOf<T> {
  static T map(T v, double) { return v < 0 ? -v : v; }
};

template <class T>
struct Norm2Of : SumOf<double> {  // the squares of floats cannot overflow in double
  using W = T;
  static double map(T v, double) { return static_cast<double>(v) * v; }
  static T finish(double a, const ReduceParams&) { return static_cast<T>(sqrt(a)); }
};

template <class T, bool kMax>
struct NormInfOf : ExtremeOf<T, kMax> {
  static T identity() { return kMax ? T(0) : static_cast<T>(INFINITY); }
  static T map(T v, double) { return v < 0 ? -v : v; }
};

template <class T>
struct NormPOf : SumOf<double> {
  using W = T;
  static double map(T v, double p) { return pow(fabs(static_cast<double>(v)), p); }
  static T finish(double a, const ReduceParams& p) { return static_cast<T>(pow(a, 1 / p.p)); }
};

template <class Op>
typename Op::Acc fold(const typename Op::W* v, int64_t n, double p) {
  using Acc = typename Op::Acc;
  // More lanes than the compiler unrolls: it vectorises the loop over them instead.
  constexpr int kLanes = sizeof(Acc) == 16 ? 8 : static_cast<int>(256 / sizeof(Acc));
  if (n < 16) {
    Acc acc = Op::identity();
    for (int64_t i = 0; i < n; ++i) acc = Op::merge(acc, Op::map(v[i], p));
    return acc;
  }
  Acc lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = Op::identity();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = Op::merge(lanes[l], Op::map(v[i + l], p));
  }
  const int rest = static_cast<int>(n - i);
  for (int l = 0; l < rest; ++l) lanes[l] = Op::merge(lanes[l], Op::map(v[i + l], p));
  for (int half = kLanes / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = Op::merge(lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

template <class T>
struct SquaresOf : SumOf<T> {  // in their own type
  static T map(T v, double) { return v * v; }
};

// Sums of floats, or of their squares, in vectors, which the compiler would take apart at the ends of a row.
template <class Op>
struct Lanes {
  using T = typename Op::W;
  using Acc = typename Op::Acc;
  static constexpr int kWidth = 64 / sizeof(Acc);
  typedef T Input __attribute__((vector_size(kWidth * sizeof(T))));
  typedef Acc Vector __attribute__((vector_size(64)));
  typedef std::conditional_t<sizeof(Acc) == 4, int32_t, int64_t> Index;
  typedef Index Indices __attribute__((vector_size(64)));

  static Vector mapped(const T* v) {
    Input in;
    __builtin_memcpy(&in, v, sizeof in);
    const Vector x = __builtin_convertvector(in, Vector);
    return std::is_same_v<Op, SumOf<T>> ? x : x * x;
  }

  static Indices counted() {
    Indices lane;
    for (int k = 0; k < kWidth; ++k) lane[k] = k;
    return lane;
  }

  // One vector of sums of n >= kWidth elements.
  static Vector of(const T* v, int64_t n) {
    Vector sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      for (int k = 0; k < 4; ++k) sums[k] += mapped(v + i + k * kWidth);
    }
    for (; i + kWidth <= n; i += kWidth) sums[0] += mapped(v + i);
    // The last vector once more, without what is counted already.
    if (i < n) sums[1] += counted() >= static_cast<Index>(kWidth - (n - i)) ? mapped(v + n - kWidth) : Vector{};
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  static Acc folded(Vector sum) {
    const Indices lane = counted();
    for (Index half = kWidth / 2; half >= 1; half /= 2) sum += __builtin_shuffle(sum, (lane + half) & (kWidth - 1));
    return sum[0];
  }

  // `folded` of kWidth vectors at once, by halves: the sums of two vectors make one.
  template <int kHalf = kWidth / 2>
  static Vector folded_each(Vector* sums) {
    const Indices lane = counted(), within = lane % (kWidth / 2);
    const Indices from = within / kHalf * (2 * kHalf) + within % kHalf + lane / (kWidth / 2) * kWidth;
    for (int k = 0; k < kHalf; ++k) {
      const Vector a = sums[2 * k], b = sums[2 * k + 1];
      sums[k] = __builtin_shuffle(a, b, from) + __builtin_shuffle(a, b, from + kHalf);
    }
    if constexpr (kHalf > 1) {
      return folded_each<kHalf / 2>(sums);
    } else {
      return sums[0];
    }
  }
};

template <class Op>
typename Op::Acc sum_of(const typename Op::W* v, int64_t n) {
  return n < Lanes<Op>::kWidth ? fold<Op>(v, n, 0) : Lanes<Op>::folded(Lanes<Op>::of(v, n));
}

// Squares of floats are summed as floats, so many at a time, where none that counts can have left their range.
constexpr int64_t kFloatSquares = 1024;
bool in_range(float sum) { return (sum > 0x1p-80f) & (sum < INFINITY); }

double sum_of_squares(const float* v, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kFloatSquares) {
    const int64_t m = n - i < kFloatSquares ? n - i : kFloatSquares;
    const float part = sum_of<SquaresOf<float>>(v + i, m);
    sum += in_range(part) ? part : sum_of<Norm2Of<float>>(v + i, m);
  }
  return sum;
}

template <class Op, class... Those>
constexpr bool kIsAny = (std::is_same_v<Op, Those> || ...);

template <class Op>
void row(const void* v, int64_t n, int64_t, void* acc, const ReduceParams& params) {
  using W = typename Op::W;
  if constexpr (std::is_same_v<Op, Norm2Of<float>>) {
    *static_cast<double*>(acc) = sum_of_squares(static_cast<const float*>(v), n);
  } else if constexpr (kIsAny<Op, SumOf<float>, SumOf<double>, Norm2Of<double>>) {
    *static_cast<typename Op::Acc*>(acc) = sum_of<Op>(static_cast<const W*>(v), n);
  } else {
    *static_cast<typename Op::Acc*>(acc) = fold<Op>(static_cast<const W*>(v), n, params.p);
  }
}

template <class W>
const W* row_of(const void* v, int64_t r, int64_t stride) {
  return reinterpret_cast<const W*>(static_cast<const char*>(v) + r * stride);
}

// Many short rows: the lanes of several are folded together.
template <class Op, class Partial = Op>
void sum_rows(const void* v, int64_t rows, int64_t row_stride, int64_t n, void* out, const ReduceParams& params) {
  using W = typename Op::W;
  using L = Lanes<Partial>;
  auto* acc = static_cast<typename Op::Acc*>(out);
  int64_t r = 0;
  if (n >= L::kWidth && n <= kFloatSquares) {
    for (; r + L::kWidth <= rows; r += L::kWidth) {
      typename L::Vector sums[L::kWidth];
      for (int k = 0; k < L::kWidth; ++k) sums[k] = L::of(row_of<W>(v, r + k, row_stride), n);
      const typename L::Vector folded = L::folded_each(sums);
      bool good = true;
      if constexpr (!std::is_same_v<Op, Partial>) {
        for (int k = 0; k < L::kWidth; ++k) good &= in_range(folded[k]);
      }
      for (int k = 0; k < L::kWidth; ++k) acc[r + k] = folded[k];
      if (good) continue;
      for (int k = 0; k < L::kWidth; ++k) row<Op>(row_of<W>(v, r + k, row_stride), n, 0, acc + r + k, params);
    }
  }
  for (; r < rows; ++r) row<Op>(row_of<W>(v, r, row_stride), n, 0, acc + r, params);
}

template <class Op>
void columns(const void* v, int64_t n, int64_t row_stride, int64_t m, int64_t, void* out, const ReduceParams& params) {
  using Acc = typename Op::Acc;
  using W = typename Op::W;
  const double p = params.p;
  Acc* __restrict acc = static_cast<Acc*>(out);
  for (int64_t j = 0; j < m; ++j) acc[j] = Op::identity();
  for (int64_t r = 0; r < n; ++r) {
    const W* a = row_of<W>(v, r, row_stride);
    for (int64_t j = 0; j < m; ++j) acc[j] = Op::merge(acc[j], Op::map(a[j], p));
  }
}

template <class Op>
void merge(void* acc, const void* later, int64_t m) {
  auto* __restrict a = static_cast<typename Op::Acc*>(acc);
  const auto* b = static_cast<const typename Op::Acc*>(later);
  for (int64_t j = 0; j < m; ++j) a[j] = Op::merge(a[j], b[j]);
}

template <class Op, class Out>
void finish(const void* acc, int64_t m, char* out, char*, const ReduceParams& params) {
  const auto* __restrict a = static_cast<const typename Op::Acc*>(acc);
  Out* __restrict results = reinterpret_cast<Out*>(out);
  if constexpr (std::is_same_v<Op, Norm2Of<float>> && std::is_same_v<Out, float>) {  // roots of floats, where they do
    int32_t left_range = 0;
    for (int64_t j = 0; j < m; ++j) {
      const float sum = static_cast<float>(a[j]);
      left_range += in_range(sum) ? 0 : 1;
      results[j] = sqrtf(sum);
    }
    if (left_range == 0) return;
  }
  for (int64_t j = 0; j < m; ++j) store(Op::finish(a[j], params), results + j);
}

// ---- Counts: in integers as wide as the elements, which the bounded size of a block allows ----

template <class W>
auto counter() {
  if constexpr (sizeof(W) == 1) {
    return uint8_t{};
  } else if constexpr (sizeof(W) == 2) {
    return uint16_t{};
  } else if constexpr (sizeof(W) == 4) {
    return uint32_t{};
  } else {
    return uint64_t{};
  }
}

template <class W>
void count_row(const void* in, int64_t n, int64_t, void* acc, const ReduceParams&) {
  constexpr int kLanes = 64;
  static_assert(kReduceRow / kLanes < 255, "a lane counts in one byte");
  const W* v = static_cast<const W*>(in);
  decltype(counter<W>()) lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += nonzero(v[i + l]);
  }
  int64_t total = 0;
  for (; i < n; ++i) total += nonzero(v[i]);
  for (int l = 0; l < kLanes; ++l) total += static_cast<int64_t>(lanes[l]);
  *static_cast<int64_t*>(acc) = total;
}

template <class W>
void count_columns(const void* in, int64_t n, int64_t row_stride, int64_t m, int64_t, void* out, const ReduceParams&) {
  constexpr int64_t kTile = 256;
  static_assert(kReduceRows < 255, "a column counts in one byte");
  auto* acc = static_cast<int64_t*>(out);
  for (int64_t j0 = 0; j0 < m; j0 += kTile) {
    const int64_t k = m - j0 < kTile ? m - j0 : kTile;
    decltype(counter<W>()) counts[kTile] = {};
    for (int64_t r = 0; r < n; ++r) {
      const W* v = row_of<W>(in, r, row_stride) + j0;
      for (int64_t j = 0; j < k; ++j) counts[j] += nonzero(v[j]);
    }
    for (int64_t j = 0; j < k; ++j) acc[j0 + j] = static_cast<int64_t>(counts[j]);
  }
}

// ---- Variance: two passes over a block in the cache, blocks merged by Chan, Golub and LeVeque (1979) ----

constexpr double kHugeUnit = 0x1p600, kTinyUnit = 0x1p-600;

struct Moments {
  double n, mean, m2;
  double unit = kTinyUnit;  // m2 is in units of its square, which doubles may not hold
};

// What squares of that size are measured in.
inline double unit_of(double size) { return size > 0x1p500 ? kHugeUnit : size < 0x1p-400 ? kTinyUnit : 1; }

// Whether the sum of n squares kept its digits.
template <class W>
inline bool in_range(double squares, double n) {
  return squares > n * (sizeof(W) == 4 ? 0x1p-100 : 0x1p-900) && squares <= DBL_MAX;
}

// The moments of a block whose squares leave the range of its type.
template <class W>
Moments far_moments(const W* first, int64_t n, int64_t stride) {
  const auto at = [&](int64_t i) { return static_cast<double>(*row_of<W>(first, i, stride)); };
  const double count = static_cast<double>(n);
  double top = 0;
  bool constant = true;
  for (int64_t i = 0; i < n; ++i) {
    top = fmax(top, fabs(at(i)));
    constant &= at(i) == at(0);
  }
  if (constant && top <= DBL_MAX) return {count, n == 0 ? 0 : at(0), 0};
  const double unit = unit_of(top), factor = 1 / unit;
  double mean = 0, sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) mean += at(i) * factor;
  mean /= count;
  for (int64_t i = 0; i < n; ++i) {
    const double d = at(i) * factor - mean;
    sum += d;
    squares += d * d;
  }
  return {count, (mean + sum / count) * unit, squares - sum * sum / count, unit};
}

template <class W>
void var_row(const void* in, int64_t n, int64_t, void* out, const ReduceParams&) {
  constexpr int kLanes = 32;  // more than the compiler unrolls: it vectorises the loop over them instead
  const W* v = static_cast<const W*>(in);
  const double count = static_cast<double>(n);
  const W shift = n == 0 ? 0 : static_cast<W>(fold<SumOf<W>>(v, n, 0) / count);
  W s[kLanes] = {}, q[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const W d = v[i + l] - shift;
      s[l] += d;
      q[l] += d * d;
    }
  }
  for (; i < n; ++i) {
    const W d = v[i] - shift;
    s[i % kLanes] += d;
    q[i % kLanes] += d * d;
  }
  double sum = 0, squares = 0;
  for (int l = 0; l < kLanes; ++l) {
    sum += s[l];
    squares += q[l];
  }
  *static_cast<Moments*>(out) = in_range<W>(squares, count)
                                    ? Moments{count, shift + sum / count, squares - sum * sum / count, 1}
                                    : far_moments(v, n, sizeof(W));
}

template <class W>
void var_columns(const void* in, int64_t n, int64_t row_stride, int64_t m, int64_t, void* out, const ReduceParams&) {
  constexpr int64_t kTile = 128;
  auto* acc = static_cast<Moments*>(out);
  const double count = static_cast<double>(n);
  for (int64_t j0 = 0; j0 < m; j0 += kTile) {
    const int64_t k = m - j0 < kTile ? m - j0 : kTile;
    W shift[kTile] = {}, sum[kTile] = {}, squares[kTile] = {};
    for (int64_t r = 0; r < n; ++r) {
      const W* v = row_of<W>(in, r, row_stride) + j0;
      for (int64_t j = 0; j < k; ++j) shift[j] += v[j];
    }
    for (int64_t j = 0; j < k; ++j) shift[j] /= static_cast<W>(n);
    for (int64_t r = 0; r < n; ++r) {
      const W* v = row_of<W>(in, r, row_stride) + j0;
      for (int64_t j = 0; j < k; ++j) {
        const W d = v[j] - shift[j];
        sum[j] += d;
        squares[j] += d * d;
      }
    }
    for (int64_t j = 0; j < k; ++j) {
      const double s = sum[j];
      acc[j0 + j] = in_range<W>(squares[j], count) ? Moments{count, shift[j] + s / count, squares[j] - s * s / count, 1}
                                                   : far_moments(static_cast<const W*>(in) + j0 + j, n, row_stride);
    }
  }
}

void var_merge(void* acc, const void* later, int64_t m) {
  auto* a = static_cast<Moments*>(acc);
  const auto* b = static_cast<const Moments*>(later);
  for (int64_t j = 0; j < m; ++j) {
    const double n = a[j].n + b[j].n, gap = b[j].mean - a[j].mean;
    if (n == 0) continue;
    const double unit = fmax(unit_of(fabs(gap)), fmax(a[j].unit, b[j].unit));
    const auto squares = [&](const Moments& x) {
      return x.unit == unit ? x.m2 : x.m2 * (x.unit / unit) * (x.unit / unit);
    };
    a[j].m2 = squares(a[j]) + squares(b[j]) + gap / unit * (gap / unit) * (a[j].n * (b[j].n / n));
    a[j].mean += gap * (b[j].n / n);
    a[j].n = n;
    a[j].unit = unit;
  }
}

template <class T, class W>
void var_finish(const void* acc, int64_t m, char* out, char* second, const ReduceParams& params) {
  const auto* a = static_cast<const Moments*>(acc);
  for (int64_t j = 0; j < m; ++j) {
    const double degrees = a[j].n - params.correction;
    const double var = a[j].m2 / (degrees > 0 ? degrees : 0.0);
    const double spread = params.square_root ? sqrt(var) * a[j].unit : var * a[j].unit * a[j].unit;
    store(static_cast<W>(spread), reinterpret_cast<T*>(out) + j);
    if (second != nullptr) {
      store(static_cast<W>(a[j].n == 0 ? static_cast<double>(NAN) : a[j].mean), reinterpret_cast<T*>(second) + j);
    }
  }
}

// ---- The place of the extreme ----

template <class W>
struct Found {
  W value;
  int64_t index;
};

template <int kSize>
struct IntOf;
template <>
struct IntOf<4> {
  using type = int32_t;
};
template <>
struct IntOf<8> {
  using type = int64_t;
};

// The first place of `value` (of any NaN if it is one) among n; it is there.
template <class W>
int64_t first_place(const W* v, int64_t n, W value) {
  constexpr int kLanes = 64;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    W hit = 0;
    for (int l = 0; l < kLanes; ++l) hit += ((v[i + l] == value) | (v[i + l] != v[i + l])) ? W(1) : W(0);
    if (hit != 0) break;
  }
  while (!(v[i] == value || v[i] != v[i])) ++i;
  return i;
}

template <class W, bool kMax>
void arg_row(const void* in, int64_t n, int64_t start, void* out, const ReduceParams&) {
  using Op = ExtremeOf<W, kMax>;
  const W* v = static_cast<const W*>(in);
  const W value = fold<Op>(v, n, 0);
  *static_cast<Found<W>*>(out) = {value, n == 0 ? start : start + first_place(v, n, value)};
}

template <class W, bool kMax>
void arg_columns(const void* in, int64_t n, int64_t row_stride, int64_t m, int64_t start, void* out,
                 const ReduceParams&) {
  using Op = ExtremeOf<W, kMax>;
  using I = typename IntOf<sizeof(W)>::type;  // as wide as the values, for the vectoriser
  constexpr int64_t kTile = 128;
  auto* acc = static_cast<Found<W>*>(out);
  for (int64_t j0 = 0; j0 < m; j0 += kTile) {
    const int64_t k = m - j0 < kTile ? m - j0 : kTile;
    W best[kTile];
    I place[kTile];
    for (int64_t j = 0; j < k; ++j) {
      best[j] = n > 0 ? row_of<W>(in, 0, row_stride)[j0 + j] : Op::identity();
      place[j] = 0;
    }
    for (int64_t r = 1; r < n; ++r) {
      const W* v = row_of<W>(in, r, row_stride) + j0;
      const I here = static_cast<I>(r);
      for (int64_t j = 0; j < k; ++j) {
        const bool take = Op::better(v[j], best[j]) & (best[j] == best[j]);
        best[j] = take ? v[j] : best[j];
        place[j] = take ? here : place[j];
      }
    }
    for (int64_t j = 0; j < k; ++j) acc[j0 + j] = {best[j], start + place[j]};
  }
}

template <class W, bool kMax>
void arg_merge(void* acc, const void* later, int64_t m) {
  auto* a = static_cast<Found<W>*>(acc);
  const auto* b = static_cast<const Found<W>*>(later);
  for (int64_t j = 0; j < m; ++j) {
    if (ExtremeOf<W, kMax>::better(b[j].value, a[j].value) && a[j].value == a[j].value) a[j] = b[j];
  }
}

template <class T, class W>
void arg_finish(const void* acc, int64_t m, char* out, char* second, const ReduceParams&) {
  const auto* a = static_cast<const Found<W>*>(acc);
  for (int64_t j = 0; j < m; ++j) reinterpret_cast<int64_t*>(out)[j] = a[j].index;
  if (second == nullptr) return;
  for (int64_t j = 0; j < m; ++j) store(a[j].value, reinterpret_cast<T*>(second) + j);
}

// ---- The table ----

template <class T, class W>
ReduceKernel& entry(ReduceTable& table, Reduce reduce) {
  ReduceKernel& k = table.kernels[static_cast<int>(reduce)][static_cast<int>(dtype_of<T>())];
  k.wide_size = sizeof(W);
  k.in = dtype_of<T>();
  k.direct = sizeof(T) == sizeof(W) && k.in != DType::Bool;
  k.load = load<T, W>;
  return k;
}

template <class T, class Op, class Out>
ReduceKernel& add(ReduceTable& table, Reduce reduce) {
  ReduceKernel& k = entry<T, typename Op::W>(table, reduce);
  k.acc_size = sizeof(typename Op::Acc);
  k.out = dtype_of<Out>();
  k.row = row<Op>;
  k.rows = nullptr;  // an entry that takes the place of another keeps nothing of it
  if constexpr (kIsAny<Op, SumOf<float>, SumOf<double>, Norm2Of<double>>) k.rows = sum_rows<Op>;
  if constexpr (std::is_same_v<Op, Norm2Of<float>>) k.rows = sum_rows<Op, SquaresOf<float>>;
  k.columns = columns<Op>;
  k.merge = merge<Op>;
  k.finish = finish<Op, Out>;
  return k;
}

template <class T, class W, class Out>
ReduceKernel& add_count(ReduceTable& table, Reduce reduce) {
  ReduceKernel& k = entry<T, W>(table, reduce);
  k.acc_size = sizeof(int64_t);
  k.out = dtype_of<Out>();
  k.row = count_row<W>;
  k.columns = count_columns<W>;
  k.merge = merge<SumOf<int64_t>>;
  k.finish = finish<SumOf<int64_t>, Out>;
  return k;
}

// Any and All are questions about the number of elements that are not zero.
template <class T, class W>
void add_counts(ReduceTable& table) {
  add_count<T, W, int64_t>(table, Reduce::CountNonzero);
  add_count<T, W, Flag>(table, Reduce::Any);
  add_count<T, W, Flag>(table, Reduce::All).finish = [](const void* acc, int64_t m, char* out, char*,
                                                        const ReduceParams& params) {
    for (int64_t j = 0; j < m; ++j) out[j] = static_cast<const int64_t*>(acc)[j] == params.count;
  };
}

template <class T, class W, class Narrow, bool kMax>
void add_extreme(ReduceTable& table) {
  add<T, ExtremeOf<Narrow, kMax>, T>(table, kMax ? Reduce::Amax : Reduce::Amin);
  ReduceKernel& k = entry<T, W>(table, kMax ? Reduce::ArgMax : Reduce::ArgMin);
  k.acc_size = sizeof(Found<W>);
  k.out = DType::Int64;
  k.positional = true;
  k.cost = 2;
  k.row = arg_row<W, kMax>;
  k.columns = arg_columns<W, kMax>;
  k.merge = arg_merge<W, kMax>;
  k.finish = arg_finish<T, W>;
}

// `Narrow` is as wide as T where that pays.
template <class T, class W, class Narrow = W>
void add_int(ReduceTable& table) {
  add<T, SumOfInts<W>, int64_t>(table, Reduce::Sum);
  add<T, ProdOfInts<W>, int64_t>(table, Reduce::Prod);
  add_counts<T, Narrow>(table);
  add_extreme<T, W, Narrow, true>(table);
  add_extreme<T, W, Narrow, false>(table);
}

template <class T, class W, class Out>
void add_norms(ReduceTable& table) {
  add<T, Norm1Of<W>, Out>(table, Reduce::Norm1);
  add<T, Norm2Of<W>, Out>(table, Reduce::Norm2);
  add<T, NormInfOf<W, true>, Out>(table, Reduce::NormInf);
  add<T, NormInfOf<W, false>, Out>(table, Reduce::NormMinusInf);
  add<T, NormPOf<W>, Out>(table, Reduce::NormP).cost = 100;
}

template <class T, class W>
void add_float(ReduceTable& table) {
  add<T, SumOf<W>, T>(table, Reduce::Sum);
  add<T, NanSumOf<W>, T>(table, Reduce::NanSum);
  add<T, ProdOf<W>, T>(table, Reduce::Prod);
  add_counts<T, W>(table);
  add_extreme<T, W, W, true>(table);
  add_extreme<T, W, W, false>(table);
  add_norms<T, W, T>(table);
  ReduceKernel& k = entry<T, W>(table, Reduce::Var);
  k.acc_size = sizeof(Moments);
  k.out = k.in;
  k.cost = 2;
  k.row = var_row<W>;
  k.columns = var_columns<W>;
  k.merge = var_merge;
  k.finish = var_finish<T, W>;
}

template <class R>
void add_complex(ReduceTable& table) {
  using T = Complex<R>;
  add<T, SumOf<T>, T>(table, Reduce::Sum);
  add<T, ProdOf<T>, T>(table, Reduce::Prod);
  add_counts<T, T>(table);
  add_norms<T, R, R>(table);  // of the magnitudes: that is what a conversion to a real type loads
}

}  // namespace

void fill_reduce(ReduceTable& table) {
  add_int<uint8_t, int32_t, uint8_t>(table);
  add_int<int8_t, int32_t, int8_t>(table);
  add_int<Flag, int32_t, uint8_t>(table);
  add_int<int16_t, int32_t, int16_t>(table);
  add_int<int32_t, int32_t>(table);
  add_int<int64_t, int64_t>(table);
  add_count<Flag, uint8_t, int64_t>(table, Reduce::Sum);
  add_float<Half, float>(table);
  add_float<BHalf, float>(table);
  add<BHalf, SumOfBHalf, BHalf>(table, Reduce::Sum);
  add_float<float, float>(table);
  add_float<double, double>(table);
  add_complex<float>(table);
  add_complex<double>(table);
}

}  // namespace RL_ISA
}  // namespace rl
