// Code points to and from UTF-8. Text inside the program is UTF-8 in which a lone surrogate may
// stand in its own three-byte form (ED A0 80 .. ED BF BF), as Python strings may hold one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jemm {

/// Appends `code_point` (0 .. 0x10FFFF, surrogates included) to `out`.
void append_utf8(std::string& out, char32_t code_point);

/// Reads the code point at `offset` of valid text and moves `offset` behind it.
/// Requires offset < text.size().
char32_t next_code_point(std::string_view text, std::size_t& offset);

/// Number of code points of valid text.
std::size_t count_code_points(std::string_view text);

/// The first `count` code points of valid text.
std::string_view first_code_points(std::string_view text, std::size_t count);

/// Bytes that are no code point, as CPython reports them.
struct Utf8Fault {
  std::size_t length = 0;  ///< bytes that the message names
  const char* reason = "";
};

/// Number of bytes of the code point at the start of `bytes`, which may be a surrogate; 0, and
/// `fault` set, when there is none. Requires bytes.size() > 0.
std::size_t code_point_length(std::string_view bytes, Utf8Fault& fault);

/// Whether bytes are UTF-8 as other programs take it: without surrogates.
bool is_utf8(std::string_view bytes);

/// An offset at or behind `offset` with nothing but ASCII between: for walks, to get on faster.
std::size_t skip_ascii(std::string_view bytes, std::size_t offset);

inline constexpr bool is_surrogate(char32_t c) {
  return c >= 0xD800 && c <= 0xDFFF;
}

}  // namespace jemm
