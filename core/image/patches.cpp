// The order of the values, and their formula.
#include "image/patches.h"

#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "base/sha256.h"
#include "image/resize.h"

namespace jemm {
namespace {

constexpr std::size_t kPatch = kPatchSize;
constexpr std::size_t kMerge = kMergeSize;
constexpr std::size_t kFramePixels = kPatch * kPatch;

std::array<float, 256> make_value_table() {
  std::array<float, 256> table;
  for (std::size_t x = 0; x < table.size(); ++x) {
    table[x] = (static_cast<float>(x) - 127.5f) / 127.5f;
  }
  return table;
}

/// One row of 1536 values from the patch whose first pixel is `pixel`.
void cut_patch(const std::uint8_t* pixel, std::size_t stride, const std::array<float, 256>& table,
               float* row) {
  for (std::size_t y = 0; y < kPatch; ++y, pixel += stride) {
    float* out = row + y * kPatch;
    for (std::size_t x = 0; x < kPatch; ++x) {
      for (std::size_t c = 0; c < 3; ++c) out[2 * c * kFramePixels + x] = table[pixel[3 * x + c]];
    }
  }
  for (std::size_t c = 0; c < 3; ++c) {
    float* frame = row + 2 * c * kFramePixels;
    std::memcpy(frame + kFramePixels, frame, kFramePixels * sizeof(float));
  }
}

}  // namespace

Patches cut_patches(const Rgb& image, Patches spent) {
  static const std::array<float, 256> table = make_value_table();
  const std::int64_t grid_h = image.height / kPatchSize;
  const std::int64_t grid_w = image.width / kPatchSize;
  Patches patches = std::move(spent);
  patches.grid_thw = {1, grid_h, grid_w};
  patches.values.resize(static_cast<std::size_t>(grid_h * grid_w) * Patches::kRowValues);
  const std::size_t stride = 3 * static_cast<std::size_t>(image.width);
  float* row = patches.values.data();
  for (std::size_t y = 0; y < static_cast<std::size_t>(grid_h); y += kMerge) {
    for (std::size_t x = 0; x < static_cast<std::size_t>(grid_w); x += kMerge) {
      for (std::size_t i = 0; i < kMerge * kMerge; ++i, row += Patches::kRowValues) {
        const std::size_t top = (y + i / kMerge) * kPatch;
        const std::size_t left = (x + i % kMerge) * kPatch;
        cut_patch(image.pixels.data() + top * stride + 3 * left, stride, table, row);
      }
    }
  }
  return patches;
}

Patches preprocess_image(Rgb image, const PreprocessorConfig& config, Patches spent) {
  const ImageSize size = resized_size({image.width, image.height}, config);
  return cut_patches(resize_bicubic(std::move(image), static_cast<std::int32_t>(size.width),
                                    static_cast<std::int32_t>(size.height)),
                     std::move(spent));
}

std::string rgb_sha256(const Rgb& image) {
  return sha256_hex(std::as_bytes(std::span(image.pixels)));
}

std::string values_sha256(const Patches& patches) {
  static_assert(std::endian::native == std::endian::little);
  return sha256_hex(std::as_bytes(std::span(patches.values)));
}

}  // namespace jemm
