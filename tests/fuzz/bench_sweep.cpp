// Reads arbitrary text as the sweeps of bench; what is taken keeps its limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "bench/sweep.h"

namespace {

template <typename Parse>
void try_parse(const Parse& parse) {
  try {
    parse();
  } catch (const jemm::Error& error) {
    if (error.kind() != jemm::ErrorKind::kUsage) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_parse([text] {
    for (const std::int64_t value :
         jemm::parse_sweep(text, {.option = "--tokens", .lowest = 2, .highest = 8192})) {
      if (value < 2 || value > 8192) __builtin_trap();
    }
  });
  try_parse([text] {
    for (const jemm::ImageSet& images : jemm::parse_images(text)) {
      if (images.count < 0 || images.count > 4 || images.width < 0) __builtin_trap();
    }
  });
  return 0;
}
