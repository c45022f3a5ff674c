// An earlier report beside this one: what became slower.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bench/report.h"

namespace jemm {

inline constexpr std::string_view kBenchSchema = "jemm-bench/1";

/// One workload in one mode, now and then.
struct Slowdown {
  std::string name;            ///< workload and mode
  Drift drift;                 ///< of the answers of now's first run against then's
  std::optional<Ratio> ratio;  ///< time now / time of the baseline; none: the answers differ
  bool is_over = false;        ///< the ratio is over the limit
};

struct BaselineComparison {
  std::vector<Slowdown> slowdowns;
  std::vector<std::string> unmatched;  ///< of this report, not in the baseline
};

/// An earlier report.
class Baseline {
 public:
  /// Throws Error(kInput), naming `file`, for text that is no report or over 64 MiB, for more than
  /// kMostRuns samples of a mode or kMostAnswers answers.
  Baseline(std::string_view json, const std::string& file);

  /// Throws Error(kUsage), saying what differs, when it is of another processor, GPU, model or kind
  /// of build. The report needs no results yet.
  void check_same_ground(const BenchReport& report) const;

  /// Results are matched by the bytes of their requests, the setup and the weights of their mode.
  /// Ratios over max_slowdown are marked; there is none where answers differ by more than the
  /// report's max_drift. `stop` is asked before each result: then the rest is left out.
  BaselineComparison compare(const BenchReport& report, double max_slowdown,
                             const std::function<bool()>& stop) const;

 private:
  struct Ground {
    std::string processor, gpu, build, model;
  };
  static Ground ground_of(const BenchReport& report);

  std::string file_;
  Ground ground_;
  /// The requests' hash, the mode's setup and weights.
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Earlier {
    std::vector<double> total_ms;
    Outputs answers;
  };
  std::map<Key, Earlier> results_;
};
std::string baseline_text(const BaselineComparison& comparison, double max_slowdown,
                          double max_drift);

}  // namespace jemm
