// The tables of a report.
#include "judge/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/render_text.h"

namespace jemm {
namespace {

const std::string kNone = "-";

std::string number(double value) {
  return number_text(value);
}

std::string whole(std::uint64_t value) {
  return std::to_string(value);
}

Cell state_cell(StageState state) {
  return {std::string(stage_state_name(state)), tone_of(state)};
}

/// Value, budget, share and smallest budget.
void add_gauge(std::vector<Cell>& cells, const Gauge& gauge, StageState state) {
  const std::optional<double> share = gauge.share();
  const std::optional<double> smallest = smallest_budget(gauge).at_most;
  const bool absent = state == StageState::kAbsent;
  cells.emplace_back(absent ? kNone : number(gauge.value));
  cells.emplace_back(budget_text(gauge));
  cells.emplace_back(share && !absent ? percent_text(*share) : kNone, tone_of(state));
  if (!absent) cells.back().share = share;
  cells.emplace_back(absent ? kNone : smallest ? number_text_up(*smallest) : "none");
}

/// A stage; one that has an RMS ratio shows it in its own row.
std::vector<Cell> stage_cells(const Report& report, const StageSummary& stage) {
  const bool has_rms = is_tensor(stage.stage.kind) || stage.stage.kind == StageKind::kLogits;
  std::vector<Cell> cells = {
      Cell(stage_name(stage.stage) + (stage.rms_gauge ? " rms" : "")),
      Cell(whole(stage.n_compared)),
      Cell(whole(stage.n_wrong), stage.n_wrong ? Tone::kFail : Tone::kPlain)};
  if (stage.rms_gauge) {
    add_gauge(cells, *stage.rms_gauge, gauge_state(*stage.rms_gauge, stage.n_compared));
  } else {
    const bool shows_rms = has_rms && stage.n_compared > 0;
    cells.emplace_back(shows_rms ? number(stage.rms.max) : "");
    cells.resize(cells.size() + 3);
  }
  cells.push_back(state_cell(stage_state(report, stage)));
  return cells;
}

std::vector<Cell> gate_cells(const GateRow& row) {
  const StageState state = gauge_state(row.gauge, row.n_compared);
  std::vector<Cell> cells = {Cell("  " + row.name), Cell(whole(row.n_compared)), Cell("")};
  add_gauge(cells, row.gauge, state);
  cells.push_back(state_cell(state));
  return cells;
}

std::vector<Cell> distance_cells(const std::string& name, const Extreme& own,
                                 const Extreme* noise) {
  return {Cell(name),
          Cell(number(own.median)),
          Cell(number(own.max)),
          Cell(noise ? number(noise->median) : kNone),
          Cell(noise ? number(noise->max) : kNone),
          Cell(place_text(own.case_id, own.question))};
}

std::string confidences(const AnswerPoint& point, bool of_reference) {
  const std::vector<double>& values = of_reference ? point.reference : point.observed;
  if (values.empty()) return kNone;
  const auto best = std::max_element(values.begin(), values.end()) - values.begin();
  const auto index = static_cast<std::size_t>(best);
  const std::string name =
      index < point.candidates.size() ? point.candidates[index] : fmt::format("#{}", index);
  return fmt::format("{} {:.3f}", shortened(printable(name), 16), values[index]);
}

Cell flips_cell(std::uint64_t n, std::uint64_t n_flipped) {
  const std::string share =
      n == 0 ? ""
             : fmt::format(" ({})",
                           percent_text(static_cast<double>(n_flipped) / static_cast<double>(n)));
  return Cell(whole(n_flipped) + share, n_flipped == 0 ? Tone::kPlain : Tone::kDrift);
}

}  // namespace

Table stage_table(const Report& report, Ungated ungated) {
  Table table;
  table.title = "Stages and gates";
  table.columns = {{"stage"},        {"n", true},     {"wrong", true},    {"value", true},
                   {"budget", true}, {"share", true}, {"smallest", true}, {"result"}};
  table.note =
      "n: compared. share: of the budget used. smallest: the smallest budget that would pass. rms: "
      "RMS(x - reference) / RMS(reference), the largest of all tensors.";
  const std::vector<GateRow> gates = gate_rows(report);
  for (const StageSummary& stage : report.stages) {
    table.rows.push_back(stage_cells(report, stage));
    for (const GateRow& gate : gates) {
      if (gate.stage != stage.stage || gate.is_rms) continue;
      const bool hidden = ungated == Ungated::kHide && gate.is_max_abs && !gate.gauge.budget();
      if (!hidden) table.rows.push_back(gate_cells(gate));
    }
  }
  for (const GateRow& gate : gates) {  // none is lost, should its stage not be listed
    const bool listed = std::any_of(report.stages.begin(), report.stages.end(),
                                    [&](const auto& stage) { return stage.stage == gate.stage; });
    if (!listed) table.rows.push_back(gate_cells(gate));
  }
  return table;
}

Table distance_table(const Report& report) {
  Table table;
  table.title = "Distance from the reference";
  table.columns = {{"distance"},         {"median", true},      {"largest", true},
                   {"own median", true}, {"own largest", true}, {"largest at"}};
  table.note =
      "drift: largest |p - p_reference| of an answer; KL in nats; own: of the second reference "
      "from the first.";
  const DistanceSummary& own = report.distance;
  const DistanceSummary* noise = report.noise_distance ? &*report.noise_distance : nullptr;
  if (own.n == 0) return table;
  table.rows = {distance_cells("drift", own.drift, noise ? &noise->drift : nullptr),
                distance_cells("KL", own.kl, noise ? &noise->kl : nullptr),
                distance_cells("total variation", own.total_variation,
                               noise ? &noise->total_variation : nullptr)};
  return table;
}

Table flip_table(const Report& report) {
  Table table;
  table.title = "Flips by margin of the reference";
  table.columns = {{"margin"}, {"answers", true}, {"flipped", true}, {"own flips", true}};
  for (const MarginBand& band : report.bands) {
    table.rows.push_back({Cell(fmt::format("{} to {}", number(band.from), number(band.to))),
                          Cell(whole(band.n)), flips_cell(band.n, band.n_flipped),
                          Cell(report.noise ? whole(band.n_flipped_noise) : kNone)});
  }
  return table;
}

Table crossing_table(const Report& report) {
  Table table;
  table.title = "Threshold crossings";
  table.columns = {{"reference", true}, {"observed", true}, {"direction"}, {"at"}};
  if (!report.crossings) return table;
  const Crossings& crossings = *report.crossings;
  table.note = fmt::format("At confidence {}: {} up, {} down.", number(crossings.threshold),
                           crossings.n_up, crossings.n_down);
  for (const Crossing& crossing : crossings.listed) {
    const bool up = crossing.confidence > crossing.reference_confidence;
    table.rows.push_back({Cell(fmt::format("{:.4f}", crossing.reference_confidence)),
                          Cell(fmt::format("{:.4f}", crossing.confidence)),
                          Cell(up ? "up" : "down"),
                          Cell(place_text(crossing.case_id, crossing.question))});
  }
  return table;
}

Table breakdown_table(const Report& report) {
  Table table;
  table.title = "Drift by property";
  table.columns = {{"property"}, {"value"}, {"answers", true}, {"mean", true}, {"largest", true}};
  for (const Breakdown& breakdown : report.breakdowns) {
    for (const Breakdown::Bin& bin : breakdown.bins) {
      table.rows.push_back({Cell(breakdown.property), Cell(bin.label), Cell(whole(bin.n)),
                            Cell(bin.n ? number(bin.mean) : kNone),
                            Cell(bin.n ? number(bin.max) : kNone)});
    }
  }
  return table;
}

Table worst_table(const Report& report) {
  Table table;
  table.title = "Worst answers";
  table.columns = {{"drift", true}, {"KL", true}, {"margin", true}, {"reference"}, {"observed"},
                   {"winner"},      {"at"}};
  for (const AnswerPoint& point : report.worst) {
    table.rows.push_back({Cell(number(point.drift)), Cell(number(point.kl)),
                          Cell(number(point.margin)), Cell(confidences(point, true)),
                          Cell(confidences(point, false)),
                          point.flipped ? Cell("flips", Tone::kFail) : Cell("same"),
                          Cell(place_text(point.case_id, point.question))});
  }
  return table;
}

Table bisection_table(const Report& report) {
  Table table;
  table.title = "First stage over budget";
  table.columns = {{"stage"}, {"cases", true}};
  table.note = bisection_text(report.bisection);
  for (const auto& [stage, n_cases] : report.bisection.counts) {
    table.rows.push_back({Cell(stage_name(stage)), Cell(whole(n_cases))});
  }
  return table;
}

Table fact_table(const Report& report) {
  std::vector<const Side*> sides = {&report.reference, &report.observed};
  if (report.noise) sides.push_back(&*report.noise);
  Table table;
  table.title = "Provenance";
  table.columns = {{"fact"}, {"reference"}, {"observed"}};
  if (report.noise) table.columns.push_back({"noise"});
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (const auto& [name, value] : sides[i]->facts) {
      const auto row = std::find_if(table.rows.begin(), table.rows.end(),
                                    [&](const auto& cells) { return cells[0].text == name; });
      if (row != table.rows.end()) {
        (*row)[i + 1].text = value;
        continue;
      }
      table.rows.emplace_back(table.columns.size(), Cell(kNone));
      table.rows.back()[0].text = name;
      table.rows.back()[i + 1].text = value;
    }
  }
  return table;
}

Table finding_table(const Report& report, std::size_t n_listed) {
  Table table;
  table.title = "Findings";
  table.columns = {{"stage"}, {"kind"}, {"at"}, {"what"}};
  for (const Finding& finding : report.findings) {
    if (table.rows.size() == n_listed) break;
    const Tone tone = finding.kind == FindingKind::kOverBudget ? Tone::kDrift : Tone::kFail;
    std::string place = place_text(finding.case_id, finding.question);
    if (!finding.question_id.empty()) place += fmt::format(" ({})", finding.question_id);
    table.rows.push_back({Cell(stage_name(finding.stage)),
                          Cell(std::string(finding_kind_name(finding.kind)), tone), Cell(place),
                          Cell(finding.what)});
  }
  if (report.n_findings > table.rows.size()) {
    table.note = fmt::format("{} of {} listed.", table.rows.size(), report.n_findings);
  }
  return table;
}

}  // namespace jemm
