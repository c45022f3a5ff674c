// What makes numbers doubtful.
#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "bench/report.h"

namespace jemm {
namespace {

constexpr std::size_t kFewSamples = 10;
constexpr double kWideSpread = 1.2;    ///< p90 over p10
constexpr double kUnaccounted = 0.02;  ///< share of the time
constexpr double kTakenGb = 2;         ///< more than a driver keeps for itself
constexpr double kClockSpread = 1.05;  ///< highest over lowest

struct ThrottleReason {
  std::uint64_t bit;
  std::string_view name;
};
// NVML's nvmlClocksEventReason bits that slow a busy GPU down.
constexpr ThrottleReason kThrottleReasons[] = {
    {0x04, "power cap"},
    {0x08, "hardware slowdown"},
    {0x20, "software thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "power brake"},
};

class Doubts {
 public:
  explicit Doubts(const BenchReport& report) : report_(report) {}

  std::vector<std::string> run() {
    machine();
    if (report_.environment.gpu) gpu(*report_.environment.gpu);
    if (report_.model.is_toy) {
      add("the embedded demonstration checkpoint is a toy: its times say nothing of a real model");
    }
    for (const Result& result : report_.results) {
      if (result.workload.n_refused > 0) {
        add("{}: {} of {} requests were refused, and refusals cost little", result.workload.name,
            result.workload.n_refused, result.workload.n_requests);
      }
      for (std::size_t i = 0; i < result.modes.size(); ++i) series(result, i);
    }
    return std::move(doubts_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    doubts_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void machine() {
    const Environment& environment = report_.environment;
    if (environment.load_before > 0.5 * environment.n_processors) {
      add("load average {:.1f} on {} processors before the run", environment.load_before,
          environment.n_processors);
    }
    if (!environment.governor.empty() && environment.governor != "performance") {
      add("the processor's clock is governed by \"{}\"", environment.governor);
    }
    if (!environment.build.starts_with("Release")) add("this is a {} build", environment.build);
  }

  void gpu(const GpuFacts& facts) {
    const double taken_gb = static_cast<double>(facts.other_bytes) / 1e9;
    if (facts.n_other_processes > 0) {
      add("another process uses the GPU ({}, with {:.1f} GB)", facts.n_other_processes, taken_gb);
    } else if (taken_gb > kTakenGb) {
      add("{:.1f} GB of the GPU's memory were taken before the run", taken_gb);
    }
    if (!facts.unwatched.empty()) {
      add("the GPU's clocks and throttling are unknown: {}", facts.unwatched);
    }
  }

  std::string place(const Result& result, std::size_t mode) const {
    const std::string& name = report_.modes[mode].name;
    return name.empty() ? result.workload.name : result.workload.name + ", " + name;
  }

  void series(const Result& result, std::size_t mode) {
    const Series& series = result.modes[mode];
    const std::string where = place(result, mode);
    const Summary total = summarise(total_times(series));
    if (total.n < kFewSamples) add("{}: n = {}, below {}", where, total.n, kFewSamples);
    if (total.p90 > kWideSpread * total.p10) {
      add("{}: wide spread, p90 is {:.2f} times p10", where, total.p90 / total.p10);
    }
    const StageMeans means = stage_means(series);
    const double share = means.other_ms / means.stages.total_ms;
    if (std::abs(share) > kUnaccounted) {
      add("{}: {:.1f} % of the time is in no stage", where, 100 * share);
    }
    throttling(where, series.samples);
    clocks(where, series.samples);
  }

  void throttling(const std::string& where, const std::vector<RunSample>& samples) {
    std::size_t n_throttled = 0;
    std::uint64_t reasons = 0;
    for (const RunSample& sample : samples) {
      const std::uint64_t seen = slowing(sample);
      reasons |= seen;
      if (seen != 0) ++n_throttled;
    }
    if (n_throttled == 0) return;
    std::string names;
    for (const ThrottleReason& reason : kThrottleReasons) {
      if ((reasons & reason.bit) == 0) continue;
      names += names.empty() ? "" : ", ";
      names += reason.name;
    }
    add("{}: the GPU was throttled in {} of {} samples ({})", where, n_throttled, samples.size(),
        names);
  }

  static std::uint64_t slowing(const RunSample& sample) {
    std::uint64_t mask = 0;
    for (const ThrottleReason& reason : kThrottleReasons) mask |= reason.bit;
    return sample.gpu ? sample.gpu->throttle_reasons & mask : 0;
  }

  void clocks(const std::string& where, const std::vector<RunSample>& samples) {
    unsigned low = 0, high = 0;
    for (const RunSample& sample : samples) {
      if (!sample.gpu || sample.gpu->sm_mhz == 0) continue;
      low = low == 0 ? sample.gpu->sm_mhz : std::min(low, sample.gpu->sm_mhz);
      high = std::max(high, sample.gpu->sm_mhz);
    }
    if (high > kClockSpread * low) {
      add("{}: the GPU's clock went from {} to {} MHz", where, low, high);
    }
  }

  const BenchReport& report_;
  std::vector<std::string> doubts_;
};

}  // namespace

std::vector<std::string> doubts(const BenchReport& report) {
  return Doubts(report).run();
}

}  // namespace jemm
