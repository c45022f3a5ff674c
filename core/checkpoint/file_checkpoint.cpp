// open_checkpoint: weights from safetensors files.
#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/sha256.h"
#include "checkpoint/adapter_weights.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/described_checkpoint.h"

namespace jemm {
namespace {

constexpr const char* kAdapterWeights = "adapter_model.safetensors";

/// SHA-256 of each file, several at a time.
std::vector<std::string> hash_all(const std::vector<NamedBlob>& files) {
  std::vector<std::string> hashes(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      hashes[i] = sha256_hex(files[i].blob.bytes);
    }
  };
  const std::size_t n_workers =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, files.size());
  std::vector<std::future<void>> workers;
  for (std::size_t i = 0; i < n_workers; ++i) {
    workers.push_back(std::async(std::launch::async, work));
  }
  for (std::future<void>& worker : workers) worker.get();
  return hashes;
}

class FileCheckpoint final : public DescribedCheckpoint {
 public:
  explicit FileCheckpoint(const CheckpointFiles& files)
      : DescribedCheckpoint(files), base_(*files.base, registry()) {
    hashed_ = small_files();
    for (const NamedBlob& file : base_.files()) hashed_.push_back({"base/" + file.name, file.blob});
    if (files.adapter == nullptr) return;
    const Blob weights = files.adapter->open(kAdapterWeights);
    hashed_.push_back({std::string("adapter/") + kAdapterWeights, weights});
    adapter_.emplace(SafetensorsFile(weights, files.adapter->path(kAdapterWeights)), targets());
  }

  std::string fingerprint() const override {
    std::call_once(fingerprint_made_, [this] {
      const std::vector<std::string> hashes = hash_all(hashed_);
      Sha256 whole;
      for (std::size_t i = 0; i < hashed_.size(); ++i) {
        whole.update(fmt::format("{} {}\n", hashes[i], hashed_[i].name));
      }
      fingerprint_ = whole.hex();
    });
    return fingerprint_;
  }

 private:
  Tensor read(const TensorInfo& info) const override { return base_.tensor(info); }
  LoraPair read(const AdapterTarget& target) const override { return adapter_->pair(target); }

  BaseWeights base_;
  std::optional<AdapterWeights> adapter_;
  std::vector<NamedBlob> hashed_;
  mutable std::once_flag fingerprint_made_;
  mutable std::string fingerprint_;
};

}  // namespace

std::unique_ptr<const Checkpoint> open_checkpoint(const CheckpointFiles& files) {
  return std::make_unique<FileCheckpoint>(files);
}

}  // namespace jemm
