// The classes of code points that the split pattern asks for. Unicode 16.0, the reference's
// version.
#pragma once

#include <array>
#include <cstdint>

namespace jemm {

/// Bits of a code point's class. One without any is what the pattern calls [^\s\p{L}\p{M}\p{N}].
enum CharacterClass : std::uint8_t {
  kLetter = 1,  ///< \p{L}
  kMark = 2,    ///< \p{M}
  kNumber = 4,  ///< \p{N}
  kSpace = 8,   ///< \s, the property White_Space: without U+001C..U+001F
};

/// Class of every code point, indexed by it; built at the first call, shared afterwards.
const std::array<std::uint8_t, 0x110000>& character_classes();

}  // namespace jemm
