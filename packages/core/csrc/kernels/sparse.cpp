#include "sparse.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "../parallel.h"
#include "index.h"

namespace rl {

namespace {

constexpr int64_t kGrain = 16384, kProductGrain = 4096;

// Elements as they are added and multiplied; signed integers are unsigned here, which wraps alike.
struct Flag {
  uint8_t set;
};
template <class T>
struct Pair {
  T re, im;
};
template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * b);
  else
    return a * b;
}
Flag add(Flag a, Flag b) { return {static_cast<uint8_t>(a.set | b.set)}; }
Flag multiply(Flag a, Flag b) { return {static_cast<uint8_t>(a.set & b.set)}; }
template <class T>
Pair<T> add(Pair<T> a, Pair<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
Pair<T> multiply(Pair<T> a, Pair<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Calls f with a zero of the element type. Half precision is widened before it comes here.
template <class F>
void by_dtype(DType t, F&& f) {
  switch (t) {
    case DType::UInt8:
    case DType::Int8: return f(uint8_t{});
    case DType::Int16: return f(uint16_t{});
    case DType::Int32: return f(uint32_t{});
    case DType::Int64: return f(uint64_t{});
    case DType::Float64: return f(double{});
    case DType::Complex64: return f(Pair<float>{});
    case DType::Complex128: return f(Pair<double>{});
    case DType::Bool: return f(Flag{});
    default: return f(float{});
  }
}

const SparseTable& table() {
  static const SparseTable loops = [] {
    SparseTable t;
    RL_ISA_CALL(fill_sparse, t);
    return t;
  }();
  return loops;
}
template <class T>
const SparseLoops<T>& loops() {
  if constexpr (std::is_same_v<T, float>)
    return table().floats;
  else
    return table().doubles;
}

template <class T>
void plain_rows(const Csr& a, int64_t begin, int64_t end, const T* b, int64_t n, T* out) {
  const T* values = static_cast<const T*>(a.values);
  for (int64_t i = begin; i < end; ++i) {
    T* to = out + i * n;
    std::fill_n(to, n, T{});
    for (int64_t p = a.crow[i]; p < a.crow[i + 1]; ++p) {
      const T* row = b + a.col[p] * n;
      for (int64_t j = 0; j < n; ++j) to[j] = add(to[j], multiply(values[p], row[j]));
    }
  }
}

// Calls f(first row, last row) for pieces of about equal numbers of elements.
template <class F>
void by_elements(const Csr& a, int64_t work_per_element, F&& f) {
  const int64_t work = (a.nnz + a.rows) * work_per_element;
  const int64_t pieces = std::max<int64_t>(1, std::min<int64_t>(work / kProductGrain, 6 * num_threads()));
  auto bound = [&](int64_t piece) {
    if (piece == pieces) return a.rows;
    // Rows count as an element each, so that empty ones are shared out too.
    const int64_t wanted = (a.nnz + a.rows) / pieces * piece;
    int64_t low = 0, high = a.rows;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (a.crow[middle] + middle < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
    if (const int64_t first = bound(begin), last = bound(end); first < last) f(first, last);
  });
}

}  // namespace

BadIndex flatten_keys(const int64_t* indices, int64_t row, int64_t column, int ndim, const int64_t* sizes, int64_t n,
                      int64_t* keys) {
  std::fill_n(keys, n, 0);
  for (int d = 0; d < ndim; ++d) {
    const int64_t* index = indices + d * row;
    const uint64_t size = static_cast<uint64_t>(sizes[d]);
    bool inside = true;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = index[k * column];
      inside &= static_cast<uint64_t>(i) < size;
      keys[k] = static_cast<int64_t>(static_cast<uint64_t>(keys[k]) * size + static_cast<uint64_t>(i));
    }
    if (inside) continue;
    for (int64_t k = 0; k < n; ++k)
      if (static_cast<uint64_t>(index[k * column]) >= size) return {d, index[k * column]};
  }
  return {};
}

