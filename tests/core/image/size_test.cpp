// The size rule, the preprocessor configuration, the order of patch values, and positions.
#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "image/patches.h"
#include "image/positions.h"
#include "image/size.h"

namespace jemm {
namespace {

constexpr PreprocessorConfig kConfig{65536, 16777216};

ImageSize resized(std::int64_t width, std::int64_t height,
                  const PreprocessorConfig& config = kConfig) {
  return resized_size({width, height}, config);
}

std::string refusal(std::int64_t width, std::int64_t height) {
  try {
    resized(width, height);
  } catch (const Error& error) {
    CHECK(error.type() == "ValueError");
    return error.what();
  }
  return "accepted";
}

#define CHECK_SIZE(size, w, h)  \
  do {                          \
    const ImageSize s = (size); \
    CHECK(s.width == (w));      \
    CHECK(s.height == (h));     \
  } while (false)

// Values of Transformers' smart_resize with factor 32.
TEST_CASE("sides become multiples of 32, halves to even") {
  CHECK_SIZE(resized(1280, 800), 1280, 800);
  CHECK_SIZE(resized(336, 304), 320, 320);  // 10.5 and 9.5
  CHECK_SIZE(resized(337, 303), 352, 288);
  CHECK_SIZE(resized(272, 240), 256, 256);  // 8.5 and 7.5
  CHECK_SIZE(resized(3000, 1000), 3008, 992);
}

TEST_CASE("small images grow and large ones shrink") {
  CHECK_SIZE(resized(1, 1), 256, 256);
  CHECK_SIZE(resized(200, 1), 3648, 32);
  CHECK_SIZE(resized(8, 8), 256, 256);
  CHECK_SIZE(resized(255, 256), 256, 256);
  CHECK_SIZE(resized(100, 300), 160, 448);
  const PreprocessorConfig narrow{1024, 65536};
  CHECK_SIZE(resized(1280, 800, narrow), 320, 192);
  CHECK_SIZE(resized(4000, 20, narrow), 3616, 32);
}

TEST_CASE("the ratio of the sides is limited, and printed as Python prints it") {
  CHECK(refusal(200, 1) == "accepted");
  CHECK(refusal(201, 1) == "absolute aspect ratio must be smaller than 200, got 201.0");
  CHECK(refusal(3, 1000) ==
        "absolute aspect ratio must be smaller than 200, got 333.3333333333333");
  CHECK(refusal(7, 2000) ==
        "absolute aspect ratio must be smaller than 200, got 285.7142857142857");
}

std::string config_refusal(const std::string& text) {
  try {
    parse_preprocessor_config(text, "preprocessor_config.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kInput);
    return error.what();
  }
  return "accepted";
}

TEST_CASE("the preprocessor configuration is read or refused by name") {
  const std::string rest =
      R"("image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5],"size":{"shortest_edge":65536,"longest_edge":16777216}})";
  const std::string good = R"({"patch_size":16,"merge_size":2,"temporal_patch_size":2,)" + rest;
  CHECK(config_refusal(good) == "accepted");
  const PreprocessorConfig config = parse_preprocessor_config(good, "x");
  CHECK(config.min_pixels == 65536);
  CHECK(config.max_pixels == 16777216);
  const auto changed = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return config_refusal(text);
  };
  CHECK(changed("\"patch_size\":16", "\"patch_size\":14") ==
        "preprocessor_config.json: patch_size is 14, but only 16 is supported");
  CHECK(changed("\"patch_size\":16,", "").find("patch_size") != std::string::npos);
  CHECK(changed("\"merge_size\":2", "\"merge_size\":4").find("merge_size") != std::string::npos);
  CHECK(changed("\"temporal_patch_size\":2", "\"temporal_patch_size\":1").find("temporal") !=
        std::string::npos);
  CHECK(changed("\"image_mean\":[0.5", "\"image_mean\":[0.4").find("image_mean") !=
        std::string::npos);
  CHECK(changed("\"image_std\":[0.5,0.5,0.5]", "\"image_std\":0.5").find("image_std") !=
        std::string::npos);
  CHECK(changed("65536", "0").find("size.shortest_edge") != std::string::npos);
  CHECK(changed("65536", "\"x\"").find("size.shortest_edge") != std::string::npos);
  CHECK(changed("65536", "16777217").find("above") != std::string::npos);
  CHECK(changed("{\"patch", "{\"do_resize\":false,\"patch").find("do_resize") != std::string::npos);
  CHECK(changed("{\"patch", "{\"resample\":2,\"patch").find("resample") != std::string::npos);
  CHECK(changed("{\"patch", "{\"min_pixels\":9,\"patch").find("min_pixels") != std::string::npos);
  CHECK(config_refusal("[]").find("not a JSON object") != std::string::npos);
  CHECK(config_refusal("{").find("not a JSON object") != std::string::npos);
  CHECK(config_refusal(std::string(100000, '[')).find("not a JSON object") != std::string::npos);
}

