// Small matrices, one in each lane: the algorithms are the textbook's, branches become selections.
#include <rushlight/simd.h>

#include "lanes.h"

namespace rl {
namespace RL_ISA {
namespace {

constexpr int kN = static_cast<int>(kLaneOrder), kElements = kN * kN;

template <class R>
using Mask = decltype(Vec<R>{} < Vec<R>{});

template <class M>
bool any(M mask) {
  constexpr int n = sizeof(M) / 8;
  int64_t parts[n], all = 0;
  std::memcpy(parts, &mask, sizeof mask);
  for (int i = 0; i < n; ++i) all |= parts[i];
  return all != 0;
}
template <class R>
Vec<R> root(Vec<R> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(R) == 8)
    return _mm512_maskz_sqrt_pd(0xff, x);
  else
    return _mm512_maskz_sqrt_ps(0xffff, x);
#elif defined(__AVX2__)
  if constexpr (sizeof(R) == 8)
    return _mm256_sqrt_pd(x);
  else
    return _mm256_sqrt_ps(x);
#else
  for (int i = 0; i < kLanes<R>; ++i) x[i] = sizeof(R) == 8 ? __builtin_sqrt(x[i]) : __builtin_sqrtf(x[i]);
  return x;
#endif
}
template <class R>
Vec<R> magnitude(Vec<R> x) {
  return x < 0 ? -x : x;
}
template <class V>
V larger(V a, V b) {
  return a > b ? a : b;
}
template <class R>
constexpr R kEps = sizeof(R) == 8 ? R(2.220446049250313e-16) : R(1.1920929e-7);
template <class R>
constexpr R kTiny = sizeof(R) == 8 ? R(2.2250738585072014e-308) : R(1.17549435e-38);

// The largest power of two that is not above x > 0; 1 where that is not normal.
template <class R>
Vec<R> power_of_two(Vec<R> x) {
  typedef IntOf<R> Bits __attribute__((vector_size(kVecBytes)));
  Bits bits;
  std::memcpy(&bits, &x, sizeof x);
  bits &= sizeof(R) == 8 ? static_cast<IntOf<R>>(0x7ff0000000000000) : static_cast<IntOf<R>>(0x7f800000);
  Vec<R> power;
  std::memcpy(&power, &bits, sizeof x);
  return x >= kTiny<R> * 4 && x < 1 / (kTiny<R> * 4) ? power : splat(R(1));
}

// ---- an element of every matrix: real or complex

template <class R>
struct RealOnes {
  using T = R;
  using V = Vec<R>;
  static constexpr int kParts = 1;
  V re;
};
template <class R>
struct ComplexOnes {
  using T = std::complex<R>;
  using V = Vec<R>;
  static constexpr int kParts = 2;
  V re, im;
};

#define RL_FOR_ONES  \
  template <class R> \
  RL_INLINE inline
RL_FOR_ONES RealOnes<R> operator+(RealOnes<R> a, RealOnes<R> b) { return {a.re + b.re}; }
RL_FOR_ONES RealOnes<R> operator-(RealOnes<R> a, RealOnes<R> b) { return {a.re - b.re}; }
RL_FOR_ONES RealOnes<R> operator*(RealOnes<R> a, RealOnes<R> b) { return {a.re * b.re}; }
RL_FOR_ONES RealOnes<R> operator*(RealOnes<R> a, Vec<R> b) { return {a.re * b}; }
RL_FOR_ONES RealOnes<R> conj(RealOnes<R> a) { return a; }
RL_FOR_ONES Vec<R> square(RealOnes<R> a) { return a.re * a.re; }
RL_FOR_ONES Vec<R> size(RealOnes<R> a) { return magnitude<R>(a.re); }
RL_FOR_ONES Vec<R> absolute(RealOnes<R> a) { return magnitude<R>(a.re); }
RL_FOR_ONES RealOnes<R> reciprocal(RealOnes<R> a) { return {1 / a.re}; }
RL_FOR_ONES Vec<R> imaginary(RealOnes<R>) { return Vec<R>{}; }
RL_FOR_ONES RealOnes<R> pick(Mask<R> m, RealOnes<R> a, RealOnes<R> b) { return {m ? a.re : b.re}; }

RL_FOR_ONES ComplexOnes<R> operator+(ComplexOnes<R> a, ComplexOnes<R> b) { return {a.re + b.re, a.im + b.im}; }
RL_FOR_ONES ComplexOnes<R> operator-(ComplexOnes<R> a, ComplexOnes<R> b) { return {a.re - b.re, a.im - b.im}; }
RL_FOR_ONES ComplexOnes<R> operator*(ComplexOnes<R> a, ComplexOnes<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
RL_FOR_ONES ComplexOnes<R> operator*(ComplexOnes<R> a, Vec<R> b) { return {a.re * b, a.im * b}; }
RL_FOR_ONES ComplexOnes<R> conj(ComplexOnes<R> a) { return {a.re, -a.im}; }
RL_FOR_ONES Vec<R> square(ComplexOnes<R> a) { return a.re * a.re + a.im * a.im; }
// LAPACK's measure of pivots, and the largest part, which does not overflow.
RL_FOR_ONES Vec<R> size(ComplexOnes<R> a) { return magnitude<R>(a.re) + magnitude<R>(a.im); }
RL_FOR_ONES Vec<R> absolute(ComplexOnes<R> a) {
  const Vec<R> scale = larger(magnitude<R>(a.re), magnitude<R>(a.im)), x = a.re / scale, y = a.im / scale;
  return scale > 0 ? scale * root<R>(x * x + y * y) : scale;
}
RL_FOR_ONES ComplexOnes<R> reciprocal(ComplexOnes<R> a) {
  const Vec<R> scale = larger(magnitude<R>(a.re), magnitude<R>(a.im)), x = a.re / scale, y = a.im / scale;
  const Vec<R> factor = 1 / scale / (x * x + y * y);
  return {x * factor, -y * factor};
}
RL_FOR_ONES Vec<R> imaginary(ComplexOnes<R> a) { return a.im; }
RL_FOR_ONES ComplexOnes<R> pick(Mask<R> m, ComplexOnes<R> a, ComplexOnes<R> b) {
  return {m ? a.re : b.re, m ? a.im : b.im};
}
#undef RL_FOR_ONES

template <class S>
S from_real(typename S::V x) {
  S s{};
  s.re = x;
  return s;
}

// ---- memory: the elements of kLanes matrices, each a row of kLanes numbers

template <class S, class R>
struct Block {
  static constexpr int kWidth = kLanes<R>;
  S a[kElements];

  // `rest` matrices are there, the others are taken for identities of `n` columns.
  void load(const R* from, int64_t elements, int64_t rest, int64_t n) {
    const int64_t length = elements * S::kParts;
    auto* rows = reinterpret_cast<R*>(a);
    if (rest >= kWidth) return transpose(from, length, kWidth, length, rows, kWidth);
    for (int64_t e = 0; e < length; ++e)
      for (int64_t i = 0; i < kWidth; ++i)
        rows[e * kWidth + i] = i < rest ? from[i * length + e] : R(e % S::kParts == 0 && e / S::kParts % (n + 1) == 0);
  }
  void store(R* to, int64_t elements, int64_t rest) const {
    const int64_t length = elements * S::kParts;
    const auto* rows = reinterpret_cast<const R*>(a);
    if (rest >= kWidth) return transpose(rows, kWidth, length, kWidth, to, length);
    for (int64_t i = 0; i < rest; ++i)
      for (int64_t e = 0; e < length; ++e) to[i * length + e] = rows[e * kWidth + i];
  }
  // The (m, n) matrices by columns.
  void store_columns(R* to, int64_t m, int64_t n, int64_t rest) const {
    Block turned;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) turned.a[j * m + i] = a[i * n + j];
    turned.store(to, m * n, rest);
  }
  S& operator()(int64_t i) { return a[i]; }
};

// body(offset of the block in matrices, how many of them are there)
template <class R, class F>
void blocks(int64_t count, const F& body) {
  for (int64_t i = 0; i < count; i += kLanes<R>) body(i, least(count - i, kLanes<R>));
}

template <class R>
void store_info(int32_t* to, Mask<R> info, int64_t rest) {
  IntOf<R> lanes[kLanes<R>];
  std::memcpy(lanes, &info, sizeof info);
  for (int64_t i = 0; i < rest; ++i) to[i] = static_cast<int32_t>(lanes[i]);
}

template <class S, class R>
struct Small {
  using T = typename S::T;
  using V = Vec<R>;
  using M = Mask<R>;
  using B = Block<S, R>;
  static const R* parts(const T* p) { return reinterpret_cast<const R*>(p); }
  static R* parts(T* p) { return reinterpret_cast<R*>(p); }

