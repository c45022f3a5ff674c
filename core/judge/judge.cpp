// Adding up cases, and the verdict.
#include "judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "judge/bins.h"
#include "judge/distance.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxListed = 100;
constexpr std::size_t kMaxWorst = 10;
constexpr std::size_t kMaxPoints = 512;

void note(Extreme& extreme, double value, const std::string& case_id, int question) {
  // NaN is never the largest: it was a finding before it came here.
  if (!extreme.case_id.empty() && value <= extreme.max) return;
  extreme.max = value;
  extreme.case_id = case_id;
  extreme.question = question;
}

/// The smallest margin at which this flip would have passed: winners agree from a margin on.
double passing_margin(double margin) {
  return std::nextafter(margin, 1.0);
}

std::optional<double> level(const std::map<StageId, double>& levels, StageId stage) {
  const auto found = levels.find(stage);
  if (found == levels.end()) return std::nullopt;
  return found->second;
}

std::optional<double> gate_value(const Report& report, std::string_view name) {
  for (const GateResult& gate : report.gate_results) {
    if (gate.name == name && gate.n_compared > 0) return gate.gauge.value;
  }
  return std::nullopt;
}

/// Keeps the list's ten largest drifts, largest first.
void keep_worst(std::vector<AnswerPoint>& worst, const AnswerPoint& point) {
  const auto place = std::find_if(worst.begin(), worst.end(), [&](const AnswerPoint& other) {
    return other.drift < point.drift;
  });
  worst.insert(place, point);
  if (worst.size() > kMaxWorst) worst.pop_back();
}

}  // namespace

NoiseLevels noise_levels(const Report& report) {
  NoiseLevels levels;
  for (const StageSummary& stage : report.stages) {
    if (stage.n_compared == 0 || !is_numeric(stage.stage.kind)) continue;
    levels.stage_rms[stage.stage] = stage.rms.max;
    levels.stage_max_abs[stage.stage] = stage.max_abs.max;
  }
  levels.probability_median = gate_value(report, "probability.median");
  levels.probability_max = gate_value(report, "probability.max");
  levels.expected_value_max = gate_value(report, "expected_value.max");
  levels.flip_margin = gate_value(report, "decision.flip_margin");
  levels.distance = report.distance;
  levels.agreement = report.agreement;
  return levels;
}

std::string resolved_gates_json(const Gates& gates, const std::optional<NoiseLevels>& noise) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(gates_json(gates));
  json["noise"] = nullptr;
  if (noise) {
    nlohmann::ordered_json levels;
    const auto set = [&](const std::string& key, const std::optional<double>& value) {
      if (value) levels[key] = *value;
    };
    set("probability_median", noise->probability_median);
    set("probability_max", noise->probability_max);
    set("expected_value_max", noise->expected_value_max);
    set("flip_margin", noise->flip_margin);
    for (const auto& [stage, value] : noise->stage_rms) {
      set("stage_rms " + stage_name(stage), value);
    }
    for (const auto& [stage, value] : noise->stage_max_abs) {
      set("stage_max_abs " + stage_name(stage), value);
    }
    json["noise"] = levels;
  }
  return json.dump(1) + "\n";
}

Judge::Judge(Gates gates, StageSet stages, std::optional<NoiseLevels> noise)
    : gates_(std::move(gates)), stages_(stages), noise_(std::move(noise)) {
  report_.gates = gates_;
  report_.stage_names = stages_.names();
  report_.bands = margin_bands();
  if (gates_.threshold) report_.crossings = Crossings{.threshold = *gates_.threshold};
}

Gauge Judge::gauge(const Budget& limits, double value, std::optional<double> noise) const {
  return {.value = value, .limits = limits, .noise = noise};
}

Gauge Judge::rms_gauge(StageId stage, double value) const {
  return gauge(gates_.rms_budget(stage), value,
               noise_ ? level(noise_->stage_rms, stage) : std::nullopt);
}

Gauge Judge::max_abs_gauge(StageId stage, double value) const {
  return gauge(gates_.stage_max_abs, value,
               noise_ ? level(noise_->stage_max_abs, stage) : std::nullopt);
}

std::vector<Finding> Judge::add(const CaseComparison& comparison, const CaseComparison* noise) {
  ++report_.n_cases;
  ++(comparison.refused ? report_.n_refused : report_.n_ok);
  report_.n_questions += comparison.questions.size();
  report_.n_images += comparison.n_images;
  for (const StageId stage : comparison.compared) ++tallies_[stage].n_compared;
  std::vector<Finding> findings = comparison.findings;
  for (const StageValue& value : comparison.values) {
    take_value(comparison.case_id, value, findings);
  }
  for (const AnswerComparison& answer : comparison.answers) {
    const AnswerComparison* second = nullptr;
    for (std::size_t i = 0; noise != nullptr && i < noise->answers.size(); ++i) {
      if (noise->answers[i].point.question == answer.point.question) second = &noise->answers[i];
    }
    take_answer(answer, second, findings);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.stage < b.stage; });
  for (const Finding& finding : findings) add_finding(finding);
  note_first_fault(findings);
  return findings;
}