TEST_CASE("patch values lie in the tower's order") {
  // 64 x 32 pixels whose red is the patch number, green the column and blue the row in the patch.
  Rgb image = black_rgb(64, 32);
  for (std::size_t y = 0; y < 32; ++y) {
    for (std::size_t x = 0; x < 64; ++x) {
      std::uint8_t* pixel = &image.pixels[3 * (64 * y + x)];
      pixel[0] = static_cast<std::uint8_t>(x / 16 + 4 * (y / 16));
      pixel[1] = static_cast<std::uint8_t>(x % 16);
      pixel[2] = static_cast<std::uint8_t>(y % 16);
    }
  }
  const Patches patches = cut_patches(image);
  CHECK(patches.grid_thw == std::array<std::int64_t, 3>{1, 2, 4});
  CHECK(patches.n_patches() == 8);
  CHECK(patches.n_tokens() == 2);
  const auto value = [](int x) { return (static_cast<float>(x) - 127.5f) / 127.5f; };
  const std::array<int, 8> order = {0, 1, 4, 5, 2, 3, 6, 7};
  for (std::size_t p = 0; p < 8; ++p) {
    const float* row = patches.values.data() + p * Patches::kRowValues;
    for (std::size_t frame = 0; frame < 2; ++frame) {
      CHECK(row[frame * 256] == value(order[p]));
      CHECK(row[512 + frame * 256 + 16 * 3 + 9] == value(9));
      CHECK(row[1024 + frame * 256 + 16 * 3 + 9] == value(3));
    }
  }
}

TEST_CASE("patches reuse memory and leave nothing of it") {
  Rgb large = black_rgb(64, 64);
  Rgb small = black_rgb(32, 32);
  std::fill(small.pixels.begin(), small.pixels.end(), std::uint8_t{255});
  Patches patches = cut_patches(large);
  patches = cut_patches(small, std::move(patches));
  CHECK(patches.values == std::vector<float>(4 * Patches::kRowValues, 1.0f));
}

TEST_CASE("an image spreads over two axes and the text goes on behind it") {
  constexpr std::int32_t kPad = 9;
  const std::vector<std::int32_t> tokens = {1, kPad, kPad, kPad, kPad, kPad, kPad, 2, kPad, 3};
  const std::vector<std::array<std::int64_t, 3>> grids = {{1, 4, 6}, {1, 2, 2}};
  const std::vector<std::array<std::int32_t, 3>> expected = {
      {0, 0, 0}, {1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 2, 1},
      {1, 2, 2}, {1, 2, 3}, {4, 4, 4}, {5, 5, 5}, {6, 6, 6}};
  CHECK(prompt_positions(tokens, kPad, grids) == expected);
  const auto refused = [&](std::vector<std::int32_t> other,
                           std::vector<std::array<std::int64_t, 3>> sizes) {
    CHECK_THROWS_AS(prompt_positions(other, kPad, sizes), Error);
  };
  refused({1, kPad, kPad, 2}, {{1, 4, 4}});
  refused({1, kPad, kPad, 2}, {{1, 2, 2}});
  refused({1, kPad}, {{1, 4, 4}});
  refused({1, 2}, {{1, 2, 2}});
  CHECK(prompt_positions(std::vector<std::int32_t>{4, 5}, kPad, {}).size() == 2);
}

}  // namespace
}  // namespace jemm
