// A report as text of at most 100 columns, the verdict last.
#include <fmt/format.h>

#include <algorithm>

#include "judge/render.h"
#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

constexpr std::size_t kColumns = 100;
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

struct Layout;

class Terminal {
 public:
  explicit Terminal(bool color) : color_(color) {}

  /// One line, shortened to the width.
  void line(std::string_view text);
  void blank() { out_ += '\n'; }
  void paragraph(std::string_view text, std::size_t indent = 0);
  void table(const Table& table);
  void findings(const Table& table);
  void verdict(const Report& report);

  std::string take() { return std::move(out_); }

 private:
  std::string painted(const std::string& text, Tone tone) const {
    const std::string_view code = color_of(tone);
    return color_ && !code.empty() ? fmt::format("{}{}\x1b[0m", code, text) : text;
  }
  void row(const std::vector<Cell>& cells, const Table& table, const Layout& layout);

  bool color_;
  std::string out_;
};

/// Widths of the columns, within limits that hold a row in the line, and the gap between them.
struct Layout {
  std::vector<std::size_t> widths;
  std::size_t gap = 2;
};

Layout layout_of(const Table& table) {
  constexpr std::size_t kWidest = 30;
  Layout layout;
  std::size_t total = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = table.columns[i].title.size();
    for (const auto& row : table.rows) {
      width = std::max(width, text_columns(printable(row[i].text)));
    }
    layout.widths.push_back(std::min(width, kWidest));
    total += layout.widths.back();
  }
  const std::size_t n_gaps = layout.widths.size() - 1;
  if (total + n_gaps * layout.gap > kColumns) layout.gap = 1;
  while (total + n_gaps * layout.gap > kColumns) {  // the widest one gives way
    --*std::max_element(layout.widths.begin(), layout.widths.end());
    --total;
  }
  return layout;
}

void Terminal::row(const std::vector<Cell>& cells, const Table& table, const Layout& layout) {
  std::string line;
  std::size_t pending = 0;  // blanks owed, so that no line ends in one
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string text = shortened(printable(cells[i].text), layout.widths[i]);
    const std::size_t blanks = layout.widths[i] - text_columns(text);
    const bool right = table.columns[i].right_aligned;
    if (right) pending += blanks;
    if (!text.empty()) {
      line.append(pending, ' ');
      pending = 0;
      line += painted(text, cells[i].tone);
    }
    pending += layout.gap + (right ? 0 : blanks);
  }
  out_ += line + "\n";
}

void Terminal::line(std::string_view text) {
  std::string line = shortened(printable(text), kColumns);
  line.resize(line.find_last_not_of(' ') + 1);
  out_ += line + "\n";
}

void Terminal::table(const Table& table) {
  if (table.rows.empty()) return;
  const Layout layout = layout_of(table);
  std::vector<Cell> head;
  for (const Column& column : table.columns) head.emplace_back(column.title, Tone::kQuiet);
  blank();
  line(table.title);
  row(head, table, layout);
  for (const auto& cells : table.rows) row(cells, table, layout);
  if (!table.note.empty()) paragraph(table.note);
}

/// Breaks at blanks; a word that is too long is shortened.
void Terminal::paragraph(std::string_view text, std::size_t indent) {
  const std::string source = printable(text);
  const std::size_t width = kColumns - indent;
  std::string current;
  const auto flush = [&] {
    if (!current.empty()) out_ += std::string(indent, ' ') + current + "\n";
    current.clear();
  };
  for (std::size_t start = 0; start <= source.size();) {
    const std::size_t end = std::min(source.find(' ', start), source.size());
    const std::string word = shortened(std::string_view(source).substr(start, end - start), width);
    if (!current.empty() && text_columns(current) + 1 + text_columns(word) > width) flush();
    if (!word.empty()) current += (current.empty() ? "" : " ") + word;
    start = end + 1;
  }
  flush();
}

/// A finding takes a line for where and what kind it is, and its sentence below.
void Terminal::findings(const Table& table) {
  constexpr std::size_t kSentence = 400;
  if (table.rows.empty()) return;
  blank();
  line(table.title);
  for (const auto& row : table.rows) {
    const std::string kind = painted(fmt::format("{:<20}", row[1].text), row[1].tone);
    out_ += fmt::format("{:<15}{}{}\n", row[0].text, kind, shortened(printable(row[2].text), 65));
    paragraph(shortened(printable(row[3].text), kSentence), 4);
  }
  if (!table.note.empty()) paragraph(table.note);
}

void Terminal::verdict(const Report& report) {
  blank();
  out_ += painted(std::string(verdict_name(report.verdict)), tone_of(report.verdict)) + "\n";
  paragraph(report.reason);
}

void side(Terminal& terminal, std::string_view role, const Side& side) {
  terminal.line(fmt::format("{:<11}{}", role, side_text(side)));
}

void heading(Terminal& terminal, const Report& report) {
  terminal.paragraph(report.version + " parity");
  side(terminal, "reference", report.reference);
  side(terminal, "observed", report.observed);
  if (report.noise) side(terminal, "noise", *report.noise);
  terminal.line(fmt::format("gates      {}, sha256 {}", report.gates.name, report.gates_sha256));
  terminal.line("compared   " + counts_text(report));
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
    terminal.line(fmt::format("{:<15}{}", stage_name(fault.stage),
                              place_text(fault.case_id, fault.question)));
  }
}

}  // namespace

std::string report_terminal(const Report& report, bool color) {
  Terminal terminal(color);
  heading(terminal, report);
  terminal.table(stage_table(report, Ungated::kHide));
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
  terminal.findings(finding_table(report, kFindings));
  terminal.verdict(report);
  return terminal.take();
}

}  // namespace jemm
