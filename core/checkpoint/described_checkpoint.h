// What a checkpoint's small files say, shared by the sources of weights. Knows no weights.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/adapter_config.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/registry.h"

namespace jemm {

/// A checkpoint of which only the weights' source is left open.
class DescribedCheckpoint : public Checkpoint {
 public:
  const ModelConfig& config() const final { return config_; }
  const FileSource& base_files() const final { return *files_.base; }
  const DecisionConfig& decision() const final;
  Tensor tensor(std::string_view name) const final;
  std::optional<LoraPair> lora(std::string_view module) const final;
  Tensor head_rows(std::span<const std::int32_t> ids) const final;
  LoraMode lora_mode() const final;

 protected:
  /// Reads config.json and, with an adapter, adapter_config.json and decision_config.json.
  explicit DescribedCheckpoint(const CheckpointFiles& files);

  const CheckpointFiles& files() const { return files_; }
  const TensorRegistry& registry() const { return registry_; }
  const std::vector<AdapterTarget>& targets() const { return targets_; }  ///< none without adapter
  /// "base/config.json" and so on, as read.
  const std::vector<NamedBlob>& small_files() const { return small_files_; }

 private:
  virtual Tensor read(const TensorInfo& info) const = 0;
  virtual LoraPair read(const AdapterTarget& target) const = 0;

  /// Opens and remembers a file; returns its content.
  std::string_view open_small(const FileSource& source, const char* role, const char* name);

  CheckpointFiles files_;
  std::vector<NamedBlob> small_files_;
  ModelConfig config_;
  TensorRegistry registry_;
  std::vector<AdapterTarget> targets_;
  std::optional<DecisionConfig> decision_;
};

}  // namespace jemm
