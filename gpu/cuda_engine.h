// The engine on one CUDA device. Includes no CUDA header: any room may see this one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/checkpoint.h"
#include "engine/engine.h"

namespace jemm {

enum class Precision {
  kBf16,  ///< BF16 weights and activations, FP32 sums, norms, gates and recurrent state
  kFp32,  ///< everything FP32, without TF32: to verify the structure
};

struct CudaOptions {
  int device = 0;
  Precision precision = Precision::kBf16;
  /// One algorithm a weight whatever the number of rows: results do not depend on the pass.
  bool deterministic = false;
  /// Passes of few rows that come again are launched as one graph.
  bool graphs = true;
};

/// Whether a device is there that this build can use; the reason when not ("no CUDA device",
/// "driver too old", ...). Never throws.
struct CudaPresence {
  bool usable = false;
  std::string reason;
};
CudaPresence cuda_presence(int device = 0);

/// As make_cpu_engine. Throws Error(kDevice) when the device is missing, unsupported or too small,
/// and what the checkpoint throws.
std::unique_ptr<Engine> make_cuda_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                         std::span<const std::int32_t, 32> label_ids,
                                         const CudaOptions& options = {});

}  // namespace jemm
