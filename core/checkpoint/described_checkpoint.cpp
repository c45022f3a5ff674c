// Opens and parses the small files.
#include "checkpoint/described_checkpoint.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/export_files.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr const char* kModelConfig = "config.json";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kDecisionConfig = "decision_config.json";

}  // namespace

DescribedCheckpoint::DescribedCheckpoint(const CheckpointFiles& files)
    : files_(files),
      config_(parse_model_config(open_small(*files.base, "base", kModelConfig),
                                 files.base->path(kModelConfig))),
      registry_(config_, files.exported == nullptr ? HeadForm::kWhole : HeadForm::kLabelRows) {
  if (files.adapter == nullptr) return;
  const FileSource& adapter = *files.adapter;
  if (lora_mode() == LoraMode::kUnmerged) {
    targets_ = parse_adapter_config(open_small(adapter, "adapter", kAdapterConfig),
                                    adapter.path(kAdapterConfig), registry_);
  }
  decision_ = parse_decision_config(open_small(adapter, "adapter", kDecisionConfig),
                                    adapter.path(kDecisionConfig));
}

std::string_view DescribedCheckpoint::open_small(const FileSource& source, const char* role,
                                                 const char* name) {
  small_files_.push_back({fmt::format("{}/{}", role, name), source.open(name)});
  return small_files_.back().blob.text();
}

LoraMode DescribedCheckpoint::lora_mode() const {
  return files_.exported == nullptr ? LoraMode::kUnmerged : files_.exported->manifest().lora.mode;
}

Tensor DescribedCheckpoint::head_rows(std::span<const std::int32_t> ids) const {
  if (files_.exported == nullptr || config_.tied_head) return Checkpoint::head_rows(ids);
  const auto& kept = files_.exported->manifest().prompt.label_ids;
  std::vector<std::int32_t> rows;
  for (const std::int32_t id : ids) {
    const auto at = std::find(kept.begin(), kept.end(), id);
    if (at == kept.end()) {
      fail(ErrorKind::kInput, "{}: the head's row of token {} was not exported",
           files_.base->name(), id);
    }
    rows.push_back(static_cast<std::int32_t>(at - kept.begin()));
  }
  return gather_rows(tensor(kLabelRows), rows);
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
