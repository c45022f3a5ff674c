// What the driver's management library (NVML) says of one GPU. Opened at run time; asks, never
// changes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

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

/// The GPUs of several modes, each watched by one monitor.
class GpuMonitors {
 public:
  /// `devices`: of each mode, as CUDA counts; none on the CPU. To be made as early as a GpuMonitor.
  explicit GpuMonitors(const std::vector<std::optional<int>>& devices);

  /// Of the first mode that has a GPU.
  std::optional<GpuFacts> first_facts() const;
  /// Of the mode's own GPU; nothing on the CPU.
  std::optional<GpuState> read(std::size_t mode) const;

 private:
  std::vector<std::shared_ptr<const GpuMonitor>> monitors_;  ///< by mode; null: CPU
};

}  // namespace jemm::cli
