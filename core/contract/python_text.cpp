// White space and the printable table.
#include "contract/python_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/python_space.h"
#include "base/utf8.h"

namespace jemm {
namespace {

// Code points at which printable turns on and off by turns, from U+0020 on.
constexpr auto kPrintableTurns = std::to_array<std::uint32_t>({
#include "contract/printable.inc"
});

/// Offset of the last code point of non-empty `text`.
std::size_t last_code_point(std::string_view text) {
  std::size_t offset = text.size() - 1;
  while (offset > 0 && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80) --offset;
  return offset;
}

}  // namespace

bool is_printable(char32_t c) {
  const auto turn = std::upper_bound(kPrintableTurns.begin(), kPrintableTurns.end(), c);
  return (turn - kPrintableTurns.begin()) % 2 == 1;
}

std::string_view strip(std::string_view text) {
  for (std::size_t next = 0; !text.empty(); next = 0) {
    if (!is_python_space(next_code_point(text, next))) break;
    text.remove_prefix(next);
  }
  while (!text.empty()) {
    const std::size_t last = last_code_point(text);
    std::size_t offset = last;
    if (!is_python_space(next_code_point(text, offset))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string flat(std::string_view text) {
  text = strip(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    if (!is_python_space(next_code_point(text, offset))) {
      out += text.substr(start, offset - start);
    } else if (out.back() != ' ') {  // never empty here: the text was stripped
      out += ' ';
    }
  }
  return out;
}

}  // namespace jemm
