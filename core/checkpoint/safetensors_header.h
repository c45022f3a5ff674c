// The JSON header of a safetensors file: text to tensor descriptions. Knows no file layout.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

/// A description as written: syntax and types are checked, no number is yet trusted.
struct SafetensorsDescription {
  std::string name;
  std::string_view dtype;  ///< static text
  int dtype_bits = 0;
  std::vector<std::uint64_t> shape;
  std::array<std::uint64_t, 2> offsets{};  ///< begin and end, from the end of the header
};

/// Throws Error(kInput) that begins with `file`. Memory and time are linear in the text.
std::vector<SafetensorsDescription> parse_safetensors_header(std::string_view text,
                                                             const std::string& file);

}  // namespace jemm
