// What follows from a report: states, rows of gates, sentences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

GateRow gate_row(const GateResult& result) {
  return {.name = result.name,
          .stage = result.stage,
          .n_compared = result.n_compared,
          .gauge = result.gauge,
          .case_id = result.case_id,
          .question = result.question};
}

GateRow gate_row(const StageSummary& stage, std::string_view what, const Extreme& extreme,
                 const Gauge& gauge) {
  return {.name = fmt::format("{} {}", stage_name(stage.stage), what),
          .stage = stage.stage,
          .n_compared = stage.n_compared,
          .gauge = gauge,
          .case_id = extreme.case_id,
          .question = extreme.question};
}

}  // namespace

std::string_view stage_state_name(StageState state) {
  switch (state) {
    case StageState::kAbsent:
      return "absent";
    case StageState::kPassed:
      return "passed";
    case StageState::kNotGated:
      return "not gated";
    case StageState::kWithinNoise:
      return "within noise";
    case StageState::kOverBudget:
      return "over budget";
    case StageState::kFailed:
      break;
  }
  return "failed";
}

Tone tone_of(StageState state) {
  switch (state) {
    case StageState::kPassed:
      return Tone::kPass;
    case StageState::kWithinNoise:
      return Tone::kNoise;
    case StageState::kOverBudget:
      return Tone::kDrift;
    case StageState::kFailed:
      return Tone::kFail;
    case StageState::kAbsent:
    case StageState::kNotGated:
      break;
  }
  return Tone::kQuiet;
}

Tone tone_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return Tone::kPass;
    case Verdict::kWithinNoise:
      return Tone::kNoise;
    case Verdict::kDrift:
      return Tone::kDrift;
    case Verdict::kFail:
    case Verdict::kError:
      break;
  }
  return Tone::kFail;
}

std::vector<GateRow> gate_rows(const Report& report) {
  std::vector<GateRow> rows;
  for (const StageSummary& stage : report.stages) {
    if (stage.rms_gauge) {
      rows.push_back(gate_row(stage, "rms", stage.rms, *stage.rms_gauge));
      rows.back().is_rms = true;
    }
    if (stage.max_abs_gauge) {
      rows.push_back(gate_row(stage, "max abs", stage.max_abs, *stage.max_abs_gauge));
      rows.back().is_max_abs = true;
    }
  }
  for (const GateResult& result : report.gate_results) rows.push_back(gate_row(result));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const GateRow& a, const GateRow& b) { return a.stage < b.stage; });
  return rows;
}

StageState gauge_state(const Gauge& gauge, std::uint64_t n_compared) {
  if (n_compared == 0) return StageState::kAbsent;
  switch (gauge.outcome()) {
    case Outcome::kPass:
      return StageState::kPassed;
    case Outcome::kWithinNoise:
      return StageState::kWithinNoise;
    case Outcome::kOver:
      return StageState::kOverBudget;
    case Outcome::kNotGated:
      break;
  }
  return StageState::kNotGated;
}

StageState stage_state(const Report& report, const StageSummary& stage) {
  std::vector<StageState> states;
  bool finite = true;
  const auto add = [&](const Gauge& gauge, std::uint64_t n_compared) {
    states.push_back(gauge_state(gauge, n_compared));
    finite = finite && std::isfinite(gauge.value);
  };
  if (stage.rms_gauge) add(*stage.rms_gauge, stage.n_compared);
  if (stage.max_abs_gauge) add(*stage.max_abs_gauge, stage.n_compared);
  for (const GateResult& gate : report.gate_results) {
    if (gate.stage == stage.stage) add(gate.gauge, gate.n_compared);
  }
  const auto any = [&](StageState state) {
    return std::find(states.begin(), states.end(), state) != states.end();
  };
  const bool more_than_drift =
      std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
        return finding.stage == stage.stage && finding.kind != FindingKind::kOverBudget;
      });
  if (!finite || more_than_drift) return StageState::kFailed;
  if (any(StageState::kOverBudget)) return StageState::kOverBudget;
  if (stage.n_wrong > 0) return StageState::kFailed;
  if (stage.n_compared == 0) return StageState::kAbsent;
  if (any(StageState::kWithinNoise)) return StageState::kWithinNoise;
  const bool gated = !is_numeric(stage.stage.kind) || any(StageState::kPassed);
  return gated ? StageState::kPassed : StageState::kNotGated;
}

SmallestBudget smallest_budget(const Gauge& gauge) {
  SmallestBudget smallest;
  if (!std::isfinite(gauge.value) || gauge.value < 0) return smallest;
  smallest.at_most = gauge.value;
  if (gauge.noise && *gauge.noise > 0 && std::isfinite(*gauge.noise)) {
    smallest.times_noise = gauge.value / *gauge.noise;
  }
  return smallest;
}

std::string budget_text(const Gauge& gauge) {
  const std::optional<double> budget = gauge.budget();
  if (!budget) return "-";
  if (gauge.limits.at_most && *budget <= *gauge.limits.at_most) return number_text(*budget);
  return fmt::format("{} = {} x {}", number_text(*budget), number_text(*gauge.limits.times_noise),
                     number_text(*gauge.noise));
}

std::string place_text(const std::string& case_id, int question) {
  if (case_id.empty() || question < 0) return case_id;
  return fmt::format("{}, question {}", case_id, question);
}

std::string counts_text(const Report& report) {
  return fmt::format("{}: {} answered, {} refused; {}, {}", count_text(report.n_cases, "case"),
                     report.n_ok, report.n_refused, count_text(report.n_questions, "question"),
                     count_text(report.n_images, "image"));
}

std::string bisection_text(const Bisection& bisection) {
  if (!bisection.overall) return "No stage is over its budget.";
  std::uint64_t n_cases = 0;
  for (const auto& [stage, n] : bisection.counts) n_cases += n;
  return fmt::format("The first stage over its budget is {} ({} with a first fault).",
                     stage_name(*bisection.overall), count_text(n_cases, "case"));
}

std::string agreement_text(const Agreement& agreement) {
  if (agreement.n == 0) return "no winners to compare";
  return fmt::format("{} of {} winners agree: {:.1f} % (95 % interval {:.1f} % to {:.1f} %)",
                     agreement.n_agree, agreement.n, 100 * agreement.share, 100 * agreement.low,
                     100 * agreement.high);
}

std::string beside_text(const Report& report) {
  const std::string who = report.observed.kind == "engine" ? "engine" : "observed";
  if (report.distance.n == 0) return fmt::format("{}: nothing compared", who);
  const std::string own = fmt::format("{} {}", who, number_text(report.distance.drift.max));
  if (!report.noise_distance || report.noise_distance->n == 0) return own;
  return fmt::format("{}, reference's own {}", own, number_text(report.noise_distance->drift.max));
}

std::vector<std::string> stage_words(const Report& report) {
  std::vector<std::string> words;
  for (std::string_view names = report.stage_names; !names.empty();) {
    const std::size_t comma = std::min(names.find(','), names.size());
    words.emplace_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return words;
}

std::string side_name(const Side& side) {
  return side.name.empty() ? side.kind : side.kind + " " + side.name;
}

std::string side_text(const Side& side) {
  std::vector<std::string> facts;
  for (const auto& [name, value] : side.facts) {
    if (name == "dtype" || name == "device") facts.push_back(fmt::format("{} {}", name, value));
  }
  return facts.empty() ? side_name(side)
                       : fmt::format("{}: {}", side_name(side), fmt::join(facts, ", "));
}

}  // namespace jemm
