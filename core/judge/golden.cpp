// Reading a golden directory: manifest, cases by line, tensors by name.
#include "judge/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "checkpoint/json_object.h"
#include "checkpoint/safetensors.h"
#include "judge/case_reader.h"

namespace jemm {
namespace {

constexpr std::string_view kFormat = "jemm-golden/1";

/// Entries of a sorted list whose names begin with `prefix`.
std::pair<std::size_t, std::size_t> prefix_range(const std::vector<SafetensorsEntry>& entries,
                                                 const std::string& prefix) {
  const auto below = [&](const SafetensorsEntry& entry, std::string_view text) {
    return entry.name.compare(0, text.size(), text) < 0;
  };
  const auto above = [&](std::string_view text, const SafetensorsEntry& entry) {
    return entry.name.compare(0, text.size(), text) > 0;
  };
  const auto first = std::lower_bound(entries.begin(), entries.end(), prefix, below);
  const auto last = std::upper_bound(first, entries.end(), prefix, above);
  return {static_cast<std::size_t>(first - entries.begin()),
          static_cast<std::size_t>(last - entries.begin())};
}

/// "ID/3/layer.07" cut at its last two slashes: an id may have slashes of its own.
struct TensorName {
  std::string_view id;
  std::string_view place;  ///< "3/layer.07"
};
TensorName cut_name(std::string_view name) {
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos || last == 0) return {};
  const std::size_t before = name.rfind('/', last - 1);
  if (before == std::string_view::npos) return {};
  return {name.substr(0, before), name.substr(before + 1)};
}

/// "3/layer.07" to its question and stage; false when it is not spelled exactly so.
bool parse_place(std::string_view place, StageTensor& tensor) {
  const std::size_t slash = std::min(place.find('/'), place.size());
  const auto read = std::from_chars(place.data(), place.data() + slash, tensor.question);
  const std::optional<StageId> stage = parse_stage(place.substr(std::min(slash + 1, place.size())));
  if (read.ec != std::errc() || !stage || !is_tensor(stage->kind)) return false;
  tensor.stage = *stage;
  return tensor.question >= 0 && place == fmt::format("{}/{}", tensor.question, stage_name(*stage));
}

std::vector<float> float_values(const SafetensorsFile& file, const SafetensorsEntry& entry) {
  if (entry.dtype != "F32") {
    fail(ErrorKind::kInput, "{}: {} is of type {}, not F32", file.name(), entry.name, entry.dtype);
  }
  std::vector<float> values((entry.end - entry.begin) / sizeof(float));
  if (!values.empty()) {
    std::memcpy(values.data(), file.blob().bytes.data() + entry.begin, entry.end - entry.begin);
  }
  return values;
}

/// The texts of an object as "prefix key", for reports.
void add_facts(const JsonObject& object, const std::string& prefix, GoldenManifest& manifest) {
  for (const auto& [key, value] : object.value().items()) {
    if (value.is_string()) manifest.facts.emplace_back(prefix + key, value.get<std::string>());
  }
}

/// What every accepted case of a mode has. A field that is lost would not be missed otherwise.
void check_complete(const CaseRecord& record, const std::string& mode, const std::string& where) {
  if (record.error || (mode != "full" && mode != "contract")) return;
  const auto need = [&](bool is_there, std::string_view what) {
    if (is_there) return;
    fail(ErrorKind::kInput, "{}: no {}, which mode {} has", where, what, mode);
  };
  const bool is_full = mode == "full";
  need(!record.questions.empty(), "questions");
  if (is_full) need(record.response && record.response->input_tokens, "response with usage");
  for (const QuestionRecord& question : record.questions) {
    need(question.prompt.has_value(), "prompt of a question");
    need(question.token_ids.has_value(), "token_ids of a question");
    if (!is_full) continue;
    need(question.logits && question.logits->size() == question.candidates.size(),
         "logit of each candidate");
    if (!record.images.empty()) {
      need(question.position_ids_sha256.has_value(), "position_ids_sha256 of a question");
    }
  }
}

}  // namespace

Golden::Golden(const std::string& directory) : directory_(directory) {
  read_manifest();
  const std::string stages = directory + "/stages.safetensors";
  // Only a name that is not there is no tensors: a broken link, say, is an error.
  if (std::filesystem::exists(std::filesystem::symlink_status(stages))) {
    stages_ = std::make_unique<SafetensorsFile>(map_file(stages), stages);
  }
  open_cases();
}

Golden::~Golden() = default;
Golden::Golden(Golden&&) noexcept = default;

