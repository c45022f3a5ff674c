// Pixels to the rows that the vision tower reads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "image/rgb.h"
#include "image/size.h"

namespace jemm {

/// One image, ready for the vision tower.
struct Patches {
  static constexpr std::size_t kRowValues =
      3 * kTemporalPatchSize * kPatchSize * kPatchSize;  // 1536

  std::array<std::int64_t, 3> grid_thw{};  // patches: 1, height / 16, width / 16
  /// [grid_h / 2, grid_w / 2, 2, 2 | channel 3, frame 2, 16, 16]: a row a patch, the four patches
  /// of a vision token together. Values (x - 127.5) / 127.5 in float32, a true division.
  std::vector<float> values;

  std::size_t n_patches() const { return values.size() / kRowValues; }
  std::size_t n_tokens() const { return n_patches() / (kMergeSize * kMergeSize); }
};

/// Cuts an image whose sides are multiples of 32. `spent` lends its memory: taking 6 floats a pixel
/// fresh from the system costs more than filling them.
Patches cut_patches(const Rgb& image, Patches spent = {});

/// resized_size, resize_bicubic and cut_patches. Throws for the aspect ratio only.
Patches preprocess_image(Rgb image, const PreprocessorConfig& config, Patches spent = {});

/// SHA-256 of the RGB bytes, and of the values as little-endian float32: the hashes of the goldens.
std::string rgb_sha256(const Rgb& image);
std::string values_sha256(const Patches& patches);

}  // namespace jemm
