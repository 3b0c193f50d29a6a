#include "generator.h"

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include "random_isa.h"

namespace rl {
namespace {

constexpr int kWordsPerBlock = 4;  // of Philox

// The layout of PyTorch's serialized CUDA generator, whose algorithm is Philox; it counts in words here.
struct PhiloxImage {
  uint64_t seed, offset;
};

// The layout of PyTorch's serialized CPU generator.
struct StateImage {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next;
  uint64_t state[624];
  double normal_x, normal, normal_rho;
  int32_t normal_is_valid, padding;
  float float_normal;
  bool float_normal_is_valid;
  uint8_t tail[3];
};
static_assert(sizeof(StateImage) == Generator::kMaxStateBytes, "the format is fixed");

RandomTable make_table() {
  RandomTable table;
  RL_ISA_CALL(fill_random_table, table);
  return table;
}

}  // namespace

const RandomTable& random_table() {
  static const RandomTable table = make_table();
  return table;
}

void Generator::manual_seed(uint64_t seed) {
  initial_seed_ = seed;
  has_normal_ = has_float_normal_ = false;
  if (counts()) return set_offset(0);
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  next_ = kWords;
  seeded_only_ = true;
}

uint64_t Generator::seed() {
  std::random_device device;
  const uint64_t high = device();
  manual_seed(high << 32 | device());
  return initial_seed_;
}

void Generator::set_offset(uint64_t words) {
  refills_ = words / kWords;
  next_ = kWords;
  if (words % kWords == 0) return;
  refill();
  next_ = static_cast<int>(words % kWords);
}

void Generator::refill() {
  if (counts()) {
    const uint64_t block = refills_++ * (kWords / kWordsPerBlock);
    const uint32_t counter[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
    const uint32_t key[2] = {static_cast<uint32_t>(initial_seed_), static_cast<uint32_t>(initial_seed_ >> 32)};
    random_table().philox(counter, key, words_, kWords / kWordsPerBlock);
  } else {
    random_table().twist(state_);
    random_table().temper(state_, words_);
  }
  next_ = 0;
  seeded_only_ = false;
}

void Generator::random(uint32_t* out, int64_t n) {
  while (n > 0) {
    if (next_ == kWords) refill();
    const int64_t m = n < kWords - next_ ? n : kWords - next_;
    std::memcpy(out, words_ + next_, static_cast<size_t>(m) * sizeof(uint32_t));
    next_ += static_cast<int>(m);
    out += m;
    n -= m;
  }
}

double Generator::normal() {
  if (has_normal_) {
    has_normal_ = false;
    return normal_;
  }
  const double u1 = uniform(), u2 = uniform();
  const double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * 3.14159265358979323846 * u1;
  normal_ = r * std::sin(theta);
  has_normal_ = true;
  return r * std::cos(theta);
}

void Generator::get_state(void* out) const {
  if (counts()) {
    const PhiloxImage image{initial_seed_, offset()};
    std::memcpy(out, &image, sizeof image);
    return;
  }
  StateImage image;
  std::memset(&image, 0, sizeof image);
  image.seed = initial_seed_;
  image.left = seeded_only_ ? 1 : kWords - next_ + 1;
  image.seeded = 1;
  image.next = seeded_only_ ? 0 : static_cast<uint64_t>(next_);
  for (int i = 0; i < kWords; ++i) image.state[i] = state_[i];
  image.normal_is_valid = has_normal_;
  image.normal = has_normal_ ? normal_ : 0;
  image.float_normal_is_valid = has_float_normal_;
  image.float_normal = has_float_normal_ ? float_normal_ : 0;
  std::memcpy(out, &image, sizeof image);
}

void Generator::set_state(const void* state) {
  if (counts()) {
    PhiloxImage image;
    std::memcpy(&image, state, sizeof image);
    initial_seed_ = image.seed;
    return set_offset(image.offset);
  }
  StateImage image;
  std::memcpy(&image, state, sizeof image);
  const bool fresh = image.left == 1 && image.next == 0;
  const bool counts_agree = fresh || (image.next <= kWords && image.left == kWords + 1 - static_cast<int>(image.next));
  if (image.seeded != 1 || image.left < 1 || image.left > kWords || !counts_agree) {
    throw std::invalid_argument("set_state: Invalid mt19937 state, got left=" + std::to_string(image.left) +
                                ", next=" + std::to_string(image.next) + ". Pass what get_state() returned.");
  }
  initial_seed_ = image.seed;
  for (int i = 0; i < kWords; ++i) state_[i] = static_cast<uint32_t>(image.state[i]);
  seeded_only_ = fresh;
  next_ = fresh ? kWords : static_cast<int>(image.next);
  if (!fresh) random_table().temper(state_, words_);
  has_normal_ = image.normal_is_valid != 0;
  normal_ = image.normal;
  has_float_normal_ = image.float_normal_is_valid;
  float_normal_ = image.float_normal;
}

}  // namespace rl
