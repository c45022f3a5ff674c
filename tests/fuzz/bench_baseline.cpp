// Reads arbitrary bytes as a baseline of bench; what is understood can be compared with.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "bench/baseline.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jemm;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Baseline(text, "baseline.json").compare(BenchReport(), 1.1, [] { return false; });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
  }
  return 0;
}
