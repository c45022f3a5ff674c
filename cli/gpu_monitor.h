// What the driver's management library (NVML) says of one GPU. Opened at run time; asks, never
// changes.
#pragma once

#include <memory>
#include <optional>

#include "bench/report.h"

namespace jemm::cli {

class GpuMonitor {
 public:
  /// `device`: as CUDA counts. To be made before the device is used: who computes on it now is
  /// another process.
  explicit GpuMonitor(int device);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// What could be found out; `unwatched` says why there is no more.
  const GpuFacts& facts() const { return facts_; }
  /// Clocks, temperature, power and throttling now; nothing where the GPU cannot be watched.
  std::optional<GpuState> read() const;

 private:
  struct Nvml;

  GpuFacts facts_;
  std::unique_ptr<Nvml> nvml_;  ///< null: unwatched
};

}  // namespace jemm::cli
