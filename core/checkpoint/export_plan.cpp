// Sorts a checkpoint's files into those that stay as they are and those that are written anew.
#include "checkpoint/export_plan.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/export_files.h"
#include "checkpoint/json_object.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/synthetic.h"

namespace jemm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kAdapterWeights = "adapter_model.safetensors";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kDecisionConfig = "decision_config.json";
constexpr std::string_view kHead = "lm_head.weight";
constexpr std::uint64_t kShardBytes = std::uint64_t{4} << 30;  // of weights from the formula

std::shared_ptr<const FileSource> open_input(const fs::path& path) {
  if (is_export(path) || is_unfinished_export(path)) {
    fail(ErrorKind::kUsage, "{} is an export itself; name what it was made from", path.string());
  }
  return open_directory(path);
}

/// The base's files beside config.json that describe it, in name order: tokenizer, template,
/// processors.
std::vector<std::string> other_small_files(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const std::string kind = entry.path().extension().string();
    const bool describes =
        kind == ".json" || kind == ".jinja" || kind == ".txt" || kind == ".model";
    if (!describes || !entry.is_regular_file() || name.starts_with(".") || name == "config.json" ||
        name.ends_with(".index.json") || name == kAdapterConfig || name == kDecisionConfig) {
      continue;
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Where every tensor lies, as model.safetensors.index.json says it.
class Index {
 public:
  void add(const std::string& tensor, const std::string& shard, std::uint64_t bytes) {
    places_[tensor] = shard;
    total_bytes_ += bytes;
  }
  void add(const PlannedOutput& shard, std::string_view prefix) {
    for (const OutputTensor& tensor : shard.tensors) {
      add(tensor.name, shard.name.substr(prefix.size()), tensor.size_bytes());
    }
  }
  std::string text() const {
    const nlohmann::ordered_json json = {{"metadata", {{"total_size", total_bytes_}}},
                                         {"weight_map", places_}};
    return json.dump(2) + "\n";
  }

 private:
  std::map<std::string, std::string> places_;
  std::uint64_t total_bytes_ = 0;
};

/// Builds the plan of one export.
class Planner {
 public:
  Planner(const ExportSource& source, const ExportJob& job) : source_(source), job_(job) {}

  ExportPlan exported() {
    add_inputs();
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      const PlannedInput& input = plan_.inputs[i];
      const bool merged_away = job_.lora == LoraMode::kMerged &&
                               (input.name == std::string("adapter/") + kAdapterConfig ||
                                input.name == std::string("adapter/") + kAdapterWeights);
      if (merged_away || input.name == std::string("base/") + kIndex) continue;
      if (input.weights != nullptr && input.weights != adapter_file()) {
        add_shard(i);
      } else {
        keep(i);
      }
    }
    if (job_.synthetic_seed) {
      add_formula_shards(HeadForm::kLabelRows, "", "");
    } else {
      add_index();
    }
    check_names();
    return std::move(plan_);
  }

  ExportPlan synthetic() {
    add_inputs();
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      keep(i);
      plan_.outputs.back().name = plan_.inputs[i].name;
    }
    add_formula_shards(HeadForm::kWhole, "base/", "adapter/");
    return std::move(plan_);
  }

 private:
  const SafetensorsFile* adapter_file() const {
    return source_.adapter ? &source_.adapter->file() : nullptr;
  }

  void add_input(const char* role, const std::string& name, const SafetensorsFile* weights,
                 bool decides) {
    const fs::path& directory = std::string_view(role) == "base" ? job_.base : job_.adapter;
    plan_.inputs.push_back({fmt::format("{}/{}", role, name), directory / name, weights, decides});
  }

  void add_inputs() {
    add_input("base", "config.json", nullptr, true);
    add_input("adapter", kAdapterConfig, nullptr, true);
    add_input("adapter", kDecisionConfig, nullptr, true);
    if (source_.base) {
      const auto& shards = source_.base->shards();
      for (std::size_t i = 0; i < source_.base->files().size(); ++i) {
        add_input("base", source_.base->files()[i].name,
                  i < shards.size() ? shards[i].get() : nullptr, true);
      }
      add_input("adapter", kAdapterWeights, adapter_file(), true);
    }
    for (const std::string& name : other_small_files(job_.base)) {
      add_input("base", name, nullptr, false);
    }
  }

  void keep(std::size_t i) {
    PlannedOutput output;
    output.name = plan_.inputs[i].path.filename().string();
    output.input = i;
    plan_.outputs.push_back(std::move(output));
  }

  const AdapterTarget* merged_target(std::string_view tensor) const {
    constexpr std::string_view kWeight = ".weight";
    if (job_.lora != LoraMode::kMerged || !tensor.ends_with(kWeight)) return nullptr;
    return find_target(source_.targets, tensor.substr(0, tensor.size() - kWeight.size()));
  }

  /// What becomes of a tensor of the input.
  OutputTensor changed(OutputTensor tensor) const {
    if (tensor.name == kHead) return label_rows(std::move(tensor), job_.prompt.label_ids);
    if (const AdapterTarget* target = merged_target(tensor.name)) {
      return merged_tensor(std::move(tensor), [&source = source_, &job = job_, target] {
        return source.pair(*target, job);
      });
    }
    return tensor;
  }

  void add_shard(std::size_t i) {
    const SafetensorsFile& shard = *plan_.inputs[i].weights;
    std::vector<const SafetensorsEntry*> kept;
    bool changes = false;
    for (const SafetensorsEntry& entry : shard.entries()) {
      const bool ignored = is_ignored_tensor(entry.name);
      changes = changes || ignored || entry.name == kHead || merged_target(entry.name) != nullptr;
      if (!ignored) kept.push_back(&entry);
    }
    if (!changes) return keep(i);
    index_changes_ = true;
    if (kept.empty()) return;
    std::sort(kept.begin(), kept.end(),
              [](const auto* a, const auto* b) { return a->begin < b->begin; });
    const auto file = std::make_shared<const BlockFile>(plan_.inputs[i].path);
    PlannedOutput output;
    output.name = plan_.inputs[i].path.filename().string();
    for (const SafetensorsEntry* entry : kept) {
      output.tensors.push_back(changed(stored_tensor(file, shard, *entry)));
    }
    plan_.outputs.push_back(std::move(output));
  }

  void add_index() {
    const std::string name = std::string("base/") + kIndex;
    const auto at = std::find_if(plan_.inputs.begin(), plan_.inputs.end(),
                                 [&name](const PlannedInput& input) { return input.name == name; });
    if (at == plan_.inputs.end()) return;
    if (!index_changes_) return keep(static_cast<std::size_t>(at - plan_.inputs.begin()));
    Index index;
    for (const PlannedOutput& output : plan_.outputs) {
      const SafetensorsFile* shard = output.input ? plan_.inputs[*output.input].weights : nullptr;
      if (output.name == kAdapterWeights) continue;
      index.add(output, "");
      if (shard == nullptr) continue;
      for (const SafetensorsEntry& entry : shard->entries()) {
        index.add(entry.name, output.name, entry.end - entry.begin);
      }
    }
    add_text(kIndex, index.text());
  }

  void add_text(std::string name, std::string text) {
    PlannedOutput output;
    output.name = std::move(name);
    output.text = std::move(text);
    plan_.outputs.push_back(std::move(output));
  }

  void add_formula_shards(HeadForm head, const std::string& base, const std::string& adapter) {
    std::vector<std::vector<OutputTensor>> shards(1);
    std::uint64_t bytes = 0;
    for (const TensorInfo& info : source_.registry.tensors()) {
      OutputTensor tensor = formula_tensor(info, *job_.synthetic_seed);
      if (head == HeadForm::kLabelRows) tensor = changed(std::move(tensor));
      if (bytes > 0 && bytes + tensor.size_bytes() > kShardBytes) {
        shards.emplace_back();
        bytes = 0;
      }
      bytes += tensor.size_bytes();
      shards.back().push_back(std::move(tensor));
    }
    Index index;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      PlannedOutput output;
      output.name = fmt::format("{}model-{:05}-of-{:05}.safetensors", base, i + 1, shards.size());
      output.tensors = std::move(shards[i]);
      index.add(output, base);
      plan_.outputs.push_back(std::move(output));
    }
    add_text(base + kIndex, index.text());
    if (job_.lora == LoraMode::kUnmerged) add_formula_adapter(adapter);
  }

  void add_formula_adapter(const std::string& prefix) {
    PlannedOutput output;
    output.name = prefix + kAdapterWeights;
    for (const AdapterTarget& target : source_.targets) {
      for (const std::string_view suffix : {kLoraA, kLoraB}) {
        OutputTensor half{fmt::format("{}{}{}", kAdapterPrefix, target.module(), suffix),
                          DType::kF32,
                          suffix == kLoraA ? target.a_shape() : target.b_shape(),
                          {}};
        half.make = [&target, suffix, seed = *job_.synthetic_seed, row_bytes = half.row_bytes()](
                        std::int64_t first, std::int64_t, std::span<std::byte> out) {
          const Tensor whole = synthetic_lora(target, suffix, seed);
          const auto rows =
              whole.data.bytes.subspan(static_cast<std::size_t>(first) * row_bytes, out.size());
          std::copy(rows.begin(), rows.end(), out.begin());
        };
        output.tensors.push_back(std::move(half));
      }
    }
    plan_.outputs.push_back(std::move(output));
  }

  void check_names() const {
    std::vector<std::string> names = {kManifestFile, kJournalFile};
    for (const PlannedOutput& output : plan_.outputs) names.push_back(output.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      fail(ErrorKind::kInput, "two files of the export would be named {}", in_quotes(*twice));
    }
  }

  const ExportSource& source_;
  const ExportJob& job_;
  ExportPlan plan_;
  bool index_changes_ = false;
};

}  // namespace

