// The float32 engine on the CPU: readable, exact in its order of operations, the oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "checkpoint/checkpoint.h"
#include "engine/engine.h"

namespace jemm {

/// `label_ids`: the head's rows that are the 32 labels (label_token_ids). n_threads: 0 takes one a
/// processor. A row's results are the same bits whatever else is in the pass, in whatever order,
/// and whatever the number of threads. Weights stay as they are stored and are widened a panel at a
/// time, so memory is that of the files and of the activations: about 4 (4 D + F + 2 conv_dim + 3
/// value_dim) bytes a row, and about 4 (11 Dimg + Fimg + 1536) bytes a patch of the images that are
/// looked at together. Throws Error(kDevice) and what the checkpoint throws.
std::unique_ptr<Engine> make_cpu_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                        std::span<const std::int32_t, 32> label_ids,
                                        int n_threads = 0);

}  // namespace jemm
