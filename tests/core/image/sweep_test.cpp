// Image files of every sort against what the pinned libraries made of them
// (golden/tools/image_sweep.py).
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "image/decode.h"
#include "image/envelope.h"
#include "image/patches.h"

namespace jemm {
namespace {

using nlohmann::json;

constexpr PreprocessorConfig kConfig{65536, 16777216};

/// The case's fields as this project finds them.
json outcome(const json& line) {
  try {
    Rgb image = decode_image(0, decode_envelope(0, line.at("base64").get<std::string>()));
    json found = {
        {"width", image.width}, {"height", image.height}, {"rgb_sha256", rgb_sha256(image)}};
    const Patches patches = preprocess_image(std::move(image), kConfig);
    found["grid_thw"] = patches.grid_thw;
    found["pixel_values_sha256"] = values_sha256(patches);
    return found;
  } catch (const Error& error) {
    std::string detail = error.what();
    if (detail.starts_with("image 0 ")) detail.erase(0, 8);
    return {{"error", detail}};
  }
}

/// Returns the number of cases. A case under "allowed" may differ with libraries older than the
/// reference's, but is then refused or decoded, never a crash.
int check_sweep(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), "cannot open " << path);
  int n = 0;
  for (std::string text; std::getline(file, text); ++n) {
    const json line = json::parse(text);
    const std::string name = line.at("name");
    CAPTURE(name);
    const json found = outcome(line);
    if (line.contains("allowed")) continue;
    if (line.contains("error")) {
      CHECK(found.value("error", "decoded") == line.at("error").get<std::string>());
      continue;
    }
    for (const auto& [key, value] : found.items()) CHECK(value == line.value(key, json()));
  }
  return n;
}

TEST_CASE("files chosen by hand") {
  CHECK(check_sweep(JEMM_SOURCE_DIR "/golden/image-sweep/chosen.jsonl") == 274);
}

TEST_CASE("random files") {
  CHECK(check_sweep(JEMM_SOURCE_DIR "/golden/image-sweep/random.jsonl") == 900);
}

TEST_SUITE("extra") {
  TEST_CASE("a sweep given by path") {
    const char* sweep = std::getenv("JEMM_IMAGE_SWEEP");
    if (sweep == nullptr) {
      std::cout << "JEMM_EXTRA_GOLDEN is not set, nor is JEMM_IMAGE_SWEEP\n";
      return;
    }
    CHECK(check_sweep(sweep) > 0);
  }
}

}  // namespace
}  // namespace jemm
