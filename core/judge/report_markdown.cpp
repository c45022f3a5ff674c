// A report as GitHub's Markdown: report.md, and the summary of a workflow's step.
#include <fmt/format.h>

#include "judge/render.h"
#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

constexpr std::size_t kFindings = 50;
constexpr std::size_t kCellColumns = 200;

std::string cell_text(const Cell& cell) {
  const bool indented = cell.text.starts_with("  ");
  const std::string text = markdown_text(shortened(printable(cell.text), kCellColumns));
  return indented ? "&nbsp;&nbsp;" + text : text;
}

void table(std::string& out, const Table& table) {
  if (table.rows.empty()) return;
  out += fmt::format("\n### {}\n\n|", table.title);
  for (const Column& column : table.columns) out += fmt::format(" {} |", column.title);
  out += "\n|";
  for (const Column& column : table.columns) out += column.right_aligned ? " ---: |" : " :--- |";
  out += '\n';
  for (const auto& row : table.rows) {
    out += '|';
    for (const Cell& cell : row) out += fmt::format(" {} |", cell_text(cell));
    out += '\n';
  }
  if (!table.note.empty()) out += fmt::format("\n{}\n", markdown_text(table.note));
}

void item(std::string& out, std::string_view name, std::string_view text) {
  out += fmt::format("- **{}** {}\n", name, markdown_text(shortened(printable(text), 1000)));
}

void facts(std::string& out, const Report& report) {
  item(out, "reference:", side_text(report.reference));
  item(out, "observed:", side_text(report.observed));
  if (report.noise) item(out, "noise:", side_text(*report.noise));
  item(out, "gates:", fmt::format("{}, sha256 {}", report.gates.name, report.gates_sha256));
  item(out, "compared:", counts_text(report));
  item(out, "largest drift:", beside_text(report));
  item(out, "winners:", agreement_text(report.agreement));
  if (report.noise_agreement) {
    item(out, "reference's own winners:", agreement_text(*report.noise_agreement));
  }
  item(out, "first fault:", bisection_text(report.bisection));
  if (report.crossings) item(out, "crossings:", crossing_table(report).note);
  if (report.is_redacted) item(out, "redacted:", "ids are the starts of their SHA-256");
}

}  // namespace

std::string report_markdown(const Report& report) {
  std::string out = fmt::format("## jemm parity: {}\n\n{}\n\n", verdict_name(report.verdict),
                                markdown_text(report.reason));
  facts(out, report);
  table(out, stage_table(report));
  table(out, distance_table(report));
  table(out, flip_table(report));
  table(out, crossing_table(report));
  table(out, breakdown_table(report));
  table(out, worst_table(report));
  table(out, bisection_table(report));
  table(out, finding_table(report, kFindings));
  table(out, fact_table(report));
  out += fmt::format("\n{}\n", markdown_text(report.version));
  return out;
}

std::string github_summary(const Report& report, std::size_t max_bytes) {
  constexpr std::string_view kCut = "\nCut here: the whole report is in report.md.\n";
  std::string out = report_markdown(report);
  if (out.size() <= max_bytes) return out;
  const std::size_t room = max_bytes > kCut.size() ? max_bytes - kCut.size() : 0;
  const std::size_t line_end = room == 0 ? std::string::npos : out.rfind('\n', room - 1);
  if (line_end == std::string::npos) return "";
  out.resize(line_end + 1);
  out += kCut;
  return out;
}

}  // namespace jemm
