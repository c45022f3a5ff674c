// What a report derives from samples.
#include "bench/report.h"

namespace jemm {

double idle_share(const Series& series) {
  return 1 - summarise(engine_times(series)).median / summarise(total_times(series)).median;
}

StageMeans stage_means(const Series& series) {
  StageMeans means;
  const auto n = static_cast<double>(series.samples.size());
  for (const RunSample& sample : series.samples) {
    for (std::size_t i = 0; i < kStages; ++i) {
      means.stages.stage_ms[i] += sample.stages.stage_ms[i] / n;
    }
    means.stages.total_ms += sample.total_ms / n;
    means.overlap_ms += sample.overlap_ms / n;
    means.other_ms += sample.other_ms() / n;
  }
  return means;
}

Comparison compare_modes(const Result& result, std::size_t mode, double max_drift) {
  const Series& a = result.modes.front();
  const Series& b = result.modes[mode];
  Comparison comparison{.total = ratio_of_medians(total_times(a), total_times(b)),
                        .engine = ratio_of_medians(engine_times(a), engine_times(b)),
                        .drift = a.drift.largest > b.drift.largest ? a.drift : b.drift};
  comparison.is_sound = comparison.drift.largest <= max_drift;
  return comparison;
}

}  // namespace jemm
