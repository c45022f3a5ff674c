// The end of a run: summaries, gates, and the verdict that follows from them.
#include <fmt/format.h>

#include "judge/distance.h"
#include "judge/judge.h"

namespace jemm {

void Judge::finish_stages() {
  for (int i = 0; i < kStageKinds; ++i) {
    const auto kind = static_cast<StageKind>(i);
    if (!stages_.has(kind)) continue;
    const auto first = tallies_.lower_bound({kind});
    const bool is_absent = first == tallies_.end() || first->first.kind != kind;
    if (is_absent) tallies_[{kind, kind == StageKind::kLayer ? kAnyLayer : 0}];
  }
  for (auto& [stage, tally] : tallies_) {
    StageSummary summary;
    summary.stage = stage;
    summary.n_compared = tally.n_compared;
    summary.n_wrong = tally.n_wrong;
    summary.rms = tally.rms_extreme;
    summary.max_abs = tally.max_abs_extreme;
    if (!tally.rms.empty()) {
      summary.rms_gauge = rms_gauge(stage, summary.rms.max);
      summary.max_abs_gauge = max_abs_gauge(stage, summary.max_abs.max);
    }
    summary.rms.median = tally.rms.median();
    summary.max_abs.median = tally.max_abs.median();
    report_.stages.push_back(std::move(summary));
  }
}

void Judge::finish_distances() {
  DistanceSummary& distance = report_.distance;
  distance.n = drifts_.size();
  distance.drift = worst_drift_;
  distance.drift.median = median_of(drifts_);
  distance.kl = worst_kl_;
  distance.kl.median = kls_.median();
  distance.total_variation = worst_variation_;
  distance.total_variation.median = variations_.median();
  Agreement& agreement = report_.agreement;
  const Interval interval = wilson_interval(agreement.n_agree, agreement.n);
  if (agreement.n > 0) {
    agreement.share = static_cast<double>(agreement.n_agree) / static_cast<double>(agreement.n);
  }
  agreement.low = interval.low;
  agreement.high = interval.high;
  if (noise_) {
    report_.noise_distance = noise_->distance;
    report_.noise_agreement = noise_->agreement;
  }
}

void Judge::finish_gates() {
  const std::uint64_t n = report_.distance.n;
  const auto add = [&](std::string name, StageKind stage, std::uint64_t n_compared,
                       const Budget& limits, const Extreme& extreme, double value,
                       std::optional<double> noise) {
    if (!stages_.has(stage)) return;
    report_.gate_results.push_back({.name = std::move(name),
                                    .stage = {stage},
                                    .n_compared = n_compared,
                                    .gauge = {.value = value, .limits = limits, .noise = noise},
                                    .case_id = extreme.case_id,
                                    .question = extreme.question});
  };
  const auto from_noise = [&](std::optional<double> NoiseLevels::*member) {
    return noise_ ? (*noise_).*member : std::nullopt;
  };
  const Extreme& drift = report_.distance.drift;
  add("probability.median", StageKind::kProbabilities, n, gates_.probability_median, {},
      drift.median, from_noise(&NoiseLevels::probability_median));
  add("probability.max", StageKind::kProbabilities, n, gates_.probability_max, drift, drift.max,
      from_noise(&NoiseLevels::probability_max));
  const Budget& far = gates_.far_answer;
  if (far.at_most || far.times_noise) {
    const double share = n == 0 ? 0 : static_cast<double>(n_far_) / static_cast<double>(n);
    add("probability.far_share", StageKind::kProbabilities, n, gates_.far_share, {}, share,
        std::nullopt);
  }
  add("expected_value.max", StageKind::kDecision, n_expected_values_, gates_.expected_value_max,
      worst_expected_value_, worst_expected_value_.max,
      from_noise(&NoiseLevels::expected_value_max));
  add("decision.flip_margin", StageKind::kDecision, n, gates_.flip_margin, worst_flip_,
      worst_flip_.max, from_noise(&NoiseLevels::flip_margin));
}

void Judge::decide_verdict() {
  bool any_over = false;
  bool any_within_noise = false;
  std::string over;
  std::size_t n_not_gated = 0;
  const auto look = [&](StageId stage, const Gauge& measured, const std::string& name) {
    const Outcome outcome = measured.outcome();
    any_within_noise = any_within_noise || outcome == Outcome::kWithinNoise;
    if (outcome != Outcome::kOver) return;
    any_over = true;
    std::optional<StageId>& first = report_.bisection.overall;
    if (!first || stage < *first) first = stage;
    over += fmt::format("{}{} {:.3g} of {:.3g}", over.empty() ? "" : ", ", name, measured.value,
                        *measured.budget());
  };
  std::uint64_t n_compared = 0;
  std::string wrong;
  for (const StageSummary& stage : report_.stages) {
    n_compared += stage.n_compared;
    if (stage.rms_gauge) {
      look(stage.stage, *stage.rms_gauge, stage_name(stage.stage));
      if (stage.rms_gauge->outcome() == Outcome::kNotGated) ++n_not_gated;
    }
    if (stage.max_abs_gauge)
      look(stage.stage, *stage.max_abs_gauge, stage_name(stage.stage) + " (largest)");
    if (stage.n_wrong == 0) continue;
    wrong +=
        fmt::format("{}{} {}", wrong.empty() ? "" : ", ", stage.n_wrong, stage_name(stage.stage));
  }
  for (const GateResult& gate : report_.gate_results) {
    if (gate.n_compared > 0) look(gate.stage, gate.gauge, gate.name);
  }
  if (!only_numbers_) {
    report_.verdict = Verdict::kFail;
    report_.reason = fmt::format("findings by stage: {}", wrong);
  } else if (report_.n_ok == 0 || n_compared == 0) {
    report_.verdict = Verdict::kError;
    report_.reason = report_.n_cases == 0 ? "the golden holds no cases"
                     : report_.n_ok == 0  ? "the golden holds refusals only: nothing was evaluated"
                                          : "none of the stages asked for is in the golden";
  } else if (any_over || report_.n_findings > 0) {
    report_.verdict = Verdict::kDrift;
    report_.reason = fmt::format("over budget: {}", over.empty() ? wrong : over);
  } else if (any_within_noise) {
    report_.verdict = Verdict::kWithinNoise;
    report_.reason =
        "exact stages are equal, numbers within their budgets or the multiple of the reference's "
        "own noise";
  } else {
    report_.verdict = Verdict::kPass;
    report_.reason = "exact stages are equal, numbers within their budgets";
  }
  const bool is_passed =
      report_.verdict == Verdict::kPass || report_.verdict == Verdict::kWithinNoise;
  if (is_passed && n_not_gated > 0) {
    report_.reason += fmt::format("; {} stages have no budget", n_not_gated);
  }
  report_.reason_redacted = report_.reason;
}

}  // namespace jemm