  // ---- LU with partial pivoting; the rows of b (n, k) are swapped and eliminated along

  struct Factors {
    S reciprocals[kN];
    V sign = splat(R(1));
    M info{};
  };

  static void factor(S* a, int64_t n, S* b, int64_t k, Factors* f) {
    for (int64_t j = 0; j < n; ++j) {
      V best = size(a[j * n + j]);
      M row = M{} + static_cast<IntOf<R>>(j);
      for (int64_t i = j + 1; i < n; ++i) {
        const V other = size(a[i * n + j]);
        const M is_larger = other > best;
        best = is_larger ? other : best;
        row = is_larger ? M{} + static_cast<IntOf<R>>(i) : row;
      }
      for (int64_t i = j + 1; i < n; ++i) {
        const M swaps = row == static_cast<IntOf<R>>(i);
        if (!any(swaps)) continue;
        for (int64_t c = 0; c < n; ++c) swap(swaps, a[j * n + c], a[i * n + c]);
        for (int64_t c = 0; c < k; ++c) swap(swaps, b[j * k + c], b[i * k + c]);
        f->sign = swaps ? -f->sign : f->sign;
      }
      f->info = (f->info == 0) & (best == 0) ? M{} + static_cast<IntOf<R>>(j + 1) : f->info;
      f->reciprocals[j] = reciprocal(a[j * n + j]);
      const S r = pick(best < kTiny<R>, S{}, f->reciprocals[j]);  // else the column below is as good as zero
      for (int64_t i = j + 1; i < n; ++i) {
        const S l = a[i * n + j] * r;
        for (int64_t c = j + 1; c < n; ++c) a[i * n + c] = a[i * n + c] - l * a[j * n + c];
        for (int64_t c = 0; c < k; ++c) b[i * k + c] = b[i * k + c] - l * b[j * k + c];
      }
    }
  }
  static void swap(M mask, S& x, S& y) {
    const S t = x;
    x = pick(mask, y, x);
    y = pick(mask, t, y);
  }
  static void back_substitute(const S* a, int64_t n, S* b, int64_t k, const Factors& f) {
    for (int64_t j = n - 1; j >= 0; --j)
      for (int64_t c = 0; c < k; ++c) {
        const S x = b[j * k + c] = b[j * k + c] * f.reciprocals[j];
        for (int64_t i = 0; i < j; ++i) b[i * k + c] = b[i * k + c] - a[i * n + j] * x;
      }
  }
  // Divides a matrix by a power of two near its largest element; returns that.
  static V scale(S* a, int64_t elements) {
    V most{};
    for (int64_t e = 0; e < elements; ++e) most = larger(most, size(a[e]));
    const V power = power_of_two<R>(most), factor = 1 / power;
    for (int64_t e = 0; e < elements; ++e) a[e] = a[e] * factor;
    return power;
  }

