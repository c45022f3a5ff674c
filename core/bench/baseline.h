// An earlier report beside this one: what became slower.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/report.h"

namespace jemm {

inline constexpr std::string_view kBenchSchema = "jemm-bench/1";

/// One workload in one mode, now and then.
struct Slowdown {
  std::string name;  ///< workload and mode
  Ratio ratio;       ///< time now / time of the baseline, request to answer
  bool is_over = false;
};

struct BaselineComparison {
  std::vector<Slowdown> slowdowns;
  std::vector<std::string> unmatched;  ///< of this report, not in the baseline
};

/// Results are matched by the bytes of their requests and the setup of their mode. Throws
/// Error(kInput), naming `file`, for text that is no such report, and Error(kUsage), saying what
/// differs, for one of another processor, GPU, model or kind of build. max_slowdown: larger ratios
/// are over.
BaselineComparison compare_baseline(const BenchReport& report, std::string_view json,
                                    const std::string& file, double max_slowdown);
std::string baseline_text(const BaselineComparison& comparison, double max_slowdown);

}  // namespace jemm
