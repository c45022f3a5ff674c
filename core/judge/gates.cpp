// Budgets, the presets, and gates as JSON.
#include "judge/gates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr std::string_view kFormat = "jemm-gates/1";
constexpr std::array<std::string_view, 4> kPresets = {"fp32", "fp32-trained", "strict",
                                                      "system1-omni"};

/// The multiple of the reference's own noise that every preset grants where noise is known.
constexpr double kTimesNoise = 2;

Budget budget(double at_most) {
  return {.at_most = at_most, .times_noise = kTimesNoise};
}

/// The budgets of a file by their keys.
struct NamedBudget {
  std::string_view key;
  Budget Gates::*member;
};
constexpr std::array<NamedBudget, 8> kBudgets = {{
    {"stage_rms", &Gates::stage_rms},
    {"stage_max_abs", &Gates::stage_max_abs},
    {"probability_median", &Gates::probability_median},
    {"probability_max", &Gates::probability_max},
    {"far_answer", &Gates::far_answer},
    {"far_share", &Gates::far_share},
    {"expected_value_max", &Gates::expected_value_max},
    {"flip_margin", &Gates::flip_margin},
}};

nlohmann::ordered_json budget_json(const Budget& limits) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (limits.at_most) json["at_most"] = *limits.at_most;
  if (limits.times_noise) json["times_noise"] = *limits.times_noise;
  return json;
}

void check_keys(const JsonObject& object, std::span<const std::string_view> known) {
  for (const auto& [key, value] : object.value().items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      object.refuse(key, fmt::format("is no gate; known are {}", fmt::join(known, ", ")));
    }
  }
}

std::optional<double> limit(const JsonObject& object, std::string_view key) {
  if (object.find_not_null(key) == nullptr) return std::nullopt;
  const double value = object.number(key, 0);
  if (!std::isfinite(value) || value < 0) object.refuse(key, "is not a finite number from 0 on");
  return value;
}

Budget parse_budget(const JsonObject& parent, std::string_view key) {
  const JsonObject object = parent.object(key);
  constexpr std::array<std::string_view, 2> kKeys = {"at_most", "times_noise"};
  check_keys(object, kKeys);
  return {.at_most = limit(object, kKeys[0]), .times_noise = limit(object, kKeys[1])};
}

}  // namespace

std::optional<double> Gauge::budget() const {
  std::optional<double> result = limits.at_most;
  if (limits.times_noise && noise) {
    const double from_noise = *limits.times_noise * *noise;
    result = std::max(result.value_or(from_noise), from_noise);
  }
  return result;
}

Outcome Gauge::outcome() const {
  const std::optional<double> whole = budget();
  if (!whole) return Outcome::kNotGated;
  if (limits.at_most && value <= *limits.at_most) return Outcome::kPass;
  return value <= *whole ? Outcome::kWithinNoise : Outcome::kOver;  // NaN is over
}

std::optional<double> Gauge::share() const {
  const std::optional<double> whole = budget();
  if (!whole || (value == 0 && *whole == 0)) return std::nullopt;
  return value / *whole;
}

const Budget& Gates::rms_budget(StageId stage) const {
  const auto own = stage_rms_of.find(stage);
  return own == stage_rms_of.end() ? stage_rms : own->second;
}

std::span<const std::string_view> gate_preset_names() {
  return kPresets;
}

Gates gate_preset(std::string_view name) {
  Gates gates;
  gates.name = name;
  if (name == "fp32") {
    gates.stage_rms = budget(5e-4);
    gates.probability_median = budget(1e-5);
    gates.probability_max = budget(3e-4);
    gates.flip_margin = budget(6e-4);  // a flip takes twice the drift
  } else if (name == "fp32-trained") {
    gates.stage_rms = budget(1e-5);
    gates.probability_max = budget(1e-5);
    gates.flip_margin = budget(2e-5);
  } else if (name == "strict") {
    gates.stage_rms.times_noise = kTimesNoise;
    gates.probability_max = budget(0.01);
    gates.far_answer = budget(0.05);
    gates.far_share.at_most = 0.10;
    gates.flip_margin = budget(0.02);
  } else if (name == "system1-omni") {
    gates.probability_max = budget(0.02);
    gates.expected_value_max = budget(0.1);
    gates.flip_margin = budget(0.05);
  } else {
    fail(ErrorKind::kUsage, "no such preset: '{}'; presets are {}", name,
         fmt::join(kPresets, ", "));
  }
  return gates;
}

std::string gates_json(const Gates& gates) {
  nlohmann::ordered_json json = {{"format", kFormat}, {"name", gates.name}};
  for (const NamedBudget& entry : kBudgets) json[entry.key] = budget_json(gates.*entry.member);
  nlohmann::ordered_json single = nlohmann::ordered_json::object();
  for (const auto& [stage, limits] : gates.stage_rms_of) {
    single[stage_name(stage)] = budget_json(limits);
  }
  json["stage_rms_of"] = single;
  json["threshold"] = nullptr;
  if (gates.threshold) json["threshold"] = *gates.threshold;
  return json.dump(1) + "\n";
}

Gates parse_gates(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json_object(text, file);
  const JsonObject object(json, file);
  // "noise" stands in the gates.json of a report: what was measured, no gate.
  std::vector<std::string_view> keys = {"format", "name", "stage_rms_of", "threshold", "noise"};
  for (const NamedBudget& entry : kBudgets) keys.push_back(entry.key);
  check_keys(object, keys);
  object.require("format");
  if (object.string("format", "") != kFormat) {
    object.refuse("format", fmt::format("is not \"{}\"", kFormat));
  }
  Gates gates;
  gates.name = object.string("name", "custom");
  for (const NamedBudget& entry : kBudgets) {
    gates.*entry.member = parse_budget(object, entry.key);
  }
  const JsonObject single = object.object("stage_rms_of");
  for (const auto& [name, limits] : single.value().items()) {
    const std::optional<StageId> stage = parse_stage(name);
    const bool has_rms = stage && (is_tensor(stage->kind) || stage->kind == StageKind::kLogits);
    if (!has_rms) single.refuse(name, "is no stage with an RMS ratio");
    gates.stage_rms_of[*stage] = parse_budget(single, name);
  }
  gates.threshold = limit(object, "threshold");
  return gates;
}

}  // namespace jemm
