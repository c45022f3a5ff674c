// What `jemm bench --floor` holds times against.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "checkpoint/config.h"

namespace jemm::cli {

/// Floors of a model's text passes on one CUDA device (gpu/floor.h), each number of rows searched
/// once.
class FloorTimes {
 public:
  /// The reference must outlive the object.
  FloorTimes(int device, const TextConfig& config) : device_(device), config_(config) {}

  /// The sum over the passes. Throws Error(kDevice).
  double ms(const std::vector<std::int64_t>& pass_rows);

 private:
  int device_;
  const TextConfig& config_;
  std::map<std::int64_t, double> known_;  ///< by rows
};

}  // namespace jemm::cli
