// A model's weights with what describes them, from files or from a formula. Knows no device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"
#include "checkpoint/config.h"
#include "checkpoint/tensor.h"

namespace jemm {

/// Where the adapter's updates are: apart, or already in the weights, rounded to BF16.
enum class LoraMode { kUnmerged, kMerged };
std::string_view lora_mode_name(LoraMode mode);  ///< "unmerged", "merged"

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
  /// Throws Error(kUsage) when no adapter was named.
  virtual const DecisionConfig& decision() const = 0;
  /// tokenizer, preprocessor and template files.
  virtual const FileSource& base_files() const = 0;

  /// A tensor of the registry (registry.h), its shape checked at open: mapped bytes as stored
  /// (BF16, F16 or F32), BF16 from the formula. Throws Error(kInput) for a name that is not in it.
  virtual Tensor tensor(std::string_view name) const = 0;
  /// The update of a linear layer, by its weight's name without ".weight"; none when the adapter
  /// leaves the layer alone. The formula makes it anew at each call.
  virtual std::optional<LoraPair> lora(std::string_view module) const = 0;
  /// Rows of the head [ids, D] as stored, of the embedding when the head is tied. Read the head
  /// this way and not as a tensor: an export keeps the label rows alone. Throws Error(kInput) for a
  /// token that has no row.
  virtual Tensor head_rows(std::span<const std::int32_t> ids) const;
  /// kMerged: tensors hold the updates and lora() gives none.
  virtual LoraMode lora_mode() const { return LoraMode::kUnmerged; }

  /// The seed of the formula that makes the weights, when they come from one: an engine may then
  /// make them itself (synthetic.h).
  virtual std::optional<std::uint32_t> synthetic_seed() const { return std::nullopt; }

  /// Identifies the weights: SHA-256 over the names and whole contents of config.json, the base's
  /// weight files and index, and the adapter's three files; or over the formula's inputs (seed and
  /// small files). Tokenizer, template and preprocessor files are not covered. Equal fingerprints
  /// mean equal weights, so every byte is read: made at the first call, several files at a time,
  /// and kept; 54 GB take as long as reading them does. The same pass throws Error(kInput) for a
  /// value that is not finite. An export has its inputs' fingerprint from its manifest (of merged
  /// weights, a hash of it); its files are compared with the manifest by the same call. An engine
  /// makes it while it loads: both read the same bytes.
  virtual std::string fingerprint() const = 0;
};

/// Rows of a matrix, in the given order, in a blob of their own. Throws Error(kInput) for one that
/// it does not have.
Tensor gather_rows(const Tensor& matrix, std::span<const std::int32_t> rows);

/// How far fingerprint() checks an export's large files.
enum class Trust {
  kHash,         ///< every file is read and its SHA-256 compared
  kSizeAndTime,  ///< a large file of the recorded size and modification time is not read
};

class ExportFiles;

/// Files of a checkpoint in Hugging Face form, or of an export of one.
struct CheckpointFiles {
  std::shared_ptr<const FileSource> base;
  std::shared_ptr<const FileSource> adapter;         ///< null: no adapter (encode only)
  std::shared_ptr<const ExportFiles> exported = {};  ///< set: it is base and adapter
};

/// A model as named on the command line: BASE+ADAPTER, BASE alone, or
/// synthetic:BASE+ADAPTER[,seed=N] (seed 1 when left out). A plus that belongs to a path is written
/// twice: "c++++/base+x" is "c++/base" and "x". Only the text is looked at, never the disk.
struct ModelSpec {
  std::string base;
  std::string adapter;  ///< empty when none was named
  std::optional<std::uint32_t> synthetic_seed;
};
/// Throws Error(kUsage) for a malformed text.
ModelSpec parse_model_spec(std::string_view text);

/// Opens and checks everything: config, every tensor's name, dtype and shape, every adapter pair,
/// calibration. Weights stay on disk (mapped). Without an adapter the base alone is checked. Throws
/// Error(kInput) naming what is wrong, Error(kIo) for a file that is missing or unreadable. Of an
/// export the small files are compared with its manifest, the rest by fingerprint() as far as
/// `trust` says.
std::unique_ptr<const Checkpoint> open_checkpoint(const CheckpointFiles& files,
                                                  Trust trust = Trust::kHash);

/// Weights from the formula of docs/synthetic.md, made when asked for.
std::unique_ptr<const Checkpoint> open_synthetic(const CheckpointFiles& files, std::uint32_t seed);

}  // namespace jemm
