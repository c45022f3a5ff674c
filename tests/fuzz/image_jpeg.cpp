// Decodes the bytes behind a JPEG's SOI.
#include "image_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return jemm::fuzz::image("\xFF\xD8", data, size);
}
