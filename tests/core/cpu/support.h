// What the CPU engine's tests share: fixtures, label ids, prompts, golden cases.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "cpu/cpu_engine.h"
#include "plan/forest.h"

namespace jemm::test {

inline const std::string kSource = JEMM_SOURCE_DIR;

inline CheckpointFiles fixture_files(const std::string& name) {
  const std::string directory = kSource + "/fixtures/" + name;
  return {open_directory(directory + "/base"), open_directory(directory + "/adapter")};
}

inline std::shared_ptr<const Checkpoint> open_fixture(const std::string& name) {
  return open_checkpoint(fixture_files(name));
}

/// Ids of A..Z, 0..5 straight from the vocabulary.
inline std::array<std::int32_t, 32> fixture_labels(const std::string& name) {
  std::ifstream file(kSource + "/fixtures/" + name + "/base/tokenizer.json");
  const auto vocabulary = nlohmann::json::parse(file).at("model").at("vocab");
  const std::string labels = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";
  std::array<std::int32_t, 32> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = vocabulary.at(std::string(1, labels[i])).get<std::int32_t>();
  }
  return ids;
}

/// Tokens without meaning, the same everywhere.
inline std::vector<std::int32_t> some_tokens(std::int64_t n, std::uint32_t seed) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens.push_back(static_cast<std::int32_t>((seed >> 16) % 1200));
  }
  return tokens;
}

/// Merged rows of images in one call; Image has grid_thw and values.
template <typename Image>
std::vector<VisionRowsPtr> vision(Engine& engine, const std::vector<Image>& images) {
  std::vector<ImagePatches> patches;
  for (const Image& image : images) patches.push_back({image.grid_thw, image.values});
  StageTimes times;
  return engine.vision(patches, times);
}

inline std::vector<LabelLogits> forward(Engine& engine, const Forest& forest, Tap* tap = nullptr,
                                        std::span<const VisionRowsPtr> images = {}) {
  StageTimes times;
  return engine.forward(forest, images, times, tap);
}

/// Logits after a prompt that is alone in its pass.
inline LabelLogits logits_alone(Engine& engine, const std::vector<std::int32_t>& tokens) {
  Forest forest;
  forest.read_last_row(forest.add(-1, tokens));
  return forward(engine, forest).front();
}

}  // namespace jemm::test
