// The judge: takes comparisons case by case, gives a verdict and the facts behind it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/bins.h"
#include "judge/compare.h"
#include "judge/report.h"
#include "judge/sample.h"

namespace jemm {

/// How far two references lie apart, value by value: what budgets are multiples of.
struct NoiseLevels {
  std::map<StageId, double> stage_rms, stage_max_abs;
  std::optional<double> probability_median, probability_max, expected_value_max, flip_margin;
  DistanceSummary distance;
  Agreement agreement;
};
/// From a report of one reference against the other. Throws Error(kInput) for a level that is not
/// finite: a multiple of it would let everything pass.
NoiseLevels noise_levels(const Report& report);

/// The gates with the noise filled in, as canonical JSON: what a report's hash covers.
std::string resolved_gates_json(const Gates& gates, const std::optional<NoiseLevels>& noise);

/// Memory: 8 bytes an answer, lists and samples of bounded length. Not thread-safe.
class Judge {
 public:
  /// `gates.threshold` unset: crossings are not counted.
  Judge(Gates gates, StageSet stages, std::optional<NoiseLevels> noise);

  /// Takes a case. `noise`: the second reference's comparison of the same case, or null. Returns
  /// all findings of the case, those that depend on budgets included, by stage.
  std::vector<Finding> add(const CaseComparison& comparison, const CaseComparison* noise);
  /// Takes what is wrong beside the cases that were compared.
  void add_finding(const Finding& finding);
  void note_watched() { ++report_.n_watched; }

  /// The report; sides, version and hash are the caller's to fill in. Call once, at the end.
  Report finish();

 private:
  /// All values of one stage.
  struct StageTally {
    std::uint64_t n_compared = 0;
    std::uint64_t n_wrong = 0;
    Sample rms, max_abs;
    Extreme rms_extreme, max_abs_extreme;
  };

  Gauge rms_gauge(StageId stage, double value) const;
  Gauge max_abs_gauge(StageId stage, double value) const;
  void take_value(const std::string& case_id, const StageValue& value,
                  std::vector<Finding>& findings);
  void take_answer(const AnswerComparison& answer, const AnswerComparison* noise,
                   std::optional<double> case_noise, std::vector<Finding>& findings);
  void take_crossing(const AnswerComparison& answer);
  void take_point(const AnswerPoint& point);
  void count_finding(const Finding& finding);
  void note_first_fault(const Finding& finding);
  void finish_stages();
  void finish_gates();
  void finish_distances();
  void decide_verdict();

  Gates gates_;
  StageSet stages_;
  std::optional<NoiseLevels> noise_;
  Report report_;
  std::map<StageId, StageTally> tallies_;
  std::vector<double> drifts_;  ///< all of them: their median is judged
  Sample kls_, variations_;
  Extreme worst_drift_, worst_kl_, worst_variation_;
  Extreme worst_expected_value_, worst_flip_;
  std::uint64_t n_expected_values_ = 0;
  std::uint64_t n_far_ = 0;
  bool only_numbers_ = true;  ///< no finding but numbers over their budget
  Bins bins_;
  std::map<StageId, std::uint64_t> first_faults_;
  std::uint64_t n_points_seen_ = 0;
  std::uint64_t point_step_ = 1;
};

}  // namespace jemm
