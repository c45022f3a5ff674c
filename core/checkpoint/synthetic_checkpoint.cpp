// open_synthetic: small files from directories, weights from the formula.
#include "base/sha256.h"
#include "checkpoint/described_checkpoint.h"
#include "checkpoint/fingerprint.h"
#include "checkpoint/synthetic.h"

namespace jemm {
namespace {

class SyntheticCheckpoint final : public DescribedCheckpoint {
 public:
  SyntheticCheckpoint(const CheckpointFiles& files, std::uint32_t seed)
      : DescribedCheckpoint(files), seed_(seed) {}

  std::optional<std::uint32_t> synthetic_seed() const override { return seed_; }

  std::string fingerprint() const override {
    std::vector<FileHash> files;
    for (const NamedBlob& file : small_files()) {
      files.push_back({file.name, sha256_hex(file.blob.bytes)});
    }
    return synthetic_fingerprint_of(seed_, files);
  }

 private:
  Tensor read(const TensorInfo& info) const override { return synthetic_tensor(info, seed_); }
  LoraPair read(const AdapterTarget& target) const override {
    return {synthetic_lora(target, kLoraA, seed_), synthetic_lora(target, kLoraB, seed_),
            target.scale};
  }

  std::uint32_t seed_;
};

}  // namespace

std::unique_ptr<const Checkpoint> open_synthetic(const CheckpointFiles& files, std::uint32_t seed) {
  return std::make_unique<SyntheticCheckpoint>(files, seed);
}

}  // namespace jemm
