// Big- and little-endian integers out of a byte string; reading past the end is an undecodable
// image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "image/rgb.h"

namespace jemm {

inline std::uint8_t byte_at(std::string_view bytes, std::size_t offset) {
  if (offset >= bytes.size()) throw ImageFault::kUndecodable;
  return static_cast<std::uint8_t>(bytes[offset]);
}

inline std::uint16_t u16_big(std::string_view bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(byte_at(bytes, offset) << 8 | byte_at(bytes, offset + 1));
}

inline std::uint32_t u32_big(std::string_view bytes, std::size_t offset) {
  return std::uint32_t{u16_big(bytes, offset)} << 16 | u16_big(bytes, offset + 2);
}

inline std::uint16_t u16_little(std::string_view bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(byte_at(bytes, offset) | byte_at(bytes, offset + 1) << 8);
}

inline std::uint32_t u32_little(std::string_view bytes, std::size_t offset) {
  return u16_little(bytes, offset) | std::uint32_t{u16_little(bytes, offset + 2)} << 16;
}

}  // namespace jemm
