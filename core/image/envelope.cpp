// Data URLs and base64 as the reference reads them.
#include "image/envelope.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/python_space.h"
#include "base/utf8.h"

namespace jemm {
namespace {

std::string without_space(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    if (!is_python_space(next_code_point(text, offset))) out += text.substr(start, offset - start);
  }
  return out;
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// binascii.a2b_base64(text, strict_mode=True), or nothing where that fails. Padding completes a
/// group of two or three digits, and nothing may follow it; behind a complete group any number of
/// further '=' passes, but no digit.
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

}  // namespace

std::string decode_envelope(std::size_t index, std::string_view text) {
  constexpr std::string_view kMark = ";base64";
  if (text.starts_with("data:")) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!text.substr(0, comma).ends_with(kMark)) {
      throw Error::request("ValueError", fmt::format("image {} is not a base64 data URL", index));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  const std::string packed = without_space(text);
  if (std::any_of(packed.begin(), packed.end(), [](char c) { return (c & 0x80) != 0; })) {
    throw Error::request("ValueError", "string argument should contain only ASCII characters");
  }
  std::optional<std::string> bytes = decode_base64(packed);
  if (!bytes) {
    throw Error::request("ValueError", fmt::format("image {} could not be decoded", index));
  }
  return std::move(*bytes);
}

}  // namespace jemm
