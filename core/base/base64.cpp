// Base64, as strict as CPython.
#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace jemm {
namespace {

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

// Padding completes a group of two or three digits, and nothing may follow it; behind a complete
// group any number of further '=' passes, but no digit.
std::optional<std::string> decode_base64(std::string_view text) {
  const std::size_t digits = std::min(text.find('='), text.size());
  const std::string_view padding = text.substr(digits);
  const std::size_t rest = digits % 4;
  if (padding.find_first_not_of('=') != std::string_view::npos) return std::nullopt;
  if (digits == 0 && !padding.empty()) return std::nullopt;
  if (rest != 0 && (rest == 1 || padding.size() != 4 - rest)) return std::nullopt;
  std::string out;
  out.reserve(digits / 4 * 3 + 2);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const int digit = base64_digit(text[i]);
    if (digit < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    // Digit i of a group completes a byte from the second digit on.
    if (i % 4 != 0) out += static_cast<char>(group >> (6 - 2 * (i % 4)) & 0xFF);
  }
  return out;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= n ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

}  // namespace jemm