void unflatten_keys(const int64_t* keys, int64_t n, int ndim, const int64_t* sizes, int64_t* indices) {
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      uint64_t key = static_cast<uint64_t>(keys[k]);
      for (int d = ndim - 1; d >= 0; --d) {
        const uint64_t size = static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1)), rest = d ? key / size : 0;
        indices[d * n + k] = static_cast<int64_t>(key - rest * size);
        key = rest;
      }
    }
  });
}

bool ascends(const int64_t* keys, int64_t n, bool strictly) {
  for (int64_t k = 1; k < n; ++k)
    if (keys[k] < keys[k - 1] + strictly) return false;
  return true;
}

std::vector<int64_t> group_starts(const int64_t* keys, int64_t n) {
  std::vector<int64_t> starts;
  starts.reserve(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k)
    if (!k || keys[k] != keys[k - 1]) starts.push_back(k);
  return starts;
}

void sum_groups(DType dtype, const int64_t* starts, int64_t ngroups, int64_t n, const int64_t* order,
                const void* values, int64_t block, void* out) {
  by_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = static_cast<const T*>(values);
    parallel_for(0, ngroups, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, block)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t g = begin; g < end; ++g) {
                     T* to = static_cast<T*>(out) + g * block;
                     const int64_t first = starts[g], last = g + 1 < ngroups ? starts[g + 1] : n;
                     std::copy_n(from + (order ? order[first] : first) * block, block, to);
                     for (int64_t k = first + 1; k < last; ++k) {
                       const T* more = from + (order ? order[k] : k) * block;
                       for (int64_t j = 0; j < block; ++j) to[j] = add(to[j], more[j]);
                     }
                   }
                 });
  });
}

int64_t merge_keys(const int64_t* a, int64_t na, const int64_t* b, int64_t nb, int64_t* place_a, int64_t* place_b) {
  int64_t i = 0, j = 0, n = 0;
  for (; i < na && j < nb; ++n) {
    const int64_t x = a[i], y = b[j];
    place_a[i] = place_b[j] = n;
    i += x <= y;
    j += y <= x;
  }
  for (; i < na; ++i) place_a[i] = n++;
  for (; j < nb; ++j) place_b[j] = n++;
  return n;
}

void find_keys(const int64_t* keys, int64_t n, const int64_t* wanted, int64_t m, int64_t* out) {
  parallel_for(0, m, kGrain / 8, [&](int64_t begin, int64_t end) {
    const int64_t* hint = keys;
    for (int64_t k = begin; k < end; ++k) {
      // Wanted keys mostly ascend too: then the next one is near the last.
      if (hint == keys + n || *hint > wanted[k]) hint = keys;
      int64_t step = 1;
      while (hint + step < keys + n && hint[step] < wanted[k]) step *= 2;
      hint = std::lower_bound(hint + step / 2, std::min(hint + step + 1, keys + n), wanted[k]);
      out[k] = hint < keys + n && *hint == wanted[k] ? hint - keys : -1;
    }
  });
}

bool inside(const int64_t* indices, int64_t n, int64_t size) { return !find_outside(indices, n, 0, size); }

Csr compress_rows(const int64_t* rows, const int64_t* cols, const void* values, int64_t itemsize, int64_t nnz,
                  int64_t nrows, int64_t ncols, int64_t* crow, Ordered* ordered) {
  std::fill_n(crow, nrows + 1, 0);
  bool ascending = true;
  for (int64_t p = 0; p < nnz; ++p) {
    ++crow[rows[p] + 1];
    ascending &= !p || rows[p - 1] <= rows[p];
  }
  for (int64_t i = 0; i < nrows; ++i) crow[i + 1] += crow[i];
  if (ascending) return {nrows, ncols, nnz, crow, cols, values};
  std::vector<int64_t> next(crow, crow + nrows);
  ordered->col.resize(static_cast<size_t>(nnz));
  ordered->values.resize(static_cast<size_t>(nnz * itemsize));
  const char* from = static_cast<const char*>(values);
  for (int64_t p = 0; p < nnz; ++p) {
    const int64_t to = next[rows[p]]++;
    ordered->col[to] = cols[p];
    std::memcpy(ordered->values.data() + to * itemsize, from + p * itemsize, itemsize);
  }
  return {nrows, ncols, nnz, crow, ordered->col.data(), ordered->values.data()};
}

