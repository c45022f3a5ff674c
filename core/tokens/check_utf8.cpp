#include "tokens/check_utf8.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace jemm {

TextFault find_text_fault(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&byte](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  for (std::size_t i = 0; i < text.size();) {
    std::uint64_t eight = 0;
    if (i + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + i, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const unsigned lead = byte(i), second = byte(i + 1);
    std::size_t length = 0;
    if (lead < 0x80) {
      length = 1;
    } else if (lead >= 0xC2 && lead <= 0xDF && follows(i + 1)) {
      length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF && follows(i + 1) && follows(i + 2)) {
      if (lead == 0xED && second >= 0xA0) return {TextFault::kSurrogate, i};
      length = lead == 0xE0 && second < 0xA0 ? 0 : 3;
    } else if (lead >= 0xF0 && lead <= 0xF4 && follows(i + 1) && follows(i + 2) && follows(i + 3)) {
      const bool outside = (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90);
      length = outside ? 0 : 4;
    }
    if (length == 0) return {TextFault::kInvalid, i};
    i += length;
  }
  return {};
}

void check_text(std::string_view text) {
  const TextFault fault = find_text_fault(text);
  if (fault.kind == TextFault::kSurrogate) {
    throw Error::request("TypeError",
                         fmt::format("the text holds a lone surrogate at byte {}", fault.offset));
  }
  if (fault.kind == TextFault::kInvalid) {
    throw Error::request("UnicodeDecodeError",
                         fmt::format("the text is no UTF-8 at byte {}", fault.offset));
  }
}

}  // namespace jemm
