// Products of sparse rows, per instruction set: the sums of a row stay in registers while its elements go by.
#include "rushlight/simd.h"
#include "sparse.h"

namespace rl {
namespace RL_ISA {
namespace {

// out[0 .. width) = sum of values[p] * b[col[p]], where the last of N vectors has `last` lanes. Few vectors are summed
// in several chains, since each addition waits for the one before it.
template <class T, int N>
void row_tile(const int64_t* col, const T* values, int64_t count, const T* b, int64_t n, int64_t last, T* out) {
  constexpr int chains = N == 1 ? 4 : N == 2 ? 2 : 1;
  Vec<T> sum[chains * N];
  repeat<chains * N>([&](auto i) RL_INLINE { sum[i.value] = Vec<T>{}; });
  const bool whole = last == kLanes<T>;
  const auto add = [&](int64_t p, Vec<T>* to) RL_INLINE {
    const T* row = b + col[p] * n;
    const Vec<T> x = splat(values[p]);
    repeat<N - 1>([&](auto i) RL_INLINE { to[i.value] += x * load(row + i.value * kLanes<T>); });
    to[N - 1] += x * (whole ? load(row + (N - 1) * kLanes<T>) : load(row + (N - 1) * kLanes<T>, last));
  };
  int64_t p = 0;
  for (; p + chains <= count; p += chains) {
    repeat<chains>([&](auto c) RL_INLINE { add(p + c.value, sum + c.value * N); });
  }
  for (; p < count; ++p) add(p, sum);
  repeat<(chains - 1) * N>([&](auto i) RL_INLINE { sum[i.value % N] += sum[N + i.value]; });
  repeat<N - 1>([&](auto i) RL_INLINE { store(out + i.value * kLanes<T>, sum[i.value]); });
  store(out + (N - 1) * kLanes<T>, sum[N - 1], last);
}

// The sum of values[p] * b[col[p]].
#if defined(__AVX512F__)
// Up to 16 elements without a branch: rows are short, and each of another length.
inline Vec<float> gathered(const int64_t* col, const float* b, unsigned mask) {
  const auto half = [&](const int64_t* at, unsigned lanes) {
    const auto m = static_cast<__mmask8>(lanes);
    return _mm512_mask_i64gather_ps(_mm256_setzero_ps(), m, _mm512_maskz_loadu_epi64(m, at), b, 4);
  };
  const __m512 low = _mm512_castps256_ps512(half(col, mask & 0xff));
  return (Vec<float>)_mm512_insertf32x8(low, half(col + 8, mask >> 8), 1);
}
inline Vec<double> gathered(const int64_t* col, const double* b, unsigned mask) {
  const auto m = static_cast<__mmask8>(mask);
  return (Vec<double>)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), m, _mm512_maskz_loadu_epi64(m, col), b, 8);
}

template <class T>
T row_sum(const int64_t* col, const T* values, int64_t count, const T* b) {
  Vec<T> sum{};
  for (int64_t p = 0; p < count; p += kLanes<T>) {
    const int64_t n = least(count - p, kLanes<T>);
    sum += load(values + p, n) * gathered(col + p, b, (1u << n) - 1);
  }
  return sum_lanes<T>(sum);
}
#else
template <class T>
T row_sum(const int64_t* col, const T* values, int64_t count, const T* b) {
  T sum[4] = {};
  int64_t p = 0;
  for (; p + 4 <= count; p += 4) {
    for (int l = 0; l < 4; ++l) sum[l] += values[p + l] * b[col[p + l]];
  }
  for (; p < count; ++p) sum[0] += values[p] * b[col[p]];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
#endif

template <class T>
void rows(const int64_t* crow, const int64_t* col, const T* values, int64_t begin, int64_t end, const T* b, int64_t n,
          T* out) {
  constexpr int64_t lanes = kLanes<T>;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = crow[i], count = crow[i + 1] - first;
    const int64_t* c = col + first;
    const T* v = values + first;
    T* to = out + i * n;
    if (n == 1) {
      *to = row_sum(c, v, count, b);
      continue;
    }
    int64_t j = 0;
    for (; n - j > 4 * lanes; j += 4 * lanes) row_tile<T, 4>(c, v, count, b + j, n, lanes, to + j);
    const int64_t left = n - j, vecs = parts(left, lanes), last = left - (vecs - 1) * lanes;
    if (vecs == 1) row_tile<T, 1>(c, v, count, b + j, n, last, to + j);
    if (vecs == 2) row_tile<T, 2>(c, v, count, b + j, n, last, to + j);
    if (vecs == 3) row_tile<T, 3>(c, v, count, b + j, n, last, to + j);
    if (vecs == 4) row_tile<T, 4>(c, v, count, b + j, n, last, to + j);
  }
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  Vec<T> sum{}, more{};
  int64_t i = 0;
  for (; i + 2 * kLanes<T> <= n; i += 2 * kLanes<T>) {
    sum += load(a + i) * load(b + i);
    more += load(a + i + kLanes<T>) * load(b + i + kLanes<T>);
  }
  for (; i < n; i += kLanes<T>) {
    const int64_t m = least(n - i, kLanes<T>);
    sum += load(a + i, m) * load(b + i, m);
  }
  return sum_lanes<T>(sum + more);
}

}  // namespace

void fill_sparse(SparseTable& table) {
  table.floats = {rows<float>, dot<float>};
  table.doubles = {rows<double>, dot<double>};
}

}  // namespace RL_ISA
}  // namespace rl