  static void lu_diagonal(const T* a, int64_t n, int64_t count, T* diagonal) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, d;
      Factors f;
      x.load(parts(a + at * n * n), n * n, rest, n);
      const V power = scale(x.a, n * n);
      factor(x.a, n, nullptr, 0, &f);
      for (int64_t j = 0; j < n; ++j) d(j) = x(j * (n + 1)) * (j ? power : power * f.sign);
      d.store(parts(diagonal + at * n), n, rest);
    });
  }
  static void inv(const T* a, int64_t n, int64_t count, T* inverse, int32_t* info) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, b;
      Factors f;
      x.load(parts(a + at * n * n), n * n, rest, n);
      const V factor_of = 1 / scale(x.a, n * n);
      for (int64_t e = 0; e < n * n; ++e) b(e) = from_real<S>(splat(R(e % (n + 1) == 0)));
      factor(x.a, n, b.a, n, &f);
      back_substitute(x.a, n, b.a, n, f);
      for (int64_t e = 0; e < n * n; ++e) b(e) = b(e) * factor_of;
      b.store(parts(inverse + at * n * n), n * n, rest);
      store_info<R>(info + at, f.info, rest);
    });
  }
  static void solve(const T* a, const T* b, int64_t n, int64_t k, int64_t count, T* x, int32_t* info) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B m, right;
      Factors f;
      m.load(parts(a + at * n * n), n * n, rest, n);
      right.load(parts(b + at * n * k), n * k, rest, k);
      const V factor_of = 1 / scale(m.a, n * n);
      factor(m.a, n, right.a, k, &f);
      back_substitute(m.a, n, right.a, k, f);
      for (int64_t e = 0; e < n * k; ++e) right(e) = right(e) * factor_of;
      right.store_columns(parts(x + at * n * k), n, k, rest);
      store_info<R>(info + at, f.info, rest);
    });
  }

  // ---- Cholesky

  static void cholesky(const T* a, int64_t n, int64_t count, bool upper, T* result, int32_t* codes) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, l;
      M info{};
      x.load(parts(a + at * n * n), n * n, rest, n);
      for (int64_t j = 0; j < n; ++j) {
        V d = x(j * (n + 1)).re;
        for (int64_t k = 0; k < j; ++k) d -= square(l(j * n + k));
        info = (info == 0) & ~(d > 0) ? M{} + static_cast<IntOf<R>>(j + 1) : info;
        const V diagonal = root<R>(d), r = 1 / diagonal;
        l(j * (n + 1)) = from_real<S>(diagonal);
        for (int64_t i = j + 1; i < n; ++i) {
          S sum = upper ? conj(x(j * n + i)) : x(i * n + j);
          for (int64_t k = 0; k < j; ++k) sum = sum - l(i * n + k) * conj(l(j * n + k));
          l(i * n + j) = sum * r;
          l(j * n + i) = S{};
        }
      }
      if (upper)
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < i; ++j) {
            l(j * n + i) = conj(l(i * n + j));
            l(i * n + j) = S{};
          }
      l.store(parts(result + at * n * n), n * n, rest);
      store_info<R>(codes + at, info, rest);
    });
  }

  // ---- QR by reflectors, with LAPACK's signs

  static void qr(const T* a, int64_t m, int64_t n, int64_t count, T* q, T* r) {
    const int64_t k = least(m, n);
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, out;
      S tau[kN];
      x.load(parts(a + at * m * n), m * n, rest, n);
      const V power = scale(x.a, m * n);
      for (int64_t j = 0; j < k; ++j) {
        V most{};
        for (int64_t i = j; i < m; ++i) most = larger(most, size(x(i * n + j)));
        const V unit = power_of_two<R>(most);  // of the column, whose squares might vanish beside the matrix
        for (int64_t i = j; i < m; ++i) x(i * n + j) = x(i * n + j) * (1 / unit);
        const S alpha = x(j * (n + 1));
        V below{};
        for (int64_t i = j + 1; i < m; ++i) below += square(x(i * n + j));
        const V imag = imaginary(alpha);
        const M plain = ((below == 0) & (imag == 0)) | (most < kTiny<R> * 4);
        const V norm = root<R>(square(alpha) + below);
        const V beta = alpha.re < 0 ? norm : -norm;
        S t = (from_real<S>(beta) - alpha) * (1 / beta);
        S v = reciprocal(alpha - from_real<S>(beta));
        t = pick(plain, S{}, t);
        v = pick(plain, S{}, v);
        tau[j] = t;
        for (int64_t i = j + 1; i < m; ++i) x(i * n + j) = x(i * n + j) * v;
        x(j * (n + 1)) = from_real<S>((plain ? alpha.re : beta) * unit);
        for (int64_t c = j + 1; c < n; ++c) reflect(x.a, m, n, j, c, x.a, n, conj(t));
      }
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) out(i * n + j) = j < i ? S{} : x(i * n + j) * power;
      out.store_columns(parts(r + at * k * n), k, n, rest);
      if (!q) return;
      for (int64_t e = 0; e < m * k; ++e) out(e) = from_real<S>(splat(R(e / k == e % k)));
      for (int64_t j = k - 1; j >= 0; --j)
        for (int64_t c = j; c < k; ++c) reflect(out.a, m, k, j, c, x.a, n, tau[j]);
      out.store_columns(parts(q + at * m * k), m, k, rest);
    });
  }
  static void reflectors(const T* a, const T* tau, int64_t m, int64_t n, int64_t k, int64_t count, T* q) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, t, out;
      x.load(parts(a + at * m * n), m * n, rest, n);
      t.load(parts(tau + at * k), k, rest, k);
      for (int64_t e = 0; e < m * n; ++e) out(e) = from_real<S>(splat(R(e / n == e % n)));
      for (int64_t j = k - 1; j >= 0; --j)
        for (int64_t c = j; c < n; ++c) reflect(out.a, m, n, j, c, x.a, n, t(j));
      out.store_columns(parts(q + at * m * n), m, n, rest);
    });
  }
  // Column c of x (m, width) times I - t v v^H, where v is column j of `vectors` below its diagonal.
  static void reflect(S* x, int64_t m, int64_t width, int64_t j, int64_t c, const S* vectors, int64_t n, S t) {
    S sum = x[j * width + c];
    for (int64_t i = j + 1; i < m; ++i) sum = sum + conj(vectors[i * n + j]) * x[i * width + c];
    sum = sum * t;
    x[j * width + c] = x[j * width + c] - sum;
    for (int64_t i = j + 1; i < m; ++i) x[i * width + c] = x[i * width + c] - vectors[i * n + j] * sum;
  }

  // ---- Jacobi's method: rotations p' = c p - s conj(e) q, q' = s e p + c q make a product of two columns zero

  struct Rotation {
    V c, t;
    S forth, back;  // s e, s conj(e)
  };
  // From the product h e (h >= 0) and the difference of what q and p have on the diagonal; none where `still`.
  static Rotation rotation(S product, V h, V difference, M still) {
    const V theta = difference / (2 * h), size_of = magnitude<R>(theta);
    V t = 1 / (size_of + root<R>(theta * theta + 1));
    t = theta < 0 ? -t : t;
    t = still ? V{} : t;
    const V c = 1 / root<R>(t * t + 1), factor = still ? V{} : t * c / h;
    const S forth = product * factor;
    return {c, t, forth, conj(forth)};
  }
  static void rotate(S* x, int64_t rows, int64_t width, int64_t p, int64_t q, const Rotation& r) {
    for (int64_t i = 0; i < rows; ++i) {
      const S a = x[i * width + p], b = x[i * width + q];
      x[i * width + p] = a * r.c - r.back * b;
      x[i * width + q] = r.forth * a + b * r.c;
    }
  }

  static constexpr int kSweeps = 40;

  static void eigh(const T* a, int64_t n, int64_t count, bool upper, R* values, T* vectors) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, v;
      x.load(parts(a + at * n * n), n * n, rest, n);
      for (int64_t i = 0; i < n; ++i) {
        x(i * (n + 1)) = from_real<S>(x(i * (n + 1)).re);
        for (int64_t j = 0; j < i; ++j) {
          S &low = x(i * n + j), &high = x(j * n + i);
          upper ? low = conj(high) : high = conj(low);
        }
      }
      const V power = scale(x.a, n * n);
      if (vectors)
        for (int64_t e = 0; e < n * n; ++e) v(e) = from_real<S>(splat(R(e % (n + 1) == 0)));
      V all{};
      for (int64_t e = 0; e < n * n; ++e) all += square(x(e));
      const V enough = all * (kEps<R> * kEps<R> / 16);
      for (int sweep = 0; sweep < kSweeps; ++sweep) {
        V off{};
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < i; ++j) off += square(x(i * n + j));
        if (!any(off > enough)) break;
        for (int64_t p = 0; p < n; ++p)
          for (int64_t q = p + 1; q < n; ++q) {
            const S product = x(p * n + q);
            const V h = absolute(product), first = x(p * (n + 1)).re, second = x(q * (n + 1)).re;
            const Rotation r = rotation(product, h, second - first, h <= kTiny<R>);
            for (int64_t i = 0; i < n; ++i) {
              if (i == p || i == q) continue;
              const S y = x(i * n + p), z = x(i * n + q);
              x(i * n + p) = y * r.c - r.back * z;
              x(i * n + q) = r.forth * y + z * r.c;
              x(p * n + i) = conj(x(i * n + p));
              x(q * n + i) = conj(x(i * n + q));
            }
            x(p * (n + 1)).re = first - r.t * h;
            x(q * (n + 1)).re = second + r.t * h;
            x(p * n + q) = x(q * n + p) = S{};
            if (vectors) rotate(v.a, n, n, p, q, r);
          }
      }
      const auto* w = reinterpret_cast<const R*>(x.a);
      for (int64_t lane = 0; lane < rest; ++lane) {
        R found[kN];
        int order[kN];
        for (int64_t i = 0; i < n; ++i)
          found[i] = w[i * (n + 1) * S::kParts * kLanes<R> + lane] * reinterpret_cast<const R*>(&power)[lane];
        sort(found, static_cast<int>(n), order);
        for (int64_t j = 0; j < n; ++j) {
          values[(at + lane) * n + j] = found[order[j]];
          if (vectors)
            for (int64_t i = 0; i < n; ++i)
              copy_element(v.a[i * n + order[j]], lane, parts(vectors + ((at + lane) * n + j) * n + i));
        }
      }
    });
  }
  // The order in which the values ascend.
  static void sort(const R* values, int n, int* order) {
    for (int i = 0; i < n; ++i) {
      int j = i;
      for (; j > 0 && values[order[j - 1]] > values[i]; --j) order[j] = order[j - 1];
      order[j] = i;
    }
  }
  static void copy_element(const S& from, int64_t lane, R* to, R factor = 1, bool conjugate = false) {
    const auto* rows = reinterpret_cast<const R*>(&from);
    to[0] = rows[lane] * factor;
    if (S::kParts == 2) to[1] = conjugate ? -rows[kLanes<R> + lane] * factor : rows[kLanes<R> + lane] * factor;
  }

  // One-sided: the columns of A V become orthogonal, and their norms are the singular values.
  static void svd(const T* a, int64_t m, int64_t n, int64_t count, T* u, R* s, T* vh, int32_t* again) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B x, v;
      x.load(parts(a + at * m * n), m * n, rest, n);
      const V power = scale(x.a, m * n);
      if (vh)
        for (int64_t e = 0; e < n * n; ++e) v(e) = from_real<S>(splat(R(e % (n + 1) == 0)));
      const R enough = kEps<R> * static_cast<R>(m);
      M turned = ~M{};
      for (int sweep = 0; sweep < kSweeps && any(turned); ++sweep) {
        turned = M{};
        for (int64_t p = 0; p < n; ++p)
          for (int64_t q = p + 1; q < n; ++q) {
            V first{}, second{};
            S product{};
            for (int64_t i = 0; i < m; ++i) {
              const S y = x(i * n + p), z = x(i * n + q);
              first += square(y);
              second += square(z);
              product = product + conj(y) * z;
            }
            const V h = absolute(product);
            const M turns = (h > enough * root<R>(first) * root<R>(second)) & (h > kTiny<R>);
            if (!any(turns)) continue;
            turned |= turns;
            const Rotation r = rotation(product, h, second - first, ~turns);
            rotate(x.a, m, n, p, q, r);
            if (vh) rotate(v.a, n, n, p, q, r);
          }
      }
      V norms[kN];
      for (int64_t j = 0; j < n; ++j) {
        norms[j] = V{};
        for (int64_t i = 0; i < m; ++i) norms[j] += square(x(i * n + j));
        norms[j] = root<R>(norms[j]);
      }
      const R* scales = reinterpret_cast<const R*>(&power);
      IntOf<R> unfinished[kLanes<R>];
      std::memcpy(unfinished, &turned, sizeof turned);
      for (int64_t lane = 0; lane < rest; ++lane) {
        R found[kN];
        int order[kN];
        for (int64_t j = 0; j < n; ++j) found[j] = -reinterpret_cast<const R*>(&norms[j])[lane];
        sort(found, static_cast<int>(n), order);
        const int64_t matrix = at + lane;
        // A column that is nearly nothing beside the largest has no direction that could be trusted.
        const R last = -found[order[n - 1]], most = -found[order[0]];
        again[matrix] = unfinished[lane] != 0 || !(most < 4 * kN) || (u && !(last > kSmallest * most));
        for (int64_t j = 0; j < n; ++j) {
          const R value = -found[order[j]];
          s[matrix * n + j] = value * scales[lane];
          for (int64_t i = 0; u && i < m; ++i)
            copy_element(x.a[i * n + order[j]], lane, parts(u + (matrix * m + i) * n + j), 1 / value);
          for (int64_t i = 0; vh && i < n; ++i)
            copy_element(v.a[i * n + order[j]], lane, parts(vh + (matrix * n + j) * n + i), 1, true);
        }
      }
    });
  }
  static constexpr R kSmallest = sizeof(R) == 8 ? R(1e-100) : R(1e-14);

  // ---- powers, by repeated squaring

  template <int N = kN>
  static void multiply(const S* a, const S* b, int64_t n, S* c) {
    if constexpr (N > 1)
      if (n < N) return multiply<N - 1>(a, b, n, c);
    for (int64_t i = 0; i < N; ++i) {
      S row[N] = {};
      for (int64_t k = 0; k < N; ++k) {
        const S x = a[i * N + k];
        repeat<N>([&](auto j) RL_INLINE { row[j.value] = row[j.value] + x * b[k * N + j.value]; });
      }
      repeat<N>([&](auto j) RL_INLINE { c[i * N + j.value] = row[j.value]; });
    }
  }
  static void power(const T* a, int64_t n, int64_t exponent, int64_t count, T* result) {
    blocks<R>(count, [&](int64_t at, int64_t rest) {
      B memory[4];
      B *square = memory, *product = nullptr, *spare = memory + 1, *next = memory + 2;
      square->load(parts(a + at * n * n), n * n, rest, n);
      for (int64_t left = exponent;; left >>= 1) {
        if (left & 1) {
          if (!product) {
            product = memory + 3;
            std::memcpy(product, square, sizeof *square);
          } else {
            multiply(product->a, square->a, n, next->a);
            B* old = product;
            product = next;
            next = old;
          }
        }
        if (left <= 1) break;
        multiply(square->a, square->a, n, spare->a);
        B* old = square;
        square = spare;
        spare = old;
      }
      product->store(parts(result + at * n * n), n * n, rest);
    });
  }

  // ---- triangles

  static void solve_triangle(bool forward, int64_t n, const T* a, int64_t k, T* b, int64_t ldb) {
    constexpr int64_t width = kLanes<R>, step = S::kParts;
    const auto element = [&](int64_t i, int64_t j) {
      const R* p = parts(a + j * kTriangle + i);
      S s;
      auto* rows = reinterpret_cast<V*>(&s);
      for (int64_t part = 0; part < step; ++part) rows[part] = splat(p[part]);
      return s;
    };
    for (int64_t c = 0; c < k; c += width) {
      const int64_t rest = least(k - c, width);
      R* columns = parts(b + c * ldb);
      S x[kTriangle] = {};
      auto* rows = reinterpret_cast<R*>(x);
      transpose(columns, ldb * step, rest, n * step, rows, width);
      for (int64_t turn = 0; turn < n; ++turn) {
        const int64_t j = forward ? turn : n - 1 - turn;
        const S value = x[j] = x[j] * element(j, j);
        for (int64_t i = forward ? j + 1 : 0, end = forward ? n : j; i < end; ++i) x[i] = x[i] - element(i, j) * value;
      }
      transpose(rows, width, n * step, rest, columns, ldb * step);
    }
  }

  static void fill(LaneKernels<T, R>& to) {
    to = {lu_diagonal, inv, solve, cholesky, qr, reflectors, power, eigh, svd, solve_triangle};
  }
};

}  // namespace

void fill_lanes(LaneTable& table) {
  Small<RealOnes<float>, float>::fill(table.s);
  Small<RealOnes<double>, double>::fill(table.d);
  Small<ComplexOnes<float>, float>::fill(table.c);
  Small<ComplexOnes<double>, double>::fill(table.z);
}

}  // namespace RL_ISA
}  // namespace rl
