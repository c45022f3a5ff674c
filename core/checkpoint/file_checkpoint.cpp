#include <memory>

#include "base/error.h"
#include "base/sha256.h"
#include "checkpoint/adapter_weights.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

constexpr const char* kDecisionConfigFile = "decision_config.json";

class FileCheckpoint : public Checkpoint {
 public:
  explicit FileCheckpoint(const CheckpointFiles& files)
      : files_(files), config_(read_model_config(*files.base)), registry_(config_),
        base_(*files.base, registry_) {
    if (files_.adapter == nullptr) return;
    const FileSource& adapter = *files_.adapter;
    const AdapterConfig adapter_config(adapter.open(kAdapterConfigFile).text(),
                                       adapter.name() + "/" + kAdapterConfigFile);
    adapter_.emplace(adapter, adapter_config, registry_);
    decision_ = parse_decision_config(adapter.open(kDecisionConfigFile).text(),
                                      adapter.name() + "/" + kDecisionConfigFile);
  }

  const ModelConfig& config() const override { return config_; }
  const FileSource& base_files() const override { return *files_.base; }

  const DecisionConfig& decision() const override {
    if (!decision_) {
      fail(ErrorKind::kUsage, "{} was named without an adapter, which answering needs",
           files_.base->name());
    }
    return *decision_;
  }

  Tensor tensor(std::string_view name) const override {
    const TensorInfo* info = registry_.find(name);
    if (info == nullptr) fail(ErrorKind::kInput, "the model has no tensor {}", in_quotes(name));
    return base_.tensor(*info);
  }

  std::optional<LoraPair> lora(std::string_view module) const override {
    return adapter_ ? adapter_->pair(module) : std::nullopt;
  }

  std::string fingerprint() const override {
    Sha256 hash;
    for (const std::string& file : base_.files()) {
      hash.update(fmt::format("base/{} {}\n", file, sha256_hex(files_.base->open(file).bytes)));
    }
    return hash.hex();
  }

 private:
  CheckpointFiles files_;
  ModelConfig config_;
  TensorRegistry registry_;
  BaseWeights base_;
  std::optional<AdapterWeights> adapter_;
  std::optional<DecisionConfig> decision_;
};

}  // namespace

std::unique_ptr<const Checkpoint> open_checkpoint(const CheckpointFiles& files) {
  return std::make_unique<FileCheckpoint>(files);
}

}  // namespace jemm
