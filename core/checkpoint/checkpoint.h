// A model's weights with what describes them, from files or from a formula. Knows no device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "checkpoint/config.h"
#include "checkpoint/tensor.h"

namespace jemm {

/// One low-rank update of a linear layer: y += scale * (x A^T) B^T.
struct LoraPair {
  Tensor a;          // [rank, in]  F32
  Tensor b;          // [out, rank] F32
  double scale = 0;  // lora_alpha / rank, or / sqrt(rank) for rsLoRA
};

/// A checked checkpoint: base, adapter, calibration. Tensor names are those of the base checkpoint
/// ("model.language_model.layers.0.mlp.gate_proj.weight").
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const DecisionConfig& decision() const = 0;
  /// tokenizer, preprocessor and template files.
  virtual const FileSource& base_files() const = 0;

  /// A tensor of the registry (registry.h), its shape checked at open. Throws Error(kInput) for a
  /// name that is not in it.
  virtual Tensor tensor(std::string_view name) const = 0;
  /// The update of a linear layer, by its weight's name without ".weight"; none when the adapter
  /// leaves the layer alone.
  virtual std::optional<LoraPair> lora(std::string_view module) const = 0;

  /// Identifies the weights: SHA-256 over the names and contents of config and weight files, or
  /// over the formula's inputs.
  virtual std::string fingerprint() const = 0;
};

/// Files of a checkpoint in Hugging Face form.
struct CheckpointFiles {
  std::shared_ptr<const FileSource> base;
  std::shared_ptr<const FileSource> adapter;  ///< null: no adapter (encode only)
};

/// A model as named on the command line: BASE+ADAPTER, BASE alone, synthetic:BASE+ADAPTER[,seed=N].
struct ModelSpec {
  std::string base;
  std::string adapter;                         ///< empty when none was named
  std::optional<std::uint32_t> synthetic_seed;
};
/// Throws Error(kUsage) for a malformed text.
ModelSpec parse_model_spec(std::string_view text);

/// Opens and checks everything: config, every tensor's name, dtype and shape, every adapter pair,
/// calibration. Weights stay on disk (mapped). Throws Error(kInput) naming what is wrong.
std::unique_ptr<const Checkpoint> open_checkpoint(const CheckpointFiles& files);

/// Weights from the formula of docs/synthetic.md, made when asked for.
std::unique_ptr<const Checkpoint> open_synthetic(const CheckpointFiles& files, std::uint32_t seed);

}  // namespace jemm
