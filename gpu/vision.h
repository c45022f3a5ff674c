// The vision tower on the device: patches of images to the rows that replace their placeholders.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "engine/engine.h"
#include "gpu/cuda.h"
#include "gpu/gemm.h"
#include "gpu/kernels/vision_kernels.h"
#include "gpu/loader.h"
#include "gpu/vision_rows.h"
#include "gpu/vision_weights.h"

namespace jemm::gpu {

/// T: bf16, rounded where the reference rounds, or float throughout. A patch sees the patches of
/// its own image. M: patches a merged row.
template <typename T>
class VisionTower {
 public:
  /// Keeps `gemms` and `stream`, on which all its work is done. Throws what the checkpoint throws,
  /// and Error(kDevice) for a tower beyond what the kernels hold.
  VisionTower(Loader& loader, Gemms& gemms, const Stream& stream);

  /// Merged rows [grid rows * grid columns / M, D] of every image, finished. Throws Error(kDevice)
  /// for values that are no such grid.
  std::vector<std::shared_ptr<const CudaVisionRows>> run(std::span<const ImagePatches> images);

 private:
  using Rows = std::vector<std::shared_ptr<const CudaVisionRows>>;

  void run_batch(std::span<const ImagePatches> images, Rows& results);
  void place(std::span<const ImagePatches> images);
  void reserve(std::int64_t n_turns);
  void embed(std::span<const ImagePatches> images);
  void attend(const VisionBlockWeights<T>& block);
  void merge();
  void hand_out(std::span<const ImagePatches> images, Rows& results);

  void norm(const LayerNormWeights<T>& weights, const T* update);
  void apply(const BiasedLinear<T>& layer, std::int64_t n_rows, const T* x, T* y);
  std::int64_t patches_a_row() const { return config_.merge_size * config_.merge_size; }

  VisionConfig config_;
  Gemms& gemms_;
  const Stream& stream_;
  VisionWeights<T> weights_;
  std::shared_ptr<RowMemory> memory_ = std::make_shared<RowMemory>();

  // The batch in work, of P patches.
  std::int64_t n_patches_ = 0, n_tiles_ = 0;
  DeviceArray<PatchPlace> places_;  // [P]
  DeviceArray<ImageTile> tiles_;
  DeviceArray<Turn> turns_;  // [coordinate, head_dim / 4]

  // Activations, kept from call to call.
  DeviceArray<float> values_;           // [P, values of a patch]
  DeviceArray<T> patches_;              // the same, rounded; unused where T is float
  DeviceArray<T> x_, normed_, update_;  // [P, Dimg]
  DeviceArray<T> qkv_;                  // [P, 3, Himg, head_dim]
  DeviceArray<T> inner_;                // [P, Fimg], then [P / M, M Dimg]
  DeviceArray<T> merged_;               // [P / M, D]
};

}  // namespace jemm::gpu