static bool valid_offsets(const Csr& a) {
  bool good = a.crow[0] >= 0 && a.crow[a.rows] <= a.nnz;
  for (int64_t i = 0; i < a.rows; ++i) good &= a.crow[i] <= a.crow[i + 1];
  return good;
}

bool valid(const Csr& a) { return valid_offsets(a) && inside(a.col, a.nnz, a.cols); }

bool csr_matmul(DType dtype, const Csr& a, const void* b, int64_t n, void* out) {
  if (!valid_offsets(a)) return false;
  std::atomic<bool> good{true};
  by_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    by_elements(a, n, [&](int64_t begin, int64_t end) {
      if (!inside(a.col + a.crow[begin], a.crow[end] - a.crow[begin], a.cols)) {
        good = false;
        return;
      }
      if constexpr (std::is_floating_point_v<T>)
        loops<T>().rows(a.crow, a.col, static_cast<const T*>(a.values), begin, end, static_cast<const T*>(b), n,
                        static_cast<T*>(out));
      else
        plain_rows<T>(a, begin, end, static_cast<const T*>(b), n, static_cast<T*>(out));
    });
  });
  return good;
}

void csr_matmul_csr(DType dtype, const Csr& a, const Csr& b, int64_t* crow, CsrOut (*allocate)(void*, int64_t),
                    void* context) {
  const int64_t average = b.rows ? b.nnz / b.rows + 1 : 1;
  // How many distinct columns each row has. `seen` holds the last row that touched a column.
  crow[0] = 0;
  by_elements(a, average, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> seen(static_cast<size_t>(b.cols), -1);
    for (int64_t i = begin; i < end; ++i) {
      int64_t count = 0;
      for (int64_t p = a.crow[i]; p < a.crow[i + 1]; ++p)
        for (int64_t q = b.crow[a.col[p]]; q < b.crow[a.col[p] + 1]; ++q)
          if (seen[b.col[q]] != i) {
            seen[b.col[q]] = i;
            ++count;
          }
      crow[i + 1] = count;
    }
  });
  for (int64_t i = 0; i < a.rows; ++i) crow[i + 1] += crow[i];
  const CsrOut room = allocate(context, crow[a.rows]);
  by_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *va = static_cast<const T*>(a.values), *vb = static_cast<const T*>(b.values);
    by_elements(a, 2 * average, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> seen(static_cast<size_t>(b.cols), -1);
      std::vector<T> sum(static_cast<size_t>(b.cols));
      for (int64_t i = begin; i < end; ++i) {
        int64_t *first = room.col + crow[i], *last = first;
        for (int64_t p = a.crow[i]; p < a.crow[i + 1]; ++p)
          for (int64_t q = b.crow[a.col[p]]; q < b.crow[a.col[p] + 1]; ++q) {
            const int64_t j = b.col[q];
            const T product = multiply(va[p], vb[q]);
            if (seen[j] == i) {
              sum[j] = add(sum[j], product);
            } else {
              seen[j] = i;
              sum[j] = product;
              *last++ = j;
            }
          }
        std::sort(first, last);
        T* to = static_cast<T*>(room.values) + crow[i];
        for (const int64_t* j = first; j < last; ++j) *to++ = sum[*j];
      }
    });
  });
}

void sampled_products(DType dtype, const int64_t* rows, const int64_t* cols, int64_t nnz, const void* a, const void* b,
                      int64_t n, void* out) {
  by_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* to = static_cast<T*>(out);
    parallel_for(0, nnz, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const T *row = x + rows[k] * n, *column = y + cols[k] * n;
        if constexpr (std::is_floating_point_v<T>) {
          to[k] = loops<T>().dot(row, column, n);
        } else {
          T sum{};
          for (int64_t j = 0; j < n; ++j) sum = add(sum, multiply(row[j], column[j]));
          to[k] = sum;
        }
      }
    });
  });
}

}  // namespace rl
