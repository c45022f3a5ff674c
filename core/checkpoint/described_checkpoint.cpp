// Opens and parses the small files.
#include "checkpoint/described_checkpoint.h"

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr const char* kModelConfig = "config.json";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kDecisionConfig = "decision_config.json";

}  // namespace

std::string_view lora_mode_name(LoraMode mode) {
  return mode == LoraMode::kMerged ? "merged" : "unmerged";
}

DescribedCheckpoint::DescribedCheckpoint(const CheckpointFiles& files)
    : files_(files),
      config_(parse_model_config(open_small(*files.base, "base", kModelConfig),
                                 files.base->path(kModelConfig))),
      registry_(config_) {
  if (files.adapter == nullptr) return;
  const FileSource& adapter = *files.adapter;
  targets_ = parse_adapter_config(open_small(adapter, "adapter", kAdapterConfig),
                                  adapter.path(kAdapterConfig), registry_);
  decision_ = parse_decision_config(open_small(adapter, "adapter", kDecisionConfig),
                                    adapter.path(kDecisionConfig));
}

std::string_view DescribedCheckpoint::open_small(const FileSource& source, const char* role,
                                                 const char* name) {
  small_files_.push_back({fmt::format("{}/{}", role, name), source.open(name)});
  return small_files_.back().blob.text();
}

const DecisionConfig& DescribedCheckpoint::decision() const {
  if (!decision_) {
    fail(ErrorKind::kUsage, "{} was named without an adapter, which answering needs",
         files_.base->name());
  }
  return *decision_;
}

Tensor DescribedCheckpoint::tensor(std::string_view name) const {
  const TensorInfo* info = registry_.find(name);
  if (info == nullptr) fail(ErrorKind::kInput, "the model has no tensor {}", in_quotes(name));
  return read(*info);
}

std::optional<LoraPair> DescribedCheckpoint::lora(std::string_view module) const {
  const AdapterTarget* target = find_target(targets_, module);
  return target == nullptr ? std::nullopt : std::optional(read(*target));
}

}  // namespace jemm
