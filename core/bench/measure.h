// Runs of several modes in turn: which comes when, for how long, and what is kept of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "bench/operations.h"
#include "bench/outputs.h"
#include "engine/timings.h"

namespace jemm {

/// What the driver says of a GPU, read between two runs.
struct GpuState {
  unsigned sm_mhz = 0, memory_mhz = 0;
  unsigned celsius = 0;
  double watts = 0;
  std::uint64_t used_bytes = 0;        ///< of its memory, by all processes
  std::uint64_t throttle_reasons = 0;  ///< bits of NVML
};

/// One timed run.
struct RunSample {
  double total_ms = 0;   ///< from the requests' bytes to the answers' lines
  double engine_ms = 0;  ///< of it, in Engine::vision and Engine::forward
  /// Of the engine and of images, while something else was done too: stages that took place at once.
  double overlap_ms = 0;
  StageTimes stages;
  Work work;
  std::optional<GpuState> gpu;

  /// Time of no stage: the stages, less the overlap, and this are the total.
  double other_ms() const;
};

/// A workload in one mode.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Runs it once. `outputs` is filled outside the timed part.
  virtual RunSample run(Outputs& outputs) = 0;
};

struct MeasureLimits {
  double seconds = 0;      ///< go on until this has passed, behind the warm-up
  std::size_t n_runs = 0;  ///< not 0: exactly so many of each mode, however long they take
  std::size_t n_warm_up = 0;
};
/// Without n_runs there are as many at least, with several modes one more: rounds come in pairs.
inline constexpr std::size_t kFewestRuns = 3;
/// And no more than this, however long the time is: a report holds every sample.
inline constexpr std::size_t kMostRuns = 100'000;

enum class RunKind { kFirst, kWarmUp, kMeasured };

struct MeasureHooks {
  std::function<double()> now_s;
  std::function<bool()> stop;  ///< asked before each run: what is unfinished stays so
  std::function<void(std::size_t mode, RunKind kind, RunSample& sample)> after_run;
};

/// What became of one mode.
struct Series {
  RunSample first;  ///< the first run of all, slow in its own ways
  std::vector<RunSample> samples;
  Drift drift;      ///< the largest of all runs, warm-up included, against the first of mode 0
  Outputs answers;  ///< of the first run: first_answers
};

/// Every mode once, then warm-up, then what is measured, in rounds: A B, B A, A B, B A, ... so that
/// what drifts with time falls on all of them. Measured rounds of several modes come in pairs
/// unless n_runs says otherwise. Fewer samples than asked for only when told to stop.
std::vector<Series> measure(std::span<Subject* const> modes, const MeasureLimits& limits,
                            const MeasureHooks& hooks);

std::vector<double> total_times(const Series& series);
std::vector<double> engine_times(const Series& series);

}  // namespace jemm
