// Adding up cases, and the verdict.
#include "judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "judge/bins.h"
#include "judge/distance.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxWorst = 10;
constexpr std::size_t kMaxPoints = 512;

void note(Extreme& extreme, double value, const std::string& case_id, int question) {
  if (extreme.is_set && value <= extreme.max) return;
  extreme.is_set = true;
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

double finite(double noise, const std::string& name) {
  if (std::isfinite(noise)) return noise;
  fail(ErrorKind::kInput, "the noise of {} is {}", name, noise);
}

std::optional<double> gate_value(const Report& report, std::string_view name) {
  for (const GateResult& gate : report.gate_results) {
    if (gate.name == name && gate.n_compared > 0) return gate.gauge.value;
  }
  return std::nullopt;
}

Gauge gauge(const Budget& limits, double value, std::optional<double> noise) {
  return {.value = value, .limits = limits, .noise = noise};
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
    levels.stage_rms[stage.stage] = finite(stage.rms.max, stage_name(stage.stage));
    levels.stage_max_abs[stage.stage] = finite(stage.max_abs.max, stage_name(stage.stage));
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
  std::optional<double> case_noise;
  for (std::size_t i = 0; noise != nullptr && i < noise->answers.size(); ++i) {
    case_noise = std::max(case_noise.value_or(0), noise->answers[i].point.drift);
  }
  for (const AnswerComparison& answer : comparison.answers) {
    const AnswerComparison* second = nullptr;
    for (std::size_t i = 0; noise != nullptr && i < noise->answers.size(); ++i) {
      if (noise->answers[i].point.question == answer.point.question) second = &noise->answers[i];
    }
    take_answer(answer, second, case_noise, findings);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.stage < b.stage; });
  for (const Finding& finding : findings) count_finding(finding);
  if (!findings.empty()) note_first_fault(findings.front());
  return findings;
}

void Judge::add_finding(const Finding& finding) {
  count_finding(finding);
  note_first_fault(finding);
}

void Judge::count_finding(const Finding& finding) {
  ++report_.n_findings;
  ++tallies_[finding.stage].n_wrong;
  const bool is_severe = finding.kind != FindingKind::kOverBudget;
  if (is_severe) only_numbers_ = false;
  std::vector<Finding>& listed = report_.findings;
  if (listed.size() == kMaxListed && is_severe) {
    // What is not a mere number is listed before numbers are.
    const auto number = std::find_if(listed.rbegin(), listed.rend(), [](const Finding& other) {
      return other.kind == FindingKind::kOverBudget;
    });
    if (number != listed.rend()) listed.erase(std::next(number).base());
  }
  if (listed.size() < kMaxListed) listed.push_back(finding);
}

void Judge::take_value(const std::string& case_id, const StageValue& value,
                       std::vector<Finding>& findings) {
  StageTally& tally = tallies_[value.stage];
  tally.max_abs.add(value.max_abs);
  note(tally.max_abs_extreme, value.max_abs, case_id, value.question);
  if (value.stage.kind == StageKind::kProbabilities) return;  // judged with the answers
  tally.rms.add(value.rms_ratio);
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
                        std::optional<double> case_noise, std::vector<Finding>& findings) {
  AnswerPoint point = answer.point;
  if (noise != nullptr) point.noise_drift = noise->point.drift;
  drifts_.push_back(point.drift);
  if (gauge(gates_.far_answer, point.drift, case_noise).outcome() == Outcome::kOver) ++n_far_;
  kls_.add(point.kl);
  variations_.add(point.total_variation);
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

void Judge::note_first_fault(const Finding& first) {
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

}  // namespace jemm
