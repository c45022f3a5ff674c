// The white space of Python's str: what str.isspace, str.split and `\s` in a str pattern match.
#pragma once

namespace jemm {

/// True for the 29 code points of CPython's str.isspace. Not U+200B, not U+FEFF.
constexpr bool is_python_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace jemm
