// Names of stages and sets of them.
#include "judge/stage_id.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/error.h"

namespace jemm {
namespace {

constexpr std::array<std::string_view, kStageKinds> kKindNames = {
    "accept", "prompt", "tokens",     "image.rgb", "image.grid",    "image.pixels", "positions",
    "vision", "layer",  "final_norm", "logits",    "probabilities", "decision",     "usage"};

std::string_view kind_name(StageKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::optional<StageKind> find_kind(std::string_view name) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<StageKind>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string stage_name(StageId stage) {
  if (stage.kind == StageKind::kLayer && stage.layer != kAnyLayer)
    return fmt::format("layer.{:02}", stage.layer);
  return std::string(kind_name(stage.kind));
}

std::optional<StageId> parse_stage(std::string_view name) {
  constexpr std::string_view kLayerPrefix = "layer.";
  StageId stage;
  if (name.starts_with(kLayerPrefix)) {
    stage.kind = StageKind::kLayer;
    const std::string_view digits = name.substr(kLayerPrefix.size());
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), stage.layer);
    if (read.ec != std::errc() || stage.layer < 0 || stage_name(stage) != name) return std::nullopt;
    return stage;
  }
  const std::optional<StageKind> kind = find_kind(name);
  if (!kind || *kind == StageKind::kLayer) return std::nullopt;
  stage.kind = *kind;
  return stage;
}

StageSet StageSet::all() {
  StageSet set;
  set.bits_ = (1u << kStageKinds) - 1;
  return set;
}

StageSet StageSet::parse(std::string_view list) {
  StageSet set;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    const std::optional<StageKind> kind = find_kind(name);
    if (name == "image") {
      set.add(StageKind::kImageRgb);
      set.add(StageKind::kImageGrid);
      set.add(StageKind::kImagePixels);
    } else if (kind) {
      set.add(*kind);
    } else {
      fail(ErrorKind::kUsage, "no such stage: '{}'; stages are {}", name, all().names());
    }
    if (comma == std::string_view::npos) return set;
    list.remove_prefix(comma + 1);
  }
}

bool StageSet::needs_engine() const {
  for (int kind = static_cast<int>(StageKind::kVision); kind < kStageKinds; ++kind) {
    if (has(static_cast<StageKind>(kind))) return true;
  }
  return false;
}

bool StageSet::needs_tensors() const {
  return has(StageKind::kVision) || has(StageKind::kLayer) || has(StageKind::kFinalNorm);
}

StageSet StageSet::without_tensors() const {
  StageSet set = *this;
  for (const StageKind kind : {StageKind::kVision, StageKind::kLayer, StageKind::kFinalNorm}) {
    set.remove(kind);
  }
  return set;
}

std::string StageSet::names() const {
  std::string names;
  for (int kind = 0; kind < kStageKinds; ++kind) {
    if (!has(static_cast<StageKind>(kind))) continue;
    if (!names.empty()) names += ',';
    names += kind_name(static_cast<StageKind>(kind));
  }
  return names;
}

}  // namespace jemm
