#include "bench/measure.h"

#include <numeric>

namespace jemm {
namespace {

class Measurement {
 public:
  Measurement(std::span<Subject* const> modes, const MeasureHooks& hooks)
      : modes_(modes), hooks_(hooks), series_(modes.size()) {}

  std::vector<Series> run(const MeasureLimits& limits) {
    round(0, RunKind::kFirst);
    for (std::size_t i = 0; i < limits.n_warm_up; ++i) round(i, RunKind::kWarmUp);
    const double end_s = hooks_.now_s() + limits.seconds;
    const auto is_enough = [&](std::size_t n_rounds) {
      if (limits.n_runs > 0) return n_rounds >= limits.n_runs;
      if (n_rounds >= kMostRuns) return true;
      return n_rounds >= kFewestRuns && (modes_.size() == 1 || n_rounds % 2 == 0) &&
             hooks_.now_s() >= end_s;
    };
    for (std::size_t i = 0; !stopped_ && !is_enough(i); ++i) round(i, RunKind::kMeasured);
    return std::move(series_);
  }

 private:
  void round(std::size_t index, RunKind kind) {
    for (std::size_t i = 0; i < modes_.size(); ++i) {
      run_mode(index % 2 == 0 ? i : modes_.size() - 1 - i, kind);
    }
  }

  void run_mode(std::size_t mode, RunKind kind) {
    stopped_ = stopped_ || hooks_.stop();
    if (stopped_) return;
    Outputs outputs;
    RunSample sample = modes_[mode]->run(outputs);
    hooks_.after_run(mode, kind, sample);
    Series& series = series_[mode];
    if (mode == 0 && kind == RunKind::kFirst) reference_ = outputs;
    Drift drift = outputs_drift(reference_, outputs);
    if (drift.largest > series.drift.largest) series.drift = std::move(drift);
    if (kind == RunKind::kFirst) {
      series.first = sample;
      series.answers = first_answers(outputs);
    }
    if (kind == RunKind::kMeasured) series.samples.push_back(std::move(sample));
  }

  std::span<Subject* const> modes_;
  const MeasureHooks& hooks_;
  std::vector<Series> series_;
  Outputs reference_;
  bool stopped_ = false;
};

std::vector<double> times(const Series& series, double RunSample::*member) {
  std::vector<double> values;
  for (const RunSample& sample : series.samples) values.push_back(sample.*member);
  return values;
}

}  // namespace

double RunSample::other_ms() const {
  return total_ms + overlap_ms -
         std::accumulate(stages.stage_ms.begin(), stages.stage_ms.end(), 0.0);
}

std::vector<Series> measure(std::span<Subject* const> modes, const MeasureLimits& limits,
                            const MeasureHooks& hooks) {
  return Measurement(modes, hooks).run(limits);
}

std::vector<double> total_times(const Series& series) {
  return times(series, &RunSample::total_ms);
}

std::vector<double> engine_times(const Series& series) {
  return times(series, &RunSample::engine_ms);
}

}  // namespace jemm
