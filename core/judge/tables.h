// What a report shows, as tables of plain text: built once, drawn by each renderer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/report.h"

namespace jemm {

/// How a cell stands out. It repeats what the text says.
enum class Tone { kPlain, kQuiet, kPass, kNoise, kDrift, kFail };

struct Cell {
  Cell(std::string cell_text = {}, Tone cell_tone = Tone::kPlain)
      : text(std::move(cell_text)), tone(cell_tone) {}

  std::string text;  ///< any bytes: escaped by whoever draws it
  Tone tone = Tone::kPlain;
  std::optional<double> share;  ///< of a budget, for a bar
};

struct Column {
  std::string title;
  bool right_aligned = false;
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string note;  ///< a sentence below
};

/// The state of a stage or a gate in a word.
enum class StageState { kAbsent, kPassed, kNotGated, kWithinNoise, kOverBudget, kFailed };
std::string_view stage_state_name(StageState state);  // "absent", "passed", ...
Tone tone_of(StageState state);
Tone tone_of(Verdict verdict);

/// Of a value that was measured `n_compared` times: absent for 0.
StageState gauge_state(const Gauge& gauge, std::uint64_t n_compared);
/// A stage is absent when neither side had anything to compare; then it is never passed.
StageState stage_state(const Report& report, const StageSummary& stage);

/// A value beside its budget, of a stage or of the whole run.
struct GateRow {
  std::string name;  ///< "layer.07 rms", "probability.max", ...
  StageId stage;
  std::uint64_t n_compared = 0;
  Gauge gauge;
  std::string case_id;  ///< of the largest value
  int question = -1;
  bool is_rms = false;      ///< of a stage, whose row in the table shows it
  bool is_max_abs = false;  ///< likewise, on a row of its own
};
/// Every gauge of the report, in the order of stages.
std::vector<GateRow> gate_rows(const Report& report);

/// The smallest budget that the value passes; nothing where no budget would do.
struct SmallestBudget {
  std::optional<double> at_most;
  std::optional<double> times_noise;  ///< the same as a multiple of the noise, where it is known
};
SmallestBudget smallest_budget(const Gauge& gauge);

/// The budget, and where it comes from when it is the noise: "0.0456 = 2 x 0.0228".
std::string budget_text(const Gauge& gauge);
/// "case", "case, question 2"; empty for an empty id.
std::string place_text(const std::string& case_id, int question);
/// "60 cases: 57 answered, 3 refused; 171 questions, 20 images".
std::string counts_text(const Report& report);
/// Where the first difference is, as a sentence.
std::string bisection_text(const Bisection& bisection);
/// "56 of 57 winners agree: 98.2 % (95 % interval 90.7 % to 99.7 %)".
std::string agreement_text(const Agreement& agreement);
/// The engine's distance beside the reference's own: "engine 0.021, reference's own 0.023".
std::string beside_text(const Report& report);
/// The names of the stages asked for.
std::vector<std::string> stage_words(const Report& report);
/// A side's kind and name: "golden tiny".
std::string side_name(const Side& side);
/// With its main facts: "golden tiny: dtype float32, device cpu".
std::string side_text(const Side& side);

enum class Ungated { kShow, kHide };
/// Stages with their gates below them, and with largest differences that no gate judges or without.
Table stage_table(const Report& report, Ungated ungated = Ungated::kShow);
Table distance_table(const Report& report);   ///< drift, KL, total variation
Table flip_table(const Report& report);       ///< by margin band
Table crossing_table(const Report& report);   ///< empty rows without a threshold
Table breakdown_table(const Report& report);  ///< drift by each property
Table worst_table(const Report& report);
Table bisection_table(const Report& report);  ///< cases by the first stage over budget
Table fact_table(const Report& report);       ///< the facts of all sides, beside each other
Table finding_table(const Report& report, std::size_t n_listed);

}  // namespace jemm
