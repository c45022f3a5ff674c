// report.html: one page without scripts and without references to anything outside it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "judge/html_plots.h"
#include "judge/html_style.h"
#include "judge/render.h"
#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

constexpr std::size_t kFindings = 100;
constexpr std::size_t kCellColumns = 400;

std::string_view style_of(Tone tone) {
  switch (tone) {
    case Tone::kQuiet:
      return "quiet";
    case Tone::kPass:
      return "pass";
    case Tone::kNoise:
      return "noise-text";
    case Tone::kDrift:
      return "drift";
    case Tone::kFail:
      return "fail";
    case Tone::kPlain:
      break;
  }
  return "";
}

std::string safe(std::string_view text) {
  return html_text(shortened(printable(text), kCellColumns));
}

std::string cell_html(const Cell& cell, const Column& column, bool is_last) {
  const bool brief = cell.text.size() <= 24;
  const std::string style = fmt::format("{}{}{}", column.right_aligned ? "right " : "",
                                        brief     ? "keep "
                                        : is_last ? "wide "
                                                  : "",
                                        style_of(cell.tone));
  const std::string bar = cell.share ? share_bar(*cell.share, style_of(cell.tone)) : "";
  return fmt::format("<td class=\"{}\">{}{}</td>", style, safe(cell.text), bar);
}

std::string table_html(const Table& table) {
  if (table.rows.empty()) return "";
  std::string out = fmt::format("<div class=\"scroll\"><table aria-label=\"{}\"><thead><tr>",
                                html_text(table.title));
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>",
                       column.right_aligned ? " class=\"right\"" : "", html_text(column.title));
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    out += row[0].text.starts_with("  ") ? "<tr class=\"sub\">" : "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += cell_html(row[i], table.columns[i], i + 1 == row.size());
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (!table.note.empty()) out += fmt::format("<p class=\"note\">{}</p>\n", safe(table.note));
  return out;
}

std::string section(std::string_view title, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", html_text(title), body);
}

std::string section(const Table& table) {
  return section(table.title, table_html(table));
}

std::string titled(const Table& table) {
  const std::string body = table_html(table);
  return body.empty() ? "" : fmt::format("<h3>{}</h3>\n{}", html_text(table.title), body);
}

std::string paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", html_text(text));
}

std::string figure(std::string_view title, const std::string& plot) {
  if (plot.empty()) return "";
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", html_text(title), plot);
}

std::string headline(std::string_view name, std::string_view value, std::string_view more) {
  return fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", html_text(name),
                     html_text(value), html_text(more));
}

/// The gate with the largest share of its budget used.
std::string tightest_gate(const Report& report) {
  const std::vector<GateRow> rows = gate_rows(report);
  const GateRow* tightest = nullptr;
  for (const GateRow& row : rows) {
    const auto share = row.gauge.share();
    if (share && (!tightest || !(*share <= *tightest->gauge.share()))) tightest = &row;
  }
  if (tightest == nullptr) return headline("budget used", "-", "no gate has a share");
  return headline("budget used", percent_text(*tightest->gauge.share()), tightest->name);
}

std::string figures(const Report& report) {
  const bool compared = report.distance.n > 0;
  std::string own = "no second reference";
  if (report.noise_distance) {
    own = "reference's own " + number_text(report.noise_distance->drift.max);
  }
  const Agreement& agreement = report.agreement;
  std::string out = "<dl class=\"figures\">\n";
  out += headline("findings", std::to_string(report.n_findings),
                  "in " + count_text(report.n_cases, "case"));
  out += headline("largest drift", compared ? number_text(report.distance.drift.max) : "-", own);
  out += headline("winners that agree",
                  agreement.n > 0 ? fmt::format("{} of {}", agreement.n_agree, agreement.n) : "-",
                  agreement.n > 0 ? fmt::format("95 %: {:.1f} to {:.1f} %", 100 * agreement.low,
                                                100 * agreement.high)
                                  : "no winners compared");
  out += tightest_gate(report);
  return out + "</dl>\n";
}

std::string definition(std::string_view name, std::string_view value) {
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(name), html_text(value));
}

