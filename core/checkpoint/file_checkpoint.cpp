// open_checkpoint: weights from safetensors files.
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/blocks.h"
#include "base/sha256.h"
#include "checkpoint/adapter_weights.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/described_checkpoint.h"
#include "checkpoint/export_files.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/weight_scan.h"

namespace jemm {
namespace {

constexpr const char* kAdapterWeights = "adapter_model.safetensors";

class FileCheckpoint final : public DescribedCheckpoint {
 public:
  FileCheckpoint(const CheckpointFiles& files, Trust trust)
      : DescribedCheckpoint(files), trust_(trust), base_(*files.base, registry()) {
    if (files.adapter == nullptr || lora_mode() == LoraMode::kMerged) return;
    adapter_.emplace(
        SafetensorsFile(files.adapter->open(kAdapterWeights), files.adapter->path(kAdapterWeights)),
        targets());
  }

  std::string fingerprint() const override {
    std::call_once(fingerprint_made_, [this] {
      if (files().exported == nullptr) {
        fingerprint_ = hash_files();
      } else {
        files().exported->verify_large(trust_);
        fingerprint_ = files().exported->manifest().fingerprint;
      }
    });
    return fingerprint_;
  }

 private:
  Tensor read(const TensorInfo& info) const override { return base_.tensor(info); }
  LoraPair read(const AdapterTarget& target) const override { return adapter_->pair(target); }

  /// Hashes every file, several at a time, and looks at the values of the weights.
  std::string hash_files() const {
    std::vector<FileHash> files;
    std::vector<std::function<std::string()>> hashes;
    const auto add_small = [&](const std::string& name, const Blob& blob) {
      files.push_back({name, ""});
      hashes.push_back([&blob] { return sha256_hex(blob.bytes); });
    };
    const auto add_weights = [&](const std::string& name, const SafetensorsFile& file) {
      files.push_back({name, ""});
      hashes.push_back([&file] { return scan_mapped(file); });
    };
    for (const NamedBlob& file : small_files()) add_small(file.name, file.blob);
    for (std::size_t i = 0; i < base_.files().size(); ++i) {
      const NamedBlob& file = base_.files()[i];
      if (i < base_.shards().size()) {
        add_weights("base/" + file.name, *base_.shards()[i]);
      } else {
        add_small("base/" + file.name, file.blob);
      }
    }
    if (adapter_) add_weights(std::string("adapter/") + kAdapterWeights, adapter_->file());
    in_threads(files.size(), std::thread::hardware_concurrency(),
               [&](std::size_t i) { files[i].sha256 = hashes[i](); });
    return fingerprint_of(files);
  }

  Trust trust_;
  BaseWeights base_;
  std::optional<AdapterWeights> adapter_;
  mutable std::once_flag fingerprint_made_;
  mutable std::string fingerprint_;
};

}  // namespace

std::unique_ptr<const Checkpoint> open_checkpoint(const CheckpointFiles& files, Trust trust) {
  if (files.exported != nullptr) files.exported->verify_small();
  return std::make_unique<FileCheckpoint>(files, trust);
}

}  // namespace jemm
