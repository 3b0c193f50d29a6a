#include "image.h"

namespace rl {

const ImageTable& image_kernels() {
  static const ImageTable filled = [] {
    ImageTable t{};
    RL_ISA_CALL(fill_image, t);
    return t;
  }();
  return filled;
}

}  // namespace rl