std::string sides(const Report& report) {
  std::string out = "<dl class=\"sides\">\n";
  out += definition("reference", side_text(report.reference));
  out += definition("observed", side_text(report.observed));
  out += definition("noise", report.noise ? side_text(*report.noise) : "none given");
  out += definition("gates", fmt::format("{}, sha256 {}", report.gates.name, report.gates_sha256));
  out += definition("stages", fmt::format("{}", fmt::join(stage_words(report), ", ")));
  out += definition("compared", counts_text(report));
  if (report.n_watched > 0) {
    out += definition("watched", count_text(report.n_watched, "forward") +
                                     " run with and without "
                                     "taps");
  }
  if (report.is_redacted) out += definition("redacted", "ids are the starts of their SHA-256");
  return out + "</dl>\n";
}

std::string first_fault(const Report& report) {
  std::string out = paragraph(bisection_text(report.bisection));
  Table table = bisection_table(report);
  table.note.clear();
  if (table.rows.size() > 1) out += table_html(table);
  Table places{.title = "Cases by their first fault",
               .columns = {{"stage"}, {"at"}},
               .rows = {},
               .note = ""};
  for (const FirstFault& fault : report.bisection.listed) {
    places.rows.push_back(
        {Cell(stage_name(fault.stage)), Cell(place_text(fault.case_id, fault.question))});
  }
  return out + titled(places) + figure("Drift by stage and layer", stage_plot(report));
}

std::string answers(const Report& report) {
  if (report.distance.n == 0) return paragraph("No answers were compared.");
  std::string out = paragraph("Largest drift: " + beside_text(report) + ".");
  out += table_html(distance_table(report));
  out += "<div class=\"pair\">\n";
  out += figure("Drift against prompt length", length_plot(report));
  out += figure("Drift against the reference's margin", margin_plot(report));
  out += breakdown_plots(report);
  out += "</div>\n";
  return out + titled(breakdown_table(report));
}

std::string winners(const Report& report) {
  std::string out = paragraph(fmt::format("Observed: {}.", agreement_text(report.agreement)));
  if (report.noise_agreement) {
    out += paragraph(fmt::format("Reference's own: {}.", agreement_text(*report.noise_agreement)));
  }
  out += titled(flip_table(report));
  const Table crossings = crossing_table(report);
  if (!crossings.note.empty()) {
    out += crossings.rows.empty() ? paragraph(crossings.note) : titled(crossings);
  }
  return out;
}

std::string worst(const Report& report) {
  if (report.worst.empty()) return "";
  std::string out =
      "<p class=\"note\">Upper bar: reference. Lower bar: observed.</p>\n"
      "<div class=\"pair\">\n";
  for (const AnswerPoint& point : report.worst) {
    out += fmt::format(
        "<div class=\"answer\"><p><b>{}</b> drift {}, KL {}, margin {}{}</p>\n{}</div>\n",
        html_text(shortened(printable(place_text(point.case_id, point.question)), 60)),
        number_text(point.drift), number_text(point.kl), number_text(point.margin),
        point.flipped ? ", <span class=\"fail\">flips</span>" : "", distribution_plot(point));
  }
  return out + "</div>\n" + titled(worst_table(report));
}

std::string page_head(const Report& report) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>jemm parity: {}</title>\n<style>{}</style>\n</head>\n",
      verdict_name(report.verdict), html_style());
}

}  // namespace

std::string report_html(const Report& report) {
  std::string out = page_head(report);
  out += fmt::format(
      "<body>\n<main>\n<header>\n<p class=\"over-line\">{} parity</p>\n"
      "<h1 class=\"{}\">{}</h1>\n<p class=\"reason\">{}</p>\n",
      html_text(report.version), style_of(tone_of(report.verdict)), verdict_name(report.verdict),
      html_text(report.reason));
  out += figures(report) + sides(report) + "</header>\n";
  out += section(finding_table(report, kFindings));
  out += section("Where it first differs", first_fault(report));
  out += section(stage_table(report));
  out += section("Answers", answers(report));
  out += section("Winners", winners(report));
  out += section("Worst answers", worst(report));
  out += section(fact_table(report));
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace jemm