void Golden::read_manifest() {
  const std::string file = directory_ + "/manifest.json";
  const nlohmann::json json = parse_json_object(map_file(file).text(), file);
  const JsonObject object(json, file);
  object.require("format");
  if (object.string("format", "") != kFormat) {
    object.refuse("format", fmt::format("is not \"{}\"", kFormat));
  }
  manifest_.mode = object.string("mode", "");
  manifest_.dtype = object.string("dtype", "");
  const JsonObject hashes = object.object("checkpoint_sha256");
  for (const auto& [name, hash] : hashes.value().items()) {
    if (!hash.is_string()) hashes.refuse(name, "is not a string");
    manifest_.checkpoint_sha256[name] = hash.get<std::string>();
  }
  constexpr IntRange kAny = {0, INT64_MAX};
  if (object.find_not_null("synthetic_seed") != nullptr) {
    manifest_.synthetic_seed = object.integer("synthetic_seed", 0, kAny);
  }
  if (object.find_not_null("cases") != nullptr) {
    manifest_.n_cases = static_cast<std::uint64_t>(object.integer("cases", 0, kAny));
  }
  add_facts(object, "", manifest_);
  add_facts(object.object("reference"), "reference ", manifest_);
  add_facts(object.object("versions"), "", manifest_);
}

/// Indexes the cases, and finds the tensors that belong to none of them.
void Golden::open_cases() {
  std::vector<bool> claimed(stages_ ? stages_->entries().size() : 0);
  cases_.emplace(directory_ + "/cases.jsonl", [&](std::string_view line, const std::string& where) {
    std::string id = read_case_id(line, where);
    if (!stages_) return id;
    const auto [first, last] = prefix_range(stages_->entries(), id + "/");
    for (std::size_t i = first; i < last; ++i) {
      const TensorName name = cut_name(stages_->entries()[i].name);
      if (name.id != id) continue;
      claimed[i] = true;
      StageTensor tensor;
      if (parse_place(name.place, tensor)) tensor_stages_.insert(tensor.stage);
    }
    return id;
  });
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    if (!claimed[i]) ++n_stray_tensors_;
  }
}

void Golden::add_tensors(CaseRecord& record) const {
  if (!stages_ || record.error) return;
  const std::string prefix = record.id + "/";
  const auto [first, last] = prefix_range(stages_->entries(), prefix);
  for (std::size_t i = first; i < last; ++i) {
    const SafetensorsEntry& entry = stages_->entries()[i];
    const TensorName name = cut_name(entry.name);
    if (name.id != record.id) continue;
    StageTensor tensor;
    if (parse_place(name.place, tensor)) {
      tensor.values = float_values(*stages_, entry);
      record.tensors.push_back(std::move(tensor));
    } else {
      record.unknown_tensors.push_back(entry.name);
    }
  }
  note_lost_tensors(record);
}

/// A stage is kept for every question, `vision` for those of requests with images.
void Golden::note_lost_tensors(CaseRecord& record) const {
  std::set<std::pair<int, StageId>> kept;
  for (const StageTensor& tensor : record.tensors) kept.insert({tensor.question, tensor.stage});
  for (const StageId stage : tensor_stages_) {
    if (stage.kind == StageKind::kVision && record.images.empty()) continue;
    for (int i = 0; i < static_cast<int>(record.questions.size()); ++i) {
      if (!kept.contains({i, stage})) record.lost_tensors.emplace_back(i, stage);
    }
  }
}

bool Golden::next(CaseRecord& record) {
  const std::optional<std::string_view> line = cases_->next();
  if (!line) return false;
  record = read_whole(*line);
  return true;
}

std::optional<CaseRecord> Golden::find(const std::string& id) {
  const std::optional<std::string_view> line = cases_->find(id);
  if (!line) return std::nullopt;
  return read_whole(*line);
}

CaseRecord Golden::read_whole(std::string_view line) const {
  CaseRecord record = read_case(line, cases_->where());
  check_complete(record, manifest_.mode, cases_->where());
  add_tensors(record);
  return record;
}

std::string checkpoint_difference(const std::map<std::string, std::string>& a,
                                  std::optional<std::int64_t> seed_a,
                                  const std::map<std::string, std::string>& b,
                                  std::optional<std::int64_t> seed_b) {
  const auto seed_text = [](std::optional<std::int64_t> seed) {
    return seed ? fmt::format("synthetic seed {}", *seed) : std::string("weights from files");
  };
  if (seed_a != seed_b) return fmt::format("{} against {}", seed_text(seed_a), seed_text(seed_b));
  for (const auto& [name, hash] : a) {
    const auto other = b.find(name);
    if (other != b.end() && other->second != hash) {
      return fmt::format("{} is {} here and {} there", name, hash.substr(0, 12),
                         other->second.substr(0, 12));
    }
  }
  return "";
}

}  // namespace jemm
