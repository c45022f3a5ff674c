// The manifest's JSON, both ways.
#include "checkpoint/manifest.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/file_records.h"
#include "checkpoint/json_object.h"
#include "checkpoint/pins.h"

namespace jemm {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* format_name(ManifestState state) {
  return state == ManifestState::kFinished ? "jemm-export/1" : "jemm-export-partial/1";
}

constexpr IntRange kIds{0, INT32_MAX};
constexpr IntRange kCounts{0, INT64_MAX};

std::string required_string(const JsonObject& object, std::string_view key) {
  object.require(key);
  return object.string(key, "");
}

std::uint64_t required_count(const JsonObject& object, std::string_view key) {
  object.require(key);
  return static_cast<std::uint64_t>(object.integer(key, 0, kCounts));
}

const nlohmann::json& required_array(const JsonObject& object, std::string_view key) {
  object.require(key);
  const nlohmann::json& list = *object.find(key);
  if (!list.is_array()) object.refuse(key, "must be an array, found " + json_text(list));
  return list;
}

OrderedJson pins_json() {
  OrderedJson pins;
  for (const Pin& pin : kPins) {
    pins[std::string(pin.role)] = {{"repository", pin.repository}, {"revision", pin.revision}};
  }
  return pins;
}

OrderedJson source_json(const ExportManifest& manifest) {
  OrderedJson source = {{"base", manifest.base}, {"adapter", manifest.adapter}};
  if (manifest.synthetic_seed) source["synthetic_seed"] = *manifest.synthetic_seed;
  return source;
}

OrderedJson prompt_json(const PromptFacts& prompt) {
  return {{"label_ids", prompt.label_ids},
          {"text_framing", prompt.text_framing},
          {"image_framing", prompt.image_framing},
          {"template_sha256", prompt.template_sha256},
          {"tokenizer_class", prompt.tokenizer_class},
          {"tokenizer_pattern", prompt.tokenizer_pattern},
          {"text_token_budget", prompt.text_token_budget},
          {"image_token_budget", prompt.image_token_budget}};
}

void read_source(const JsonObject& source, ExportManifest& manifest) {
  manifest.base = required_string(source, "base");
  manifest.adapter = required_string(source, "adapter");
  if (source.find("synthetic_seed") != nullptr) {
    manifest.synthetic_seed =
        static_cast<std::uint32_t>(source.integer("synthetic_seed", 0, {0, UINT32_MAX}));
  }
}

LoraFacts read_lora(const JsonObject& object) {
  LoraFacts lora;
  const std::string mode = required_string(object, "mode");
  if (mode == lora_mode_name(LoraMode::kMerged)) {
    lora.mode = LoraMode::kMerged;
  } else if (mode != lora_mode_name(LoraMode::kUnmerged)) {
    object.refuse("mode", in_quotes(mode) + " is not supported");
  }
  lora.n_pairs = required_count(object, "pairs");
  for (const nlohmann::json& rank : required_array(object, "ranks")) {
    if (!rank.is_number_integer()) object.refuse("ranks", "may not hold " + json_text(rank));
    lora.ranks.push_back(rank.get<std::int64_t>());
  }
  for (const nlohmann::json& scale : required_array(object, "scales")) {
    if (!scale.is_number()) object.refuse("scales", "may not hold " + json_text(scale));
    lora.scales.push_back(scale.get<double>());
  }
  return lora;
}

PromptFacts read_prompt(const JsonObject& object) {
  PromptFacts prompt;
  const nlohmann::json& ids = required_array(object, "label_ids");
  if (ids.size() != prompt.label_ids.size()) {
    object.refuse("label_ids",
                  fmt::format("holds {} entries, not {}", ids.size(), prompt.label_ids.size()));
  }
  for (std::size_t i = 0; i < prompt.label_ids.size(); ++i) {
    if (!ids[i].is_number_unsigned() || ids[i] > kIds.high) {
      object.refuse("label_ids", "may not hold " + json_text(ids[i]));
    }
    prompt.label_ids[i] = ids[i].get<std::int32_t>();
  }
  prompt.text_framing = required_string(object, "text_framing");
  prompt.image_framing = required_string(object, "image_framing");
  prompt.template_sha256 = required_string(object, "template_sha256");
  prompt.tokenizer_class = required_string(object, "tokenizer_class");
  prompt.tokenizer_pattern = required_string(object, "tokenizer_pattern");
  prompt.text_token_budget = required_count(object, "text_token_budget");
  prompt.image_token_budget = required_count(object, "image_token_budget");
  return prompt;
}

template <typename T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

LoraFacts lora_facts(const std::vector<AdapterTarget>& targets, LoraMode mode) {
  LoraFacts facts;
  facts.mode = mode;
  facts.n_pairs = targets.size();
  for (const AdapterTarget& target : targets) {
    facts.ranks.push_back(target.rank);
    facts.scales.push_back(target.scale);
  }
  sort_unique(facts.ranks);
  sort_unique(facts.scales);
  return facts;
}

const FileRecord* ExportManifest::find_output(std::string_view name) const {
  return find_record(outputs, name);
}

std::string manifest_text(const ExportManifest& manifest, ManifestState state) {
  const OrderedJson root = {{"format", format_name(state)},
                            {"exporter", manifest.exporter},
                            {"pins", pins_json()},
                            {"source", source_json(manifest)},
                            {"fingerprint", manifest.fingerprint},
                            {"lora",
                             {{"mode", lora_mode_name(manifest.lora.mode)},
                              {"pairs", manifest.lora.n_pairs},
                              {"ranks", manifest.lora.ranks},
                              {"scales", manifest.lora.scales}}},
                            {"prompt", prompt_json(manifest.prompt)},
                            {"calibration",
                             {{"temperature", manifest.decision.temperature},
                              {"mm_temperature", manifest.decision.mm_temperature},
                              {"threshold", manifest.decision.threshold}}},
                            {"inputs", records_json(manifest.inputs)},
                            {"outputs", records_json(manifest.outputs)}};
  return root.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

ExportManifest parse_manifest(std::string_view text, const std::string& file, ManifestState state) {
  const nlohmann::json value = parse_json_object(text, file);
  const JsonObject root(value, file);
  const std::string format = required_string(root, "format");
  if (format != format_name(state)) {
    root.refuse("format", fmt::format("{} is not supported, only \"{}\"", in_quotes(format),
                                      format_name(state)));
  }
  ExportManifest manifest;
  manifest.exporter = required_string(root, "exporter");
  manifest.fingerprint = required_string(root, "fingerprint");
  for (const char* key : {"source", "lora", "prompt", "calibration"}) root.require(key);
  read_source(root.object("source"), manifest);
  manifest.lora = read_lora(root.object("lora"));
  manifest.prompt = read_prompt(root.object("prompt"));
  manifest.decision =
      parse_decision_config(root.object("calibration").value().dump(), file + ": calibration");
  manifest.inputs = read_records(root, "inputs", state == ManifestState::kPartial);
  manifest.outputs = read_records(root, "outputs", false);
  return manifest;
}

std::string difference(const ExportManifest& earlier, const ExportManifest& now) {
  if (earlier.exporter != now.exporter) {
    return fmt::format("it was made by {}, this is {}", earlier.exporter, now.exporter);
  }
  if (earlier.lora.mode != now.lora.mode) {
    return fmt::format("its LoRA mode is {}", lora_mode_name(earlier.lora.mode));
  }
  if (earlier.synthetic_seed != now.synthetic_seed) return "its seed is another";
  for (const FileRecord& record : now.inputs) {
    const FileRecord* before = find_record(earlier.inputs, record.name);
    if (before == nullptr) return fmt::format("input {} is new", in_quotes(record.name));
    if (before->size != record.size || before->mtime_ns != record.mtime_ns) {
      return fmt::format("input {} has changed", in_quotes(record.name));
    }
  }
  for (const FileRecord& record : earlier.inputs) {
    if (find_record(now.inputs, record.name) == nullptr) {
      return fmt::format("input {} is gone", in_quotes(record.name));
    }
  }
  if (earlier.prompt != now.prompt) return "its tokenizer or framing is another";
  return "";
}

}  // namespace jemm
