#include "image.h"

#include <algorithm>

#include "runtime.h"

namespace rl {
namespace {

template <class T>
void adjoint(const Resample& r, const void* dy, void* dx) {
  if (r.out == 0) return static_cast<void>(std::fill_n(static_cast<T*>(dx), r.outer * r.in * r.inner, T(0)));
  const T* weights = static_cast<const T*>(r.weights);
  const Buffer<int64_t> counts(r.in);
  std::fill_n(counts.data(), r.in, int64_t{0});
  int64_t taps = 1;
  for (int64_t i = 0; i < r.out * r.taps; ++i) taps = std::max(taps, ++counts[r.places[i]]);
  const Buffer<int64_t> places(r.in * taps);
  const Buffer<T> by(r.in * taps);
  std::fill_n(counts.data(), r.in, int64_t{0});
  for (int64_t i = 0; i < r.out * r.taps; ++i) {
    const int64_t row = r.places[i], at = row * taps + counts[row]++;
    places[at] = i / r.taps, by[at] = weights[i];
  }
  // Rows with fewer taps repeat their last place with weight 0, so that no other element has a part in them.
  for (int64_t row = 0; row < r.in; ++row) {
    for (int64_t k = counts[row]; k < taps; ++k) {
      places[row * taps + k] = k == 0 ? 0 : places[row * taps + k - 1], by[row * taps + k] = T(0);
    }
  }
  const Resample transposed{r.outer, r.out, r.in, r.inner, taps, places.data(), by.data()};
  image_kernels().resample[sizeof(T) == 8](transposed, dy, dx);
  for (int64_t row = 0; row < r.in; ++row) {
    if (counts[row] != 0) continue;
    for (int64_t o = 0; o < r.outer; ++o) std::fill_n(static_cast<T*>(dx) + (o * r.in + row) * r.inner, r.inner, T(0));
  }
}

}  // namespace

const ImageTable& image_kernels() {
  static const ImageTable filled = [] {
    ImageTable t{};
    RL_ISA_CALL(fill_image, t);
    return t;
  }();
  return filled;
}

void resample_adjoint(DType dtype, const Resample& r, const void* dy, void* dx) {
  (dtype == DType::Float64 ? adjoint<double> : adjoint<float>)(r, dy, dx);
}

}  // namespace rl
