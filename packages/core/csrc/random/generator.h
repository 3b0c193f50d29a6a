// Streams of random words: the Mersenne Twister (Matsumoto and Nishimura, 1998) with PyTorch's seeding, order of draws
// and state format; and Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011), whose word at a place is a function of
// seed and place alone.
#pragma once
#include <cstdint>

namespace rl {

enum class Algorithm : uint8_t { MersenneTwister, Philox };

// Not synchronised: whoever draws holds the GIL, or owns the generator.
class Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  static constexpr int64_t kMaxStateBytes = 5056;

  explicit Generator(uint64_t seed = kDefaultSeed, Algorithm algorithm = Algorithm::MersenneTwister)
      : algorithm_(algorithm) {
    manual_seed(seed);
  }

  Algorithm algorithm() const { return algorithm_; }
  // Whether it can go on from any place of its stream at once, so that threads can share a draw.
  bool counts() const { return algorithm_ == Algorithm::Philox; }

  void manual_seed(uint64_t seed);
  uint64_t seed();  // from the operating system's entropy; returns what it chose
  uint64_t initial_seed() const { return initial_seed_; }

  // Bytes of a state: as PyTorch's CPU generator writes it for the Mersenne Twister, as its CUDA generator for Philox.
  int64_t state_bytes() const { return counts() ? 16 : kMaxStateBytes; }
  void get_state(void* out) const;
  // Throws std::invalid_argument if this is no valid state.
  void set_state(const void* state);

  uint32_t random() {
    if (next_ == kWords) refill();
    return words_[next_++];
  }
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  void random(uint32_t* out, int64_t n);  // the same as n calls
  // Words drawn since seeding, and going on from any place, in a time that does not depend on it: where counts() only.
  uint64_t offset() const { return refills_ * kWords - static_cast<uint64_t>(kWords - next_); }
  void set_offset(uint64_t words);

  double uniform() { return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }
  double normal();  // Box and Muller (1958): every other call returns the kept second value

 private:
  static constexpr int kWords = 624;
  void refill();

  Algorithm algorithm_;
  uint64_t initial_seed_ = 0;
  uint64_t refills_ = 0;     // of Philox
  uint32_t state_[kWords];   // of the Mersenne Twister
  uint32_t words_[kWords];   // its outputs, or the next ones of Philox
  int next_ = kWords;        // of words_
  bool seeded_only_ = true;  // nothing was drawn since seeding
  bool has_normal_ = false, has_float_normal_ = false;
  double normal_ = 0;
  float float_normal_ = 0;  // PyTorch keeps one; here only its state passes through
};

}  // namespace rl
