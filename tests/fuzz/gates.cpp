// Reads arbitrary bytes as a gates file; what is understood prints and reads back the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "judge/gates.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jemm;
  try {
    const Gates gates =
        parse_gates(std::string_view(reinterpret_cast<const char*>(data), size), "gates.json");
    const std::string printed = gates_json(gates);
    if (gates_json(parse_gates(printed, "printed")) != printed) __builtin_trap();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
  }
  return 0;
}
