// Decodes a file of any kind, with WebP seeds.
#include "image_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return jemm::fuzz::image("", data, size);
}
