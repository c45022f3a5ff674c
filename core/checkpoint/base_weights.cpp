#include "checkpoint/base_weights.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

bool is_ignored(std::string_view name) { return name.starts_with("mtp"); }

/// (shard, tensor) for every line of the index, sorted.
std::vector<std::pair<std::string, std::string>> read_index(const FileSource& base) {
  const std::string where = base.name() + "/" + kIndexFile;
  const nlohmann::json value = parse_json_object(base.open(kIndexFile).text(), where);
  const JsonObject root(value, where);
  if (root.find("weight_map") == nullptr) root.refuse("weight_map", "is missing");
  const JsonObject map = root.object("weight_map");
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& [tensor, shard] : map.value().items()) {
    const std::string name = map.string(tensor, "");
    if (name.empty() || name.find_first_of("/\\") != std::string::npos || name == "." ||
        name == "..") {
      map.refuse(in_quotes(tensor), in_quotes(name) + " is no name of a file in the same directory");
    }
    lines.emplace_back(name, tensor);
  }
  if (lines.empty()) root.refuse("weight_map", "is empty");
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

BaseWeights::BaseWeights(const FileSource& base, const TensorRegistry& registry)
    : registry_(registry) {
  if (base.contains(kSingleFile)) {
    files_ = {kSingleFile};
    shards_.push_back(std::make_unique<SafetensorsFile>(base.open(kSingleFile),
                                                        base.name() + "/" + kSingleFile));
  } else if (base.contains(kIndexFile)) {
    read_sharded(base);
  } else {
    fail(ErrorKind::kInput, "{} holds neither {} nor {}", base.name(), kSingleFile, kIndexFile);
  }
  place_all(base);
  check_shapes();
}

void BaseWeights::read_sharded(const FileSource& base) {
  const auto lines = read_index(base);
  std::vector<std::string> absent;
  for (const auto& [shard, tensor] : lines) {
    if (!files_.empty() && files_.back() == shard) continue;
    files_.push_back(shard);
    if (!base.contains(shard)) absent.push_back(shard);
  }
  if (!absent.empty()) {
    fail(ErrorKind::kInput, "{}: files named by {} are missing: {}", base.name(), kIndexFile,
         name_list(absent));
  }
  for (const std::string& file : files_) {
    shards_.push_back(
        std::make_unique<SafetensorsFile>(base.open(file), base.name() + "/" + file));
  }
  std::vector<std::string> wrong;
  std::size_t shard_idx = 0;
  for (const auto& [shard, tensor] : lines) {
    while (files_[shard_idx] != shard) ++shard_idx;
    if (shards_[shard_idx]->find(tensor) == nullptr) wrong.push_back(tensor + " in " + shard);
  }
  if (!wrong.empty()) {
    fail(ErrorKind::kInput, "{}: {} names tensors that their shards lack: {}", base.name(),
         kIndexFile, name_list(wrong));
  }
  files_.push_back(kIndexFile);
}

void BaseWeights::place_all(const FileSource& base) {
  places_.resize(registry_.tensors().size());
  std::vector<std::string> unexpected;
  std::vector<std::string> twice;
  for (const auto& shard : shards_) {
    for (const SafetensorsEntry& entry : shard->entries()) {
      if (is_ignored(entry.name)) continue;
      const TensorInfo* info = registry_.find(entry.name);
      if (info == nullptr) {
        unexpected.push_back(entry.name);
        continue;
      }
      Place& place = places_[static_cast<std::size_t>(info - registry_.tensors().data())];
      if (place.entry != nullptr) twice.push_back(entry.name);
      place = {shard.get(), &entry};
    }
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].entry == nullptr) missing.push_back(registry_.tensors()[i].name);
  }
  const auto complain = [&base](const std::vector<std::string>& names, std::string_view what) {
    return names.empty() ? "" : fmt::format("; {} {}: {}", names.size(), what, name_list(names));
  };
  const std::string complaints = complain(missing, "tensors are missing") +
                                 complain(unexpected, "tensors are unexpected") +
                                 complain(twice, "tensors are in two shards");
  if (!complaints.empty()) {
    fail(ErrorKind::kInput, "{}: {}", base.name(), complaints.substr(2));
  }
}

void BaseWeights::check_shapes() const {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const TensorInfo& info = registry_.tensors()[i];
    const auto& [file, entry] = places_[i];
    if (entry->shape != info.shape) {
      fail(ErrorKind::kInput, "{}: tensor {} has shape {}, but the config asks for {}",
           file->name(), info.name, shape_text(entry->shape), shape_text(info.shape));
    }
    file->tensor(*entry);  // refuses types that weights are not kept in
  }
}

Tensor BaseWeights::tensor(const TensorInfo& info) const {
  const Place& place = places_[static_cast<std::size_t>(&info - registry_.tensors().data())];
  return place.file->tensor(*place.entry);
}

}  // namespace jemm
