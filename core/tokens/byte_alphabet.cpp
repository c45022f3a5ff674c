// The characters of the alphabet to bytes, by a table.
#include "tokens/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "base/utf8.h"

namespace jemm {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::size_t kCharacters = 256 + 68;

// Byte of each code point of the alphabet, -1 for code points outside.
constexpr std::array<int, kCharacters> make_bytes() {
  std::array<int, kCharacters> bytes{};
  std::size_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = stands_for_itself(byte);
    bytes[static_cast<std::size_t>(byte)] = itself ? byte : -1;
    if (!itself) bytes[next++] = byte;
  }
  return bytes;
}

constexpr std::array<int, kCharacters> kBytes = make_bytes();

}  // namespace

bool append_alphabet_bytes(std::string_view spelled, std::string& bytes) {
  for (std::size_t i = 0; i < spelled.size();) {
    const auto byte = static_cast<unsigned char>(spelled[i]);
    const char32_t c = byte < 0x80 ? (++i, byte) : next_code_point(spelled, i);
    if (c >= kCharacters || kBytes[c] < 0) return false;
    bytes += static_cast<char>(kBytes[c]);
  }
  return true;
}

}  // namespace jemm