ExportSource::ExportSource(const ExportJob& job)
    : base_files(open_input(job.base)),
      adapter_files(open_input(job.adapter)),
      config(parse_model_config(base_files->open("config.json").text(),
                                base_files->path("config.json"))),
      decision(parse_decision_config(adapter_files->open(kDecisionConfig).text(),
                                     adapter_files->path(kDecisionConfig))),
      registry(config),
      targets(parse_adapter_config(adapter_files->open(kAdapterConfig).text(),
                                   adapter_files->path(kAdapterConfig), registry)) {
  if (job.synthetic_seed) return;
  base.emplace(*base_files, registry);
  adapter.emplace(
      SafetensorsFile(adapter_files->open(kAdapterWeights), adapter_files->path(kAdapterWeights)),
      targets);
}

LoraPair ExportSource::pair(const AdapterTarget& target, const ExportJob& job) const {
  if (adapter) return adapter->pair(target);
  return {synthetic_lora(target, kLoraA, *job.synthetic_seed),
          synthetic_lora(target, kLoraB, *job.synthetic_seed), target.scale};
}

std::uint64_t PlannedOutput::bytes_to_write() const {
  std::uint64_t bytes = 0;
  for (const OutputTensor& tensor : tensors) bytes += tensor.size_bytes();
  return bytes;
}

ExportPlan plan_export(const ExportSource& source, const ExportJob& job) {
  return Planner(source, job).exported();
}

ExportPlan plan_synthetic(const ExportSource& source, const ExportJob& job) {
  return Planner(source, job).synthetic();
}

}  // namespace jemm
