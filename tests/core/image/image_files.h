// Small image files built by hand for tests: PNG chunks, JPEG segments, RIFF chunks.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/decode.h"
#include "image/patches.h"

namespace jemm::testing {

inline std::string big(std::uint64_t value, int n_bytes) {
  std::string out;
  for (int i = n_bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

inline std::string little(std::uint64_t value, int n_bytes) {
  std::string out;
  for (int i = 0; i < n_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

inline std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

inline std::string deflate(std::string_view raw) {
  uLongf size = compressBound(raw.size());
  std::string out(size, '\0');
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
            raw.size(), 9);
  out.resize(size);
  return out;
}

inline std::string png_chunk(std::string_view type, std::string_view body) {
  const std::string typed = std::string(type) + std::string(body);
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size()));
  return big(body.size(), 4) + typed + big(sum, 4);
}

/// Signature and IHDR.
inline std::string png_head(std::uint64_t width, std::uint64_t height, int depth, int color) {
  return std::string("\x89PNG\r\n\x1a\n") +
         png_chunk("IHDR", big(width, 4) + big(height, 4) + bytes({depth, color, 0, 0, 0}));
}

/// A whole file; `rows` with their filter bytes, `before` the chunks in front of IDAT.
inline std::string png(std::uint64_t width, std::uint64_t height, int depth, int color,
                       std::string_view rows, std::string_view before = {}) {
  return png_head(width, height, depth, color) + std::string(before) +
         png_chunk("IDAT", deflate(rows)) + png_chunk("IEND", "");
}

inline std::string jpeg_segment(int marker, std::string_view body) {
  return bytes({0xFF, marker}) + big(body.size() + 2, 2) + std::string(body);
}

inline std::string riff_chunk(std::string_view type, std::string_view body) {
  return std::string(type) + little(body.size(), 4) + std::string(body) +
         (body.size() % 2 != 0 ? std::string(1, '\0') : "");
}

inline std::string riff(std::string_view chunks) {
  return "RIFF" + little(chunks.size() + 4, 4) + "WEBP" + std::string(chunks);
}

/// The RGB bytes of a decoded file, or its refusal.
inline std::string decoded(const std::string& file) {
  try {
    const Rgb image = decode_image(0, file);
    return {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace jemm::testing
