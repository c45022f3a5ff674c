// Reads arbitrary text as the image of a request.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "image/envelope.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    // Four letters give three bytes at most.
    if (jemm::decode_envelope(0, text).size() > size / 4 * 3) __builtin_trap();
  } catch (const jemm::Error& error) {
    if (error.kind() != jemm::ErrorKind::kRequest) throw;
  }
  return 0;
}