void Judge::add_finding(const Finding& finding) {
  ++report_.n_findings;
  ++tallies_[finding.stage].n_wrong;
  if (finding.kind != FindingKind::kOverBudget) only_numbers_ = false;
  if (report_.findings.size() < kMaxListed) report_.findings.push_back(finding);
}

void Judge::take_value(const std::string& case_id, const StageValue& value,
                       std::vector<Finding>& findings) {
  StageTally& tally = tallies_[value.stage];
  tally.max_abs.push_back(value.max_abs);
  note(tally.max_abs_extreme, value.max_abs, case_id, value.question);
  if (value.stage.kind == StageKind::kProbabilities) return;  // judged with the answers
  tally.rms.push_back(value.rms_ratio);
  note(tally.rms_extreme, value.rms_ratio, case_id, value.question);
  const auto check = [&](const Gauge& measured, std::string_view name) {
    if (measured.outcome() != Outcome::kOver) return;
    findings.push_back(
        {.case_id = case_id,
         .question = value.question,
         .question_id = "",
         .stage = value.stage,
         .kind = FindingKind::kOverBudget,
         .what = fmt::format("{} {:.3g} is over {:.3g}", name, measured.value, *measured.budget()),
         .what_redacted = ""});
    findings.back().what_redacted = findings.back().what;
  };
  check(rms_gauge(value.stage, value.rms_ratio), "RMS ratio");
  check(max_abs_gauge(value.stage, value.max_abs), "largest difference");
}

void Judge::take_answer(const AnswerComparison& answer, const AnswerComparison* noise,
                        std::vector<Finding>& findings) {
  AnswerPoint point = answer.point;
  if (noise != nullptr) point.noise_drift = noise->point.drift;
  drifts_.push_back(point.drift);
  kls_.push_back(point.kl);
  variations_.push_back(point.total_variation);
  note(worst_drift_, point.drift, point.case_id, point.question);
  note(worst_kl_, point.kl, point.case_id, point.question);
  note(worst_variation_, point.total_variation, point.case_id, point.question);
  const auto check = [&](StageKind stage, FindingKind kind, const Gauge& measured,
                         std::string_view name) {
    if (!stages_.has(stage) || measured.outcome() != Outcome::kOver) return;
    const std::string what =
        fmt::format("{} {:.3g} is over {:.3g}", name, measured.value, *measured.budget());
    findings.push_back({.case_id = point.case_id,
                        .question = point.question,
                        .question_id = point.question_id,
                        .stage = {stage},
                        .kind = kind,
                        .what = what,
                        .what_redacted = what});
  };
  check(StageKind::kProbabilities, FindingKind::kOverBudget,
        gauge(gates_.probability_max, point.drift, noise_ ? noise_->probability_max : std::nullopt),
        "drift");
  if (answer.expected_value_difference) {
    const double difference = *answer.expected_value_difference;
    ++n_expected_values_;
    note(worst_expected_value_, difference, point.case_id, point.question);
    check(StageKind::kDecision, FindingKind::kOverBudget,
          gauge(gates_.expected_value_max, difference,
                noise_ ? noise_->expected_value_max : std::nullopt),
          "difference of expected_value");
  }
  ++report_.agreement.n;
  if (point.flipped) {
    const double margin = passing_margin(point.margin);
    note(worst_flip_, margin, point.case_id, point.question);
    check(StageKind::kDecision, FindingKind::kFlip,
          gauge(gates_.flip_margin, margin, noise_ ? noise_->flip_margin : std::nullopt),
          "the winner flips; the reference's lead of");
  } else {
    ++report_.agreement.n_agree;
  }
  MarginBand& band = band_of(report_.bands, point.margin);
  ++band.n;
  if (point.flipped) ++band.n_flipped;
  if (noise != nullptr && noise->point.flipped) ++band.n_flipped_noise;
  take_crossing(answer);
  add_to_bins(bins_, point);
  take_point(point);
}

void Judge::take_crossing(const AnswerComparison& answer) {
  if (!report_.crossings) return;
  Crossings& crossings = *report_.crossings;
  const bool was_above = answer.reference_confidence >= crossings.threshold;
  const bool is_above = answer.confidence >= crossings.threshold;
  if (was_above == is_above) return;
  ++(is_above ? crossings.n_up : crossings.n_down);
  if (crossings.listed.size() == kMaxListed) return;
  crossings.listed.push_back({.case_id = answer.point.case_id,
                              .question = answer.point.question,
                              .reference_confidence = answer.reference_confidence,
                              .confidence = answer.confidence});
}

