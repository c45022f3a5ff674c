// Decoded pixels, and why an image is refused. Shared by every decoder of the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jemm {

/// Interleaved 8-bit pixels, rows top to bottom without padding.
struct Rgb {
  std::int32_t width = 0;
  std::int32_t height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]
};

/// Thrown as it is by the decoders below decode_image, which alone knows the image's number and the
/// words.
enum class ImageFault {
  kUndecodable,  ///< "could not be decoded"
  kOtherKind,    ///< "is not PNG, JPEG or WebP"
  kTooLarge,     ///< "exceeds 3145728 pixels"
};

/// The sides that a file claims, checked before any pixel buffer exists. Throws kUndecodable for an
/// empty side and above Pillow's bomb limit (178,956,970 pixels), kTooLarge above 3,145,728.
void check_claimed_size(std::uint64_t width, std::uint64_t height);

/// An Rgb of this size filled with black.
Rgb black_rgb(std::uint64_t width, std::uint64_t height);

}  // namespace jemm
