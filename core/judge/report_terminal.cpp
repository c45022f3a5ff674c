// A report as text of at most 100 columns, the verdict last.
#include <fmt/format.h>

#include <algorithm>

#include "judge/render.h"
#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kGap = 2;
constexpr std::size_t kFindings = 20;

std::string_view color_of(Tone tone) {
  switch (tone) {
    case Tone::kQuiet:
      return "\x1b[2m";
    case Tone::kPass:
      return "\x1b[32m";
    case Tone::kNoise:
      return "\x1b[36m";
    case Tone::kDrift:
      return "\x1b[33m";
    case Tone::kFail:
      return "\x1b[31m";
    case Tone::kPlain:
      break;
  }
  return "";
}

class Terminal {
 public:
  explicit Terminal(bool color) : color_(color) {}

  /// One line, shortened to the width.
  void line(std::string_view text) { out_ += shortened(printable(text), kColumns) + "\n"; }
  void blank() { out_ += '\n'; }
  void paragraph(std::string_view text);
  void table(const Table& table);
  void verdict(const Report& report);

  std::string take() { return std::move(out_); }

 private:
  std::string painted(const std::string& text, Tone tone) const {
    const std::string_view code = color_of(tone);
    return color_ && !code.empty() ? fmt::format("{}{}\x1b[0m", code, text) : text;
  }
  void row(const std::vector<Cell>& cells, const Table& table,
           const std::vector<std::size_t>& widths);

  bool color_;
  std::string out_;
};

/// Widths of the columns: as wide as their text, the last one as wide as what is left.
std::vector<std::size_t> column_widths(const Table& table) {
  constexpr std::size_t kWidest = 30;
  std::vector<std::size_t> widths;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = table.columns[i].title.size();
    for (const auto& row : table.rows) {
      width = std::max(width, text_columns(printable(row[i].text)));
    }
    const bool last = i + 1 == table.columns.size();
    widths.push_back(last ? kColumns - taken : std::min(width, kWidest));
    taken += widths.back() + kGap;
  }
  return widths;
}

void Terminal::row(const std::vector<Cell>& cells, const Table& table,
                   const std::vector<std::size_t>& widths) {
  std::string line;
  std::size_t pending = 0;  // blanks owed, so that no line ends in one
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string text = shortened(printable(cells[i].text), widths[i]);
    const std::size_t blanks = widths[i] - text_columns(text);
    const bool right = table.columns[i].right_aligned;
    if (right) pending += blanks;
    if (!text.empty()) {
      line.append(pending, ' ');
      pending = 0;
      line += painted(text, cells[i].tone);
    }
    pending += kGap + (right ? 0 : blanks);
  }
  out_ += line + "\n";
}

void Terminal::table(const Table& table) {
  if (table.rows.empty()) return;
  const std::vector<std::size_t> widths = column_widths(table);
  std::vector<Cell> head;
  for (const Column& column : table.columns) head.emplace_back(column.title, Tone::kQuiet);
  blank();
  line(table.title);
  row(head, table, widths);
  for (const auto& cells : table.rows) row(cells, table, widths);
  if (!table.note.empty()) paragraph(table.note);
}

/// Breaks at blanks; a word that is too long is shortened.
void Terminal::paragraph(std::string_view text) {
  const std::string source = printable(text);
  std::string current;
  for (std::size_t start = 0; start <= source.size();) {
    const std::size_t end = std::min(source.find(' ', start), source.size());
    const std::string word = shortened(std::string_view(source).substr(start, end - start), kColumns);
    if (!current.empty() && text_columns(current) + 1 + text_columns(word) > kColumns) {
      out_ += current + "\n";
      current.clear();
    }
    current += (current.empty() ? "" : " ") + word;
    start = end + 1;
  }
  if (!current.empty()) out_ += current + "\n";
}

void Terminal::verdict(const Report& report) {
  blank();
  out_ += painted(std::string(verdict_name(report.verdict)), tone_of(report.verdict)) + "\n";
  paragraph(report.reason);
}

void side(Terminal& terminal, std::string_view role, const Side& side) {
  terminal.paragraph(fmt::format("{:<10} {}", role, side_text(side)));
}

void heading(Terminal& terminal, const Report& report) {
  terminal.line(fmt::format("jemm parity {}", report.version));
  side(terminal, "reference", report.reference);
  side(terminal, "observed", report.observed);
  if (report.noise) side(terminal, "noise", *report.noise);
  terminal.line(fmt::format("gates      {}, sha256 {}", report.gates.name, report.gates_sha256));
  terminal.paragraph(fmt::format("compared   {}", counts_text(report)));
  if (report.n_watched > 0) {
    terminal.line(fmt::format("watched    {} run with and without taps",
                              count_text(report.n_watched, "forward")));
  }
}

void faults(Terminal& terminal, const Report& report) {
  constexpr std::size_t kFaults = 10;
  const Bisection& bisection = report.bisection;
  if (!bisection.overall) return;
  terminal.table(bisection_table(report));
  for (std::size_t i = 0; i < std::min(kFaults, bisection.listed.size()); ++i) {
    const FirstFault& fault = bisection.listed[i];
    terminal.line(fmt::format("{:<14} {}", stage_name(fault.stage),
                              place_text(fault.case_id, fault.question)));
  }
}

}  // namespace

std::string report_terminal(const Report& report, bool color) {
  Terminal terminal(color);
  heading(terminal, report);
  terminal.table(stage_table(report));
  terminal.table(distance_table(report));
  terminal.blank();
  terminal.line("largest drift  " + beside_text(report));
  terminal.line("winners        " + agreement_text(report.agreement));
  if (report.noise_agreement) {
    terminal.line("own winners    " + agreement_text(*report.noise_agreement));
  }
  if (report.crossings) {
    terminal.line("crossings      " + crossing_table(report).note);
  }
  terminal.table(flip_table(report));
  terminal.table(breakdown_table(report));
  terminal.table(worst_table(report));
  faults(terminal, report);
  terminal.table(finding_table(report, kFindings));
  terminal.verdict(report);
  return terminal.take();
}

}  // namespace jemm
