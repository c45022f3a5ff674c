// One run of `jemm bench`, from options to report.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench_modes.h"
#include "bench_prompts.h"
#include "progress.h"

namespace jemm::cli {

struct BenchOptions {
  Mode mode;                        ///< what all modes have in common
  std::string compare;              ///< "KEY=A,B", or empty
  std::vector<PromptSize> sizes;    ///< of a sweep
  std::vector<std::string> inputs;  ///< files of requests in its place
  MeasureLimits limits;
  double max_drift = 0;
  double max_slowdown = 0;
  bool floor = false;
  std::string baseline, json, samples;  ///< files; empty: none
  bool force = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// Returns an exit code, or throws what opening and answering throw.
int run_bench(const BenchOptions& options);

}  // namespace jemm::cli
