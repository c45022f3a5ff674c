// Writes, reads, counts and checks code points.
#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace jemm {

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

char32_t next_code_point(std::string_view text, std::size_t& offset) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t c = length == 1 ? lead : lead & (0x7Fu >> length);
  const std::size_t end = std::min(offset + length, text.size());
  for (++offset; offset < end; ++offset) {
    c = (c << 6) | (static_cast<unsigned char>(text[offset]) & 0x3Fu);
  }
  return c;
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string_view first_code_points(std::string_view text, std::size_t count) {
  std::size_t offset = 0;
  while (count-- > 0 && offset < text.size()) next_code_point(text, offset);
  return text.substr(0, offset);
}

// The second byte's range is narrower behind some leads: no overlong form, nothing over U+10FFFF.
std::size_t code_point_length(std::string_view bytes, Utf8Fault& fault) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto continues = [&](std::size_t i) { return (at(i) & 0xC0) == 0x80; };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  fault = {1, "invalid start byte"};
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  fault.reason = "invalid continuation byte";
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) {
      fault = {i, "unexpected end of data"};
      return 0;
    }
    bool good = continues(i);
    if (i == 1 && lead == 0xE0) good = good && at(1) >= 0xA0;
    if (i == 1 && lead == 0xF0) good = good && at(1) >= 0x90;
    if (i == 1 && lead == 0xF4) good = good && at(1) < 0x90;
    // A surrogate's three bytes pass; cut off, they are an invalid continuation of 0xED.
    if (i == 1 && lead == 0xED && at(1) >= 0xA0) {
      good = good && bytes.size() >= 3 && continues(2);
    }
    if (!good) {
      fault.length = i;
      return 0;
    }
  }
  return length;
}

std::size_t skip_ascii(std::string_view bytes, std::size_t offset) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  while (offset + 8 <= bytes.size()) {
    std::uint64_t block;
    std::memcpy(&block, bytes.data() + offset, 8);
    if ((block & kHighBits) != 0) break;
    offset += 8;
  }
  return offset;
}

bool is_utf8(std::string_view bytes) {
  for (std::size_t at = skip_ascii(bytes, 0); at < bytes.size(); at = skip_ascii(bytes, at)) {
    Utf8Fault fault;
    const std::size_t length = code_point_length(bytes.substr(at), fault);
    if (length == 0) return false;
    std::size_t end = at;
    if (is_surrogate(next_code_point(bytes, end))) return false;
    at = end;
  }
  return true;
}

}  // namespace jemm