/// Every n-th point is kept, n doubling as points come, so that the sample has a limit.
void Judge::take_point(const AnswerPoint& point) {
  const bool is_candidate =
      report_.worst.size() < kMaxWorst || point.drift > report_.worst.back().drift;
  if (is_candidate) keep_worst(report_.worst, point);
  if (n_points_seen_++ % point_step_ != 0) return;
  if (report_.points.size() == kMaxPoints) {
    std::size_t n_kept = 0;
    for (std::size_t i = 0; i < report_.points.size(); i += 2) {
      report_.points[n_kept++] = std::move(report_.points[i]);
    }
    report_.points.resize(n_kept);
    point_step_ *= 2;
    if ((n_points_seen_ - 1) % point_step_ != 0) return;
  }
  report_.points.push_back(point);
  AnswerPoint& kept = report_.points.back();
  kept.candidates.clear();
  kept.reference.clear();
  kept.observed.clear();
}

void Judge::note_first_fault(const std::vector<Finding>& findings) {
  if (findings.empty()) return;
  const Finding& first = findings.front();
  Bisection& bisection = report_.bisection;
  if (!bisection.overall || first.stage < *bisection.overall) bisection.overall = first.stage;
  ++first_faults_[first.stage];
  if (bisection.listed.size() < kMaxListed) {
    bisection.listed.push_back({first.case_id, first.question, first.stage});
  }
}

Report Judge::finish() {
  finish_stages();
  finish_distances();
  finish_gates();
  report_.breakdowns = breakdowns(bins_);
  for (const auto& [stage, n] : first_faults_) report_.bisection.counts.emplace_back(stage, n);
  decide_verdict();
  return std::move(report_);
}

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
    summary.rms.median = median_of(tally.rms);
    summary.max_abs.median = median_of(tally.max_abs);
    report_.stages.push_back(std::move(summary));
  }
}

void Judge::finish_distances() {
  DistanceSummary& distance = report_.distance;
  distance.n = drifts_.size();
  distance.drift = worst_drift_;
  distance.drift.median = median_of(drifts_);
  distance.kl = worst_kl_;
  distance.kl.median = median_of(kls_);
  distance.total_variation = worst_variation_;
  distance.total_variation.median = median_of(variations_);
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
                                    .gauge = gauge(limits, value, noise),
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
  const auto look = [&](const Gauge& measured, const std::string& name) {
    const Outcome outcome = measured.outcome();
    any_within_noise = any_within_noise || outcome == Outcome::kWithinNoise;
    if (outcome != Outcome::kOver) return;
    any_over = true;
    over += fmt::format("{}{} {:.3g} of {:.3g}", over.empty() ? "" : ", ", name, measured.value,
                        *measured.budget());
  };
  std::uint64_t n_compared = 0;
  std::string wrong;
  for (const StageSummary& stage : report_.stages) {
    n_compared += stage.n_compared;
    if (stage.rms_gauge) look(*stage.rms_gauge, stage_name(stage.stage));
    if (stage.max_abs_gauge) look(*stage.max_abs_gauge, stage_name(stage.stage) + " (largest)");
    if (stage.n_wrong == 0) continue;
    wrong +=
        fmt::format("{}{} {}", wrong.empty() ? "" : ", ", stage.n_wrong, stage_name(stage.stage));
  }
  for (const GateResult& gate : report_.gate_results) {
    if (gate.n_compared > 0) look(gate.gauge, gate.name);
  }
  if (!only_numbers_) {
    report_.verdict = Verdict::kFail;
    report_.reason = fmt::format("findings by stage: {}", wrong);
  } else if (report_.n_ok == 0 || n_compared == 0) {
    report_.verdict = Verdict::kError;
    report_.reason = report_.n_cases == 0 ? "the golden holds no cases"
                     : report_.n_ok == 0  ? "the golden holds refusals only: nothing was evaluated"
                                          : "none of the stages asked for is in the golden";
  } else if (any_over) {
    report_.verdict = Verdict::kDrift;
    report_.reason = fmt::format("over budget: {}", over);
  } else if (any_within_noise) {
    report_.verdict = Verdict::kWithinNoise;
    report_.reason = "every number is within the multiple of the reference's own noise";
  } else {
    report_.verdict = Verdict::kPass;
    report_.reason = "exact stages are equal, numbers within their budgets";
  }
  report_.reason_redacted = report_.reason;
}

}  // namespace jemm
