// What every image fuzzer does with its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/decode.h"
#include "image/patches.h"

namespace jemm::fuzz {

/// Decodes signature + input, and cuts small pictures; only a refusal may be thrown.
inline int image(std::string_view signature, const std::uint8_t* data, std::size_t size) {
  std::string file(signature);
  file.append(reinterpret_cast<const char*>(data), size);
  try {
    Rgb rgb = decode_image(0, file);
    const std::size_t n_pixels = rgb.pixels.size() / 3;
    if (n_pixels < 4096) preprocess_image(std::move(rgb), {1024, 65536});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRequest) throw;
  }
  return 0;
}

}  // namespace jemm::fuzz
