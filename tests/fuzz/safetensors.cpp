// Any bytes as a safetensors file, or as the header of one whose length and data fit.
#include "checkpoint/safetensors.h"

#include <cstring>

#include "base/error.h"

namespace {

/// Byte 0 says whether the rest is a whole file (even) or a header; byte 1 is then the data's size.
std::string make_file(const std::uint8_t* data, std::size_t size) {
  const std::string rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[0] % 2 == 0) return rest;
  const std::uint64_t length = rest.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest +
         std::string(data[1], '\x01');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::make_shared<std::string>(make_file(data, size));
  try {
    const jemm::SafetensorsFile file({std::as_bytes(std::span(*bytes)), bytes}, "FILE");
    for (const jemm::SafetensorsEntry& entry : file.entries()) {
      if (file.find(entry.name) != &entry) __builtin_trap();
      if (entry.end < entry.begin || entry.end > bytes->size()) __builtin_trap();
      try {
        const jemm::Tensor wide = jemm::widened(file.tensor(entry));
        if (wide.data.bytes.size() != static_cast<std::size_t>(wide.size()) * 4) __builtin_trap();
      } catch (const jemm::Error&) {  // a type that weights are not kept in
      }
    }
  } catch (const jemm::Error&) {
  }
  return 0;
}
