// The size that an image is brought to, and the preprocessor configuration behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jemm {

inline constexpr std::int64_t kPatchSize = 16;  // pixels a side
inline constexpr std::int64_t kMergeSize = 2;   // patches a side of one vision token
inline constexpr std::int64_t kTemporalPatchSize =
    2;  // frames a patch; a still image repeats its one

/// What preprocessor_config.json leaves open; everything else is fixed.
struct PreprocessorConfig {
  std::int64_t min_pixels = 0;  ///< size.shortest_edge, a number of pixels despite its name
  std::int64_t max_pixels = 0;  ///< size.longest_edge
};

/// Throws Error(kInput) naming `file` and the key, for anything other than 16-pixel patches merged
/// 2 x 2 from 2 frames, mean and standard deviation 0.5, bicubic resizing and every step switched
/// on.
PreprocessorConfig parse_preprocessor_config(std::string_view json, const std::string& file);

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// Both sides become multiples of 32 near the original, with the number of pixels between the
/// limits: the rule of Qwen2-VL in double precision, rounding halves to even. Throws
/// Error::request("ValueError", "absolute aspect ratio must be smaller than 200, got {ratio}").
ImageSize resized_size(ImageSize original, const PreprocessorConfig& config);

}  // namespace jemm
