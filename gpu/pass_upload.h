// A pass's plan in device memory, in one copy.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda.h"
#include "gpu/kernels/kernels.h"
#include "gpu/pass_plan.h"
#include "plan/forest.h"

namespace jemm::gpu {

/// Device pointers, valid until the next upload.
struct DevicePass {
  std::int64_t n_rows = 0, n_reads = 0, n_chunks = 0, n_tiles = 0;
  const std::int32_t* token_ids = nullptr;  // [rows]
  const std::int32_t* positions = nullptr;  // [rows, 3]
  const std::int32_t* read_rows = nullptr;  // [reads]
  const std::int32_t* previous = nullptr;   // [rows, conv_width - 1]
  const DeltaChunk* chunks = nullptr;
  const DeltaRun* delta_runs = nullptr;
  const AttentionRun* attention_runs = nullptr;
  const AttentionTile* tiles = nullptr;
  std::vector<DeltaLevel> levels;
  std::int32_t n_slots = 0;

  /// Equal passes are launched alike: only what the pointers point at may differ.
  bool operator==(const DevicePass&) const = default;
};

class PassUpload {
 public:
  /// The copy is enqueued. Nothing in flight may still read the pass before.
  DevicePass run(const Forest& forest, const PassPlan& plan, const Stream& stream);

 private:
  PinnedBytes host_;
  DeviceArray<std::byte> device_;
};

}  // namespace jemm::gpu
