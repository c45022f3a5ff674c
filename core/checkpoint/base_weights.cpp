// Opens one weight file or the shards of an index, and checks their tensors.
#include "checkpoint/base_weights.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

/// One line of the index.
struct IndexLine {
  std::string shard;
  std::string tensor;
};

std::vector<std::string> shards_of(const std::vector<IndexLine>& lines) {
  std::vector<std::string> shards;
  for (const IndexLine& line : lines) shards.push_back(line.shard);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

/// Sorted by shard.
std::vector<IndexLine> parse_index(std::string_view text, const std::string& where) {
  const nlohmann::json value = parse_json_object(text, where);
  const JsonObject root(value, where);
  root.require("weight_map");
  const JsonObject map = root.object("weight_map");
  std::vector<IndexLine> lines;
  for (const auto& [tensor, unused] : map.value().items()) {
    const std::string shard = map.string(tensor, "");
    if (shard.empty() || shard == "." || shard == ".." ||
        shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      map.refuse(tensor,
                 fmt::format("names {}, which is no file of the same directory", in_quotes(shard)));
    }
    lines.push_back({shard, tensor});
  }
  if (lines.empty()) root.refuse("weight_map", "is empty");
  std::stable_sort(lines.begin(), lines.end(),
                   [](const IndexLine& a, const IndexLine& b) { return a.shard < b.shard; });
  return lines;
}

}  // namespace

bool is_ignored_tensor(std::string_view name) {
  return name.starts_with("mtp");
}

std::vector<std::string> weight_file_names(const FileSource& base) {
  if (base.contains(kSingleFile) || !base.contains(kIndexFile)) return {kSingleFile};
  const std::string where = base.path(kIndexFile);
  std::vector<std::string> names = shards_of(parse_index(base.open(kIndexFile).text(), where));
  names.emplace_back(kIndexFile);
  return names;
}

BaseWeights::BaseWeights(const FileSource& base, const TensorRegistry& registry)
    : registry_(registry) {
  if (base.contains(kSingleFile)) {
    read_file(base, kSingleFile);
  } else if (base.contains(kIndexFile)) {
    read_sharded(base);
  } else {
    fail(ErrorKind::kInput, "{} holds neither {} nor {}", base.name(), kSingleFile, kIndexFile);
  }
  place_all(base.name());
  check_shapes();
}

void BaseWeights::read_file(const FileSource& base, const std::string& name) {
  files_.push_back({name, base.open(name)});
  shards_.push_back(std::make_unique<SafetensorsFile>(files_.back().blob, base.path(name)));
}

void BaseWeights::read_sharded(const FileSource& base) {
  const std::string where = base.path(kIndexFile);
  const Blob index = base.open(kIndexFile);
  const std::vector<IndexLine> lines = parse_index(index.text(), where);
  const std::vector<std::string> shards = shards_of(lines);
  std::vector<std::string> absent;
  std::copy_if(shards.begin(), shards.end(), std::back_inserter(absent),
               [&base](const std::string& shard) { return !base.contains(shard); });
  if (!absent.empty()) {
    fail(ErrorKind::kInput, "{}: {} of {} shards are missing: {}", where, absent.size(),
         shards.size(), name_list(absent));
  }

  std::vector<std::string> wrong;
  auto line = lines.begin();
  for (const std::string& shard : shards) {
    read_file(base, shard);
    for (; line != lines.end() && line->shard == shard; ++line) {
      if (shards_.back()->find(line->tensor) == nullptr) wrong.push_back(line->tensor);
    }
  }
  if (!wrong.empty()) {
    fail(ErrorKind::kInput, "{}: {} tensors are not in the shards named for them: {}", where,
         wrong.size(), name_list(wrong));
  }
  files_.push_back({kIndexFile, index});
}

void BaseWeights::place_all(const std::string& directory) {
  places_.resize(registry_.tensors().size());
  std::vector<std::string> unexpected;
  std::vector<std::string> twice;
  for (const auto& shard : shards_) {
    for (const SafetensorsEntry& entry : shard->entries()) {
      if (is_ignored_tensor(entry.name)) continue;
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
  const auto complain = [](const std::vector<std::string>& names, std::string_view what) {
    return names.empty() ? "" : fmt::format("; {} {}: {}", names.size(), what, name_list(names));
  };
  const std::string complaints = complain(missing, "tensors are missing") +
                                 complain(unexpected, "tensors are unexpected") +
                                 complain(twice, "tensors are in two shards");
  if (!complaints.empty()) {
    fail(ErrorKind::kInput, "{}: {}", directory, complaints.substr(2));
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
    file->weight_type(*entry);
  }
}

Tensor BaseWeights::tensor(const TensorInfo& info) const {
  const Place& place = places_[static_cast<std::size_t>(&info - registry_.tensors().data())];
  return place.file->tensor(*place.entry);
}

}  // namespace jemm
