// Decodes the bytes behind a PNG's signature.
#include "image_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return jemm::fuzz::image("\x89PNG\r\n\x1a\n", data, size);
}
