// Every image of the goldens: decoded, resized, cut, placed; and every refusal of one.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/sha256.h"
#include "contract/request.h"
#include "image/decode.h"
#include "image/envelope.h"
#include "image/patches.h"
#include "image/positions.h"

namespace jemm {
namespace {

using nlohmann::json;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "cannot open " << path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What a golden was made with.
struct Checkpoint {
  PreprocessorConfig preprocessor;
  std::int32_t image_token = 0;

  explicit Checkpoint(const std::string& base)
      : preprocessor(
            parse_preprocessor_config(read_file(base + "/preprocessor_config.json"), base)),
        image_token(json::parse(read_file(base + "/config.json")).at("image_token_id")) {}
};

struct Outcome {
  std::vector<Rgb> decoded;
  std::string refusal;  ///< of the first image that is refused
};

Outcome decode_all(const std::string& body) {
  Outcome outcome;
  try {
    const Request request = Request::parse(body);
    for (std::size_t i = 0; i < request.image_count(); ++i) {
      outcome.decoded.push_back(decode_image(i, decode_envelope(i, request.image(i))));
    }
  } catch (const Error& error) {
    outcome.refusal = error.what();
  }
  return outcome;
}

/// The error of the first image whose shape is refused, or nothing.
std::string shape_refusal(const std::vector<Rgb>& images, const Checkpoint& checkpoint) {
  for (const Rgb& image : images) {
    try {
      resized_size({image.width, image.height}, checkpoint.preprocessor);
    } catch (const Error& error) {
      return error.what();
    }
  }
  return "";
}

void check_images(const json& line, std::vector<Rgb> decoded, const Checkpoint& checkpoint) {
  const json& images = line.at("images");
  REQUIRE(decoded.size() == images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    CHECK(decoded[i].width == images[i].at("width").get<int>());
    CHECK(decoded[i].height == images[i].at("height").get<int>());
    CHECK(rgb_sha256(decoded[i]) == images[i].at("rgb_sha256").get<std::string>());
    const Patches patches = preprocess_image(std::move(decoded[i]), checkpoint.preprocessor);
    CHECK(json(patches.grid_thw) == images[i].at("grid_thw"));
    CHECK(values_sha256(patches) == images[i].at("pixel_values_sha256").get<std::string>());
  }
}

void check_positions(const json& line, const Checkpoint& checkpoint) {
  std::vector<std::array<std::int64_t, 3>> grids;
  for (const json& image : line.at("images")) grids.push_back(image.at("grid_thw"));
  for (const json& question : line.at("questions")) {
    const std::vector<std::int32_t> tokens = question.at("token_ids");
    CHECK(positions_sha256(prompt_positions(tokens, checkpoint.image_token, grids)) ==
          question.at("position_ids_sha256").get<std::string>());
  }
}

struct Counts {
  int images = 0;
  int refusals = 0;
};

Counts check_golden(const std::string& golden, const Checkpoint& checkpoint) {
  Counts counts;
  std::ifstream file(golden + "/cases.jsonl");
  REQUIRE_MESSAGE(file.good(), "cannot open " << golden);
  for (std::string text; std::getline(file, text);) {
    if (text.find("images") == text.npos) continue;
    const json line = json::parse(text);
    if (!line.contains("raw")) continue;
    CAPTURE(line.at("id").get<std::string>());
    Outcome outcome = decode_all(line.at("raw"));
    if (line.at("status") == "ok") {
      CHECK(outcome.refusal == "");
      if (!line.contains("images")) continue;
      check_images(line, std::move(outcome.decoded), checkpoint);
      check_positions(line, checkpoint);
      counts.images += static_cast<int>(line.at("images").size());
      continue;
    }
    const std::string detail = line.at("error").at("detail");
    const bool shape = detail.starts_with("absolute aspect ratio");
    if (detail.starts_with("image ") || detail.starts_with("images must") || shape) {
      CHECK((shape ? shape_refusal(outcome.decoded, checkpoint) : outcome.refusal) == detail);
      ++counts.refusals;
    } else {
      CHECK(outcome.refusal == "");  // what was refused comes after the images
    }
  }
  return counts;
}

TEST_CASE("the image golden") {
  const Checkpoint checkpoint(JEMM_SOURCE_DIR "/fixtures/tiny-a/base");
  const Counts counts = check_golden(JEMM_SOURCE_DIR "/golden/image-fp32-cpu", checkpoint);
  CHECK(counts.images == 47);
  CHECK(counts.refusals == 39);
}

TEST_CASE("the images of the demonstration and synthetic goldens") {
  const Checkpoint demo(JEMM_SOURCE_DIR "/fixtures/demo/base");
  CHECK(check_golden(JEMM_SOURCE_DIR "/golden/demo-fp32-cpu", demo).images == 28);
  const Checkpoint tiny(JEMM_SOURCE_DIR "/fixtures/tiny-a/base");
  CHECK(check_golden(JEMM_SOURCE_DIR "/golden/synthetic-tiny-a-fp32-cpu", tiny).images == 3);
}

TEST_SUITE("extra") {
  TEST_CASE("the images of the full-size goldens") {
    const char* extra = std::getenv("JEMM_EXTRA_GOLDEN");
    if (extra == nullptr) {
      std::cout << "JEMM_EXTRA_GOLDEN is not set\n";
      return;
    }
    const std::string root = extra;
    const Checkpoint checkpoint(root + "/qwen-27b/base");
    CHECK(check_golden(root + "/27b-fp32-h200", checkpoint).images == 8);
  }
}

}  // namespace
}  // namespace jemm
