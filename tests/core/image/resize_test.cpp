// Resizing against torchvision, and the vector loops against the plain ones.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "image/patches.h"
#include "image/resize.h"
#include "image/resize_rows.h"

namespace jemm {
namespace {

using nlohmann::json;

/// The patterns of golden/tools/image_cases.py.
Rgb pattern(const std::string& name, std::int32_t width, std::int32_t height) {
  Rgb image = black_rgb(static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height));
  std::uint32_t state = 1;
  std::size_t at = 0;
  for (std::int32_t y = 0; y < height; ++y) {
    for (std::int32_t x = 0; x < width; ++x) {
      const bool white = name == "checkerboard" ? (x + y) % 2 != 0
                         : name == "point"      ? x == width / 2 && y == height / 2
                         : name == "columns"    ? x % 2 != 0
                                                : y % 2 != 0;
      for (int c = 0; c < 3; ++c) {
        state = state * 1664525u + 1013904223u;
        image.pixels[at++] = static_cast<std::uint8_t>(name == "noise" ? state >> 24
                                                       : white         ? 255
                                                                       : 0);
      }
    }
  }
  return image;
}

TEST_CASE("resizing equals torchvision's (bug log 24)") {
  std::ifstream file(JEMM_SOURCE_DIR "/golden/image-sweep/resize.jsonl");
  int n = 0;
  for (std::string text; std::getline(file, text); ++n) {
    const json line = json::parse(text);
    CAPTURE(text);
    const auto& in = line.at("in");
    const auto& out = line.at("out");
    const Rgb resized = resize_bicubic(pattern(line.at("pattern"), in[0], in[1]), out[0], out[1]);
    CHECK(rgb_sha256(resized) == line.at("sha256").get<std::string>());
  }
  CHECK(n == 168);
}

TEST_CASE("both passes give with vectors what they give without") {
  for (const std::size_t in : {1u, 2u, 3u, 7u, 33u, 100u, 1000u}) {
    for (const std::size_t out : {1u, 2u, 31u, 32u, 64u, 96u}) {
      const ResizeAxis axis = resize_axis(in, out);
      const Rgb image = pattern("noise", static_cast<std::int32_t>(in), 1);
      // The byte behind the end must stay what it was.
      std::vector<std::uint8_t> vector(3 * out + 1, 77), plain = vector;
      resize_row(axis, image.pixels.data(), vector.data());
      resize_row_plain(axis, image.pixels.data(), plain.data());
      CHECK(vector == plain);
      for (const std::size_t width : {1u, 5u, 6u, 11u}) {
        const Rgb tall =
            pattern("noise", static_cast<std::int32_t>(width), static_cast<std::int32_t>(in));
        std::vector<std::uint8_t> a(3 * width + 1, 77), b = a;
        resize_column(axis, out / 2, tall.pixels.data(), 3 * width, a.data());
        resize_column_plain(axis, out / 2, tall.pixels.data(), 0, 3 * width, b.data());
        CHECK(a == b);
      }
    }
  }
}

TEST_CASE("a step stays within 8 bits between the passes") {
  // One white column on black: its negative lobes are cut to 0 by the first pass.
  const Rgb wide = resize_bicubic(pattern("columns", 2, 1), 8, 1);
  CHECK(*std::max_element(wide.pixels.begin(), wide.pixels.end()) == 255);
  CHECK(*std::min_element(wide.pixels.begin(), wide.pixels.end()) == 0);
}

TEST_CASE("an equal size is left alone") {
  const Rgb image = pattern("noise", 64, 32);
  CHECK(resize_bicubic(image, 64, 32).pixels == image.pixels);
}

}  // namespace
}  // namespace jemm
