// Lists of numbers and of image sizes as they are written on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

/// The numbers that a sweep may hold.
struct SweepRange {
  std::string_view option;  ///< for messages: "--tokens"
  std::int64_t lowest = 1;
  std::int64_t highest = 1;
};

/// A comma list of N, A-B (every number), A-B+STEP and A-B*FACTOR, each from A as long as it is at
/// most B: "98,278,512", "64-512+64", "64-4096*2". A number that comes again is left out. Throws
/// Error(kUsage) for anything else, for numbers outside the range and for more than 64 of them.
std::vector<std::int64_t> parse_sweep(std::string_view text, const SweepRange& range);

/// Images of one size; no images when count is 0.
struct ImageSet {
  std::int64_t width = 0, height = 0;
  std::int64_t count = 0;

  bool operator==(const ImageSet&) const = default;
};
/// "640x480x2"; "0" for none.
std::string image_set_text(const ImageSet& images);

/// A comma list of WxH, WxHxN (1 to 4 images, sides to 8192, 16,777,216 pixels each at most) and 0
/// (none). Throws Error(kUsage).
std::vector<ImageSet> parse_images(std::string_view text);

}  // namespace jemm
