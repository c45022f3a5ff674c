// Chooses the decoder by content and words every refusal.
#include "image/decode.h"

#include <fmt/format.h>

#include "base/error.h"
#include "image/jpeg.h"
#include "image/kind.h"
#include "image/png.h"
#include "image/webp.h"

namespace jemm {
namespace {

constexpr std::uint64_t kMaxPixels = 3072 * 32 * 32;
constexpr std::uint64_t kBombPixels = 178'956'970;

Rgb decode_kind(std::string_view bytes) {
  switch (image_kind(bytes)) {
    case ImageKind::kPng:
      return decode_png(bytes);
    case ImageKind::kJpeg:
      return decode_jpeg(bytes);
    case ImageKind::kWebp:
      return decode_webp(bytes);
    case ImageKind::kOther:
      throw ImageFault::kOtherKind;
    case ImageKind::kUnknown:
      break;
  }
  throw ImageFault::kUndecodable;
}

std::string fault_words(ImageFault fault) {
  switch (fault) {
    case ImageFault::kOtherKind:
      return "is not PNG, JPEG or WebP";
    case ImageFault::kTooLarge:
      return fmt::format("exceeds {} pixels", kMaxPixels);
    case ImageFault::kUndecodable:
      break;
  }
  return "could not be decoded";
}

}  // namespace

void check_claimed_size(std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0 || width > kBombPixels || height > kBombPixels ||
      width * height > kBombPixels) {
    throw ImageFault::kUndecodable;
  }
  if (width * height > kMaxPixels) throw ImageFault::kTooLarge;
}

Rgb black_rgb(std::uint64_t width, std::uint64_t height) {
  return {static_cast<std::int32_t>(width), static_cast<std::int32_t>(height),
          std::vector<std::uint8_t>(width * height * 3)};
}

Rgb decode_image(std::size_t index, std::string_view bytes) {
  try {
    return decode_kind(bytes);
  } catch (const ImageFault fault) {
    throw Error::request("ValueError", fmt::format("image {} {}", index, fault_words(fault)));
  }
}

std::string image_library_versions() {
  return fmt::format("{}, {}, {}", png_library_version(), jpeg_library_version(),
                     webp_library_version());
}

}  // namespace jemm
