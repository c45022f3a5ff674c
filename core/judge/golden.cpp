// Reading a golden directory: manifest, cases by line, tensors by name.
#include "judge/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "checkpoint/json_object.h"
#include "checkpoint/safetensors.h"
#include "judge/case_reader.h"

namespace jemm {
namespace {

constexpr std::string_view kFormat = "jemm-golden/1";
constexpr std::size_t kMaxLineBytes = std::size_t{256} << 20;

std::string blob_text(const std::string& path) {
  return std::string(map_file(path).text());
}

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

/// "3/layer.07" to its question and stage; false when it is not spelled exactly so.
bool parse_tensor_name(std::string_view name, StageTensor& tensor) {
  const std::size_t slash = std::min(name.find('/'), name.size());
  const auto read = std::from_chars(name.data(), name.data() + slash, tensor.question);
  const std::optional<StageId> stage = parse_stage(name.substr(std::min(slash + 1, name.size())));
  if (read.ec != std::errc() || !stage || !is_tensor(stage->kind)) return false;
  tensor.stage = *stage;
  return name == fmt::format("{}/{}", tensor.question, stage_name(*stage)) && tensor.question >= 0;
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

}  // namespace

Golden::Golden(const std::string& directory) : directory_(directory) {
  read_manifest();
  const std::string stages = directory + "/stages.safetensors";
  if (open_directory(directory)->contains("stages.safetensors")) {
    stages_ = std::make_unique<SafetensorsFile>(map_file(stages), stages);
  }
  const std::string cases = directory + "/cases.jsonl";
  map_file(cases);  // for its errors: no such file, not a regular one
  cases_.open(cases, std::ios::binary);
  index_cases();
  rewind();
}

Golden::~Golden() = default;
Golden::Golden(Golden&&) noexcept = default;

void Golden::read_manifest() {
  const std::string file = directory_ + "/manifest.json";
  const nlohmann::json json = parse_json_object(blob_text(file), file);
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

Golden::Key Golden::key_of(const std::string& id) {
  const std::string hex = sha256_hex(id);
  Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) {
    std::from_chars(hex.data() + 16 * i, hex.data() + 16 * (i + 1), key[i], 16);
  }
  return key;
}

std::string Golden::where() const {
  return line_number_ == 0 ? fmt::format("{}/cases.jsonl", directory_)
                           : fmt::format("{}/cases.jsonl: line {}", directory_, line_number_);
}

/// The next line that is not blank.
bool Golden::read_line() {
  std::streambuf& stream = *cases_.rdbuf();
  while (true) {
    line_.clear();
    line_begin_ = next_begin_;
    ++line_number_;
    int c = stream.sbumpc();
    if (c == std::char_traits<char>::eof()) return false;
    for (; c != std::char_traits<char>::eof() && c != '\n'; c = stream.sbumpc()) {
      if (line_.size() == kMaxLineBytes) {
        fail(ErrorKind::kInput, "{} is longer than {} bytes", where(), kMaxLineBytes);
      }
      line_ += static_cast<char>(c);
    }
    next_begin_ = line_begin_ + line_.size() + 1;
    if (line_.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
}

void Golden::rewind() {
  cases_.clear();
  cases_.seekg(0);
  next_begin_ = 0;
  line_number_ = 0;
}

void Golden::index_cases() {
  std::vector<bool> claimed(stages_ ? stages_->entries().size() : 0);
  while (read_line()) {
    const std::string id = read_case_id(line_, where());
    index_.push_back({key_of(id), line_begin_});
    mark_tensors(id, claimed);
  }
  n_cases_ = index_.size();
  std::sort(index_.begin(), index_.end());
  for (std::size_t i = 1; i < index_.size(); ++i) {
    const bool again = index_[i].key == index_[i - 1].key;
    const bool noted = i > 1 && index_[i].key == index_[i - 2].key;
    if (!again || noted) continue;
    cases_.clear();
    cases_.seekg(static_cast<std::streamoff>(index_[i].offset));
    read_line();
    duplicates_.push_back(read_case_id(line_, where()));
  }
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    if (claimed[i]) continue;
    if (n_stray_tensors_++ == 0) stray_tensor_ = stages_->entries()[i].name;
  }
}

void Golden::mark_tensors(const std::string& id, std::vector<bool>& claimed) const {
  if (!stages_) return;
  const auto [first, last] = prefix_range(stages_->entries(), id + "/");
  std::fill(claimed.begin() + static_cast<std::ptrdiff_t>(first),
            claimed.begin() + static_cast<std::ptrdiff_t>(last), true);
}

void Golden::add_tensors(CaseRecord& record) const {
  if (!stages_ || record.error) return;
  const std::string prefix = record.id + "/";
  const auto [first, last] = prefix_range(stages_->entries(), prefix);
  for (std::size_t i = first; i < last; ++i) {
    const SafetensorsEntry& entry = stages_->entries()[i];
    StageTensor tensor;
    if (parse_tensor_name(std::string_view(entry.name).substr(prefix.size()), tensor)) {
      tensor.values = float_values(*stages_, entry);
      record.tensors.push_back(std::move(tensor));
    } else {
      record.unknown_tensors.push_back(entry.name);
    }
  }
}

bool Golden::next(CaseRecord& record) {
  if (!read_line()) return false;
  record = read_case(line_, where());
  add_tensors(record);
  return true;
}

bool Golden::contains(const std::string& id) const {
  const Key key = key_of(id);
  const auto entry = std::lower_bound(index_.begin(), index_.end(), Entry{key, 0});
  return entry != index_.end() && entry->key == key;
}

std::optional<CaseRecord> Golden::find(const std::string& id) {
  const Key key = key_of(id);
  const auto entry = std::lower_bound(index_.begin(), index_.end(), Entry{key, 0});
  if (entry == index_.end() || entry->key != key) return std::nullopt;
  cases_.clear();
  cases_.seekg(static_cast<std::streamoff>(entry->offset));
  next_begin_ = entry->offset;
  line_number_ = 0;
  read_line();
  line_number_ = 0;
  CaseRecord record = read_case(line_, where());
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
