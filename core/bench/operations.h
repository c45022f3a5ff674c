// How many operations the model asks for, from its config and from what was run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "engine/engine.h"
#include "plan/forest.h"

namespace jemm {

/// What the engine was asked to compute.
struct Work {
  std::vector<std::int64_t> pass_rows;  ///< token rows of each forward
  std::int64_t n_read = 0;              ///< rows whose labels were read
  double n_seen = 0;                    ///< over all rows: the rows that it sees, itself included
  std::int64_t n_patches = 0;           ///< of images that the vision tower looked at
  double n_patches_seen = 0;            ///< over all patches: those of its image

  std::int64_t n_rows() const;
  void add(const Forest& forest);
  void add(std::span<const ImagePatches> images);

  bool operator==(const Work&) const = default;
};

/// Operations of a model, a multiplication and an addition as two: linear layers, attention, the
/// convolution, and the delta rule token by token at 7 Dk Dv a value head and row. Norms, gates,
/// activations and the adapter (below 1 %) are left out, so that the count is the same for every
/// engine, mode and precision.
class OperationCount {
 public:
  explicit OperationCount(const ModelConfig& config);

  double operations(const Work& work) const;

 private:
  double a_row_ = 0;  ///< of the language model
  double a_row_seen_ = 0;
  double a_read_row_ = 0;
  double a_patch_ = 0;  ///< of the vision tower, its merger included
  double a_patch_seen_ = 0;
};

}  // namespace jemm
