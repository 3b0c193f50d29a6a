// The Mersenne Twister (Matsumoto and Nishimura, 1998) with PyTorch's seeding, order of draws and state format.
#pragma once
#include <cstdint>

namespace rl {

// Not synchronised: whoever draws holds the GIL, or owns the generator.
class Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;
  static constexpr int64_t kStateBytes = 5056;

  explicit Generator(uint64_t seed = kDefaultSeed) { manual_seed(seed); }

  void manual_seed(uint64_t seed);
  uint64_t seed();  // from the operating system's entropy; returns what it chose
  uint64_t initial_seed() const { return initial_seed_; }

  // kStateBytes bytes that PyTorch's Generator understands.
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
  double uniform() { return static_cast<double>(random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }
  double normal();  // Box and Muller (1958): every other call returns the kept second value

 private:
  static constexpr int kWords = 624;
  void refill();

  uint64_t initial_seed_ = 0;
  uint32_t state_[kWords];
  uint32_t words_[kWords];   // the outputs of `state_`
  int next_ = kWords;        // of words_
  bool seeded_only_ = true;  // nothing was drawn since seeding
  bool has_normal_ = false, has_float_normal_ = false;
  double normal_ = 0;
  float float_normal_ = 0;  // PyTorch keeps one; here only its state passes through
};

}  // namespace rl
