// Random numbers: the generator against the C++ standard, streams against PyTorch's documented values, moments.
#include "../random/random.h"
#include "../random/random_isa.h"
#include "check.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

using rl::DType;
using rl::Generator;

void test_engine() {
  for (uint32_t seed : {0u, 5489u, 4294967295u}) {
    std::mt19937 want(seed);
    Generator one(seed), many(seed);
    std::vector<uint32_t> bulk(2000);
    many.random(bulk.data(), 700);
    many.random(bulk.data() + 700, 1300);
    for (uint32_t word : bulk) {
      const uint32_t w = static_cast<uint32_t>(want());
      CHECK(one.random() == w && word == w);
    }
  }
}

void test_philox() {  // the known answers that come with Random123
  const struct {
    uint32_t counter[4], key[2], words[4];
  } cases[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                {0xffffffff, 0xffffffff},
                {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
               {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xa4093822, 0x299f31d0},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const auto& known : cases) {
    uint32_t words[4];
    rl::random_table().philox(known.counter, known.key, words, 1);
    CHECK(std::memcmp(words, known.words, sizeof words) == 0);
  }
  Generator whole(3, rl::Algorithm::Philox), parts = whole;
  std::vector<uint32_t> one(2000), two(2000);
  whole.random(one.data(), 2000);
  parts.random(two.data(), 700);
  parts.set_offset(0);
  parts.random(two.data(), 623);
  parts.random(two.data() + 623, 1377);
  CHECK(one == two && whole.offset() == 2000 && parts.offset() == 2000);
}

void test_documented_values() {  // torch.manual_seed(0) and rand(5), randn(4), randperm(4)
  Generator g(0);
  float u[5];
  rl::fill_uniform(g, DType::Float32, u, 5, 0, 1);
  const float rand[] = {0.4963f, 0.7682f, 0.0885f, 0.1320f, 0.3074f};
  for (int i = 0; i < 5; ++i) CHECK(std::abs(u[i] - rand[i]) < 6e-5f);
  g.manual_seed(0);
  float z[4];
  rl::fill_normal(g, DType::Float32, z, 4, 0, 1);
  const float randn[] = {1.5410f, -0.2934f, -2.1788f, 0.5684f};
  for (int i = 0; i < 4; ++i) CHECK(std::abs(z[i] - randn[i]) < 6e-5f);
  g.manual_seed(0);
  int64_t p[4];
  rl::fill_randperm(g, p, 4);
  const int64_t randperm[] = {0, 1, 3, 2};
  CHECK(std::memcmp(p, randperm, sizeof p) == 0);
}

void test_state() {
  std::vector<char> state(Generator::kMaxStateBytes);
  for (int drawn : {0, 1, 3, 624, 1000}) {
    Generator g(7), h(8);
    for (int i = 0; i < drawn; ++i) g.random();
    g.normal();
    g.get_state(state.data());
    h.set_state(state.data());
    CHECK(h.initial_seed() == 7);
    CHECK(g.normal() == h.normal());
    for (int i = 0; i < 1300; ++i) CHECK(g.random() == h.random());
  }
  state[8] = 77;  // `left` no longer agrees with `next`
  bool refused = false;
  try {
    Generator().set_state(state.data());
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

void check_moments(const std::vector<double>& v, double mean, double std) {
  double sum = 0, squares = 0;
  for (double x : v) sum += x;
  const double n = static_cast<double>(v.size()), got = sum / n;
  for (double x : v) squares += (x - got) * (x - got);
  CHECK(std::abs(got - mean) < 5 * std / std::sqrt(n));
  CHECK(std::abs(std::sqrt(squares / n) / std - 1) < 0.02);
}

void test_moments() {
  Generator g(1);
  std::vector<double> v(100001);
  const int64_t n = static_cast<int64_t>(v.size());
  rl::fill_uniform(g, DType::Float64, v.data(), n, -1, 3);
  check_moments(v, 1, 4 / std::sqrt(12.0));
  rl::fill_normal(g, DType::Float64, v.data(), n, 2, 3);
  check_moments(v, 2, 3);
  std::vector<float> f(v.size());
  rl::fill_normal(g, DType::Float32, f.data(), n, 2, 3);
  check_moments({f.begin(), f.end()}, 2, 3);
  rl::fill_exponential(g, DType::Float64, v.data(), n, 2);
  check_moments(v, 0.5, 0.5);
  rl::fill_geometric(g, DType::Float64, v.data(), n, 0.25);
  check_moments(v, 4, std::sqrt(12.0));
  rl::fill_bernoulli(g, DType::Float64, v.data(), n, 0.3);
  check_moments(v, 0.3, std::sqrt(0.21));
  rl::fill_random_range(g, DType::Float64, v.data(), n, 6, 1);
  check_moments(v, 3.5, std::sqrt(35.0 / 12));
  const double weights[] = {1, 0, 3};
  std::vector<int64_t> picks(v.size());
  rl::fill_multinomial(g, picks.data(), 1, n, DType::Float64, weights, 3);
  check_moments({picks.begin(), picks.end()}, 1.5, std::sqrt(0.75));
  for (int64_t p : picks) CHECK(p == 0 || p == 2);
}

}  // namespace

int main() {
  test_engine();
  test_philox();
  test_documented_values();
  test_state();
  test_moments();
  std::puts("random: ok");
}
