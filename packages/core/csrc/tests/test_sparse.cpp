// Sparse kernels against plain loops, on every layout of their inputs.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../kernels/sparse.h"

namespace {

std::mt19937_64 g_random(7);
int64_t below(int64_t n) { return static_cast<int64_t>(g_random() % static_cast<uint64_t>(n)); }

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

// Coordinates of a random matrix, in any order and with repetitions, and the dense matrix that they make.
template <class T>
struct Matrix {
  int64_t rows, cols;
  std::vector<int64_t> row, col;
  std::vector<T> values, dense;
  Matrix(int64_t rows, int64_t cols, int64_t nnz) : rows(rows), cols(cols), dense(static_cast<size_t>(rows * cols)) {
    for (int64_t k = 0; rows > 0 && cols > 0 && k < nnz; ++k) {
      row.push_back(below(rows));
      col.push_back(below(cols));
      values.push_back(static_cast<T>(below(9) - 4));
      dense[row.back() * cols + col.back()] += values.back();
    }
  }
  int64_t nnz() const { return static_cast<int64_t>(row.size()); }
};

template <class T>
std::vector<T> product(const std::vector<T>& a, const std::vector<T>& b, int64_t n, int64_t k, int64_t m) {
  std::vector<T> out(static_cast<size_t>(n * m));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < m; ++j) out[i * m + j] += a[i * k + p] * b[p * m + j];
  return out;
}

template <class T>
void test_products(rl::DType dtype) {
  for (int64_t n : {0, 1, 5, 300})
    for (int64_t k : {1, 7, 90})
      for (int64_t m : {1, 2, 3, 16, 33, 70, 200}) {
        Matrix<T> a(n, k, n * k / 3), b(k, m, k * m / 2);
        std::vector<int64_t> crow(static_cast<size_t>(n + 1)), b_crow(static_cast<size_t>(k + 1));
        rl::Ordered a_ordered, b_ordered;
        rl::Csr ca = rl::compress_rows(a.row.data(), a.col.data(), a.values.data(), sizeof(T), a.nnz(), n, k,
                                       crow.data(), &a_ordered);
        rl::Csr cb = rl::compress_rows(b.row.data(), b.col.data(), b.values.data(), sizeof(T), b.nnz(), k, m,
                                       b_crow.data(), &b_ordered);
        expect(rl::valid(ca) && rl::valid(cb), "compressed rows are valid");
        std::vector<T> expected = product(a.dense, b.dense, n, k, m), got(static_cast<size_t>(n * m), T(77));
        expect(rl::csr_matmul(dtype, ca, b.dense.data(), m, got.data()), "the indices are inside");
        expect(got == expected, "rows times dense");
        if (ca.nnz) {
          const int64_t p = below(ca.nnz), wrong[3] = {k, -1, INT64_MIN};
          std::vector<int64_t> col(ca.col, ca.col + ca.nnz);
          col[p] = wrong[below(3)];
          rl::Csr bad = ca;
          bad.col = col.data();
          expect(!rl::csr_matmul(dtype, bad, b.dense.data(), m, got.data()), "an index outside is noticed");
        }

        struct Room {
          std::vector<int64_t> col;
          std::vector<T> values;
        } room;
        std::vector<int64_t> out_crow(static_cast<size_t>(n + 1));
        rl::csr_matmul_csr(
            dtype, ca, cb, out_crow.data(),
            [](void* context, int64_t nnz) -> rl::CsrOut {
              auto* r = static_cast<Room*>(context);
              r->col.resize(static_cast<size_t>(nnz));
              r->values.resize(static_cast<size_t>(nnz));
              return {r->col.data(), r->values.data()};
            },
            &room);
        std::vector<T> dense(static_cast<size_t>(n * m));
        for (int64_t i = 0; i < n; ++i)
          for (int64_t p = out_crow[i]; p < out_crow[i + 1]; ++p) {
            expect(p == out_crow[i] || room.col[p - 1] < room.col[p], "columns ascend");
            dense[i * m + room.col[p]] = room.values[p];
          }
        expect(dense == expected, "rows times rows");
      }
}

void test_keys() {
  const int64_t sizes[3] = {3, 1, 5};
  std::vector<int64_t> indices, keys(40), back(120);
  for (int64_t size : sizes)
    for (int k = 0; k < 40; ++k) indices.push_back(below(size));
  expect(rl::flatten_keys(indices.data(), 40, 1, 3, sizes, 40, keys.data()).dim < 0, "indices are inside");
  rl::unflatten_keys(keys.data(), 40, 3, sizes, back.data());
  expect(back == indices, "keys and back");
  indices[85] = 5;
  rl::BadIndex bad = rl::flatten_keys(indices.data(), 40, 1, 3, sizes, 40, keys.data());
  expect(bad.dim == 2 && bad.index == 5, "an index beyond its dimension is found");
  indices[3] = -1;
  bad = rl::flatten_keys(indices.data(), 40, 1, 3, sizes, 40, keys.data());
  expect(bad.dim == 0 && bad.index == -1, "a negative index is found");
}

void test_merge_and_find() {
  const std::vector<int64_t> a = {1, 4, 6, 9}, b = {0, 4, 9, 12};
  std::vector<int64_t> pa(4), pb(4), at(4);
  expect(rl::merge_keys(a.data(), 4, b.data(), 4, pa.data(), pb.data()) == 6, "merged length");
  expect(pa == std::vector<int64_t>{1, 2, 3, 4} && pb == std::vector<int64_t>{0, 2, 4, 5}, "merged places");
  rl::find_keys(a.data(), 4, b.data(), 4, at.data());
  expect(at == std::vector<int64_t>{-1, 1, 3, -1}, "found places");
  const std::vector<int64_t> unordered = {12, 9, 0, 1};
  rl::find_keys(a.data(), 4, unordered.data(), 4, at.data());
  expect(at == std::vector<int64_t>{-1, 3, -1, 0}, "found places of unordered keys");
  rl::find_keys(a.data(), 0, b.data(), 4, at.data());
  expect(at == std::vector<int64_t>{-1, -1, -1, -1}, "nothing is found in nothing");
}

void test_groups() {
  const std::vector<int64_t> keys = {2, 2, 5, 7, 7, 7}, order = {5, 4, 3, 2, 1, 0};
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<int64_t> starts = rl::group_starts(keys.data(), 6);
  expect(starts == std::vector<int64_t>{0, 2, 3}, "groups start");
  std::vector<float> sums(6);
  rl::sum_groups(rl::DType::Float32, starts.data(), 3, 6, order.data(), values.data(), 2, sums.data());
  expect(sums == std::vector<float>{20, 22, 7, 8, 9, 12}, "groups add up");
}

}  // namespace

int main() {
  test_keys();
  test_merge_and_find();
  test_groups();
  test_products<float>(rl::DType::Float32);
  test_products<double>(rl::DType::Float64);
  test_products<int32_t>(rl::DType::Int32);
  return 0;
}
