// Reports for terminals, Markdown and GitHub.
#include "judge/render.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "core/judge/sample_report.h"
#include "judge/render_text.h"

namespace {

using namespace jemm;
using namespace jemm::test;

constexpr std::array kVerdicts = {Verdict::kPass, Verdict::kWithinNoise, Verdict::kDrift,
                                  Verdict::kFail, Verdict::kError};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::vector<Report> all_reports() {
  std::vector<Report> reports = {zero_report(), empty_report(), not_finite_report(),
                                 hostile_report()};
  for (const Verdict verdict : kVerdicts) reports.push_back(sample_report(verdict));
  return reports;
}

/// The line that starts with `start`; empty when there is none.
std::string line_with(const std::string& text, std::string_view start) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(start)) return line;
  }
  return "";
}

std::string without_colors(std::string text) {
  for (std::size_t at = 0; (at = text.find("\x1b[", at)) != std::string::npos;) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++n;
  return n;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("terminal: no line is wider than 100 columns, none holds a control character") {
  for (const Report& report : all_reports()) {
    for (const std::string& line : lines_of(report_terminal(report, false))) {
      CHECK(printable(line) == line);
      CHECK(text_columns(line) <= 100);
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("terminal: colours add nothing to the text") {
  const Report report = sample_report(Verdict::kDrift);
  const std::string painted = report_terminal(report, true);
  CHECK(has(painted, "\x1b[33mDRIFT\x1b[0m"));
  CHECK(without_colors(painted) == report_terminal(report, false));
}

TEST_CASE("terminal: the verdict and its reason come last") {
  for (const Verdict verdict : kVerdicts) {
    const std::vector<std::string> lines = lines_of(report_terminal(sample_report(verdict), false));
    CHECK(lines[lines.size() - 2] == verdict_name(verdict));
    CHECK(lines.back() == sample_report(verdict).reason);
  }
}

TEST_CASE("terminal: gates have value, budget, share and the smallest budget that passes") {
  const std::string text = report_terminal(sample_report(Verdict::kWithinNoise), false);
  const std::string gate = line_with(text, "  probability.max");
  CHECK(has(gate, " 0.021 "));
  CHECK(has(gate, " 0.046 = 2 x 0.023 "));
  CHECK(has(gate, " 46 % "));
  CHECK(has(gate, " 0.021  within noise"));
  CHECK(has(line_with(text, "usage"), "absent"));
  CHECK_FALSE(has(line_with(text, "usage"), "passed"));
  CHECK(has(line_with(text, "accept"), "passed"));
  CHECK(has(text, "engine 0.021, reference's own 0.023"));
  CHECK(has(text, "56 of 57 winners agree: 98.2 % (95 % interval 90.7 % to 99.7 %)"));
}

TEST_CASE("terminal: what is not finite is over its budget and no budget would do") {
  const std::string text = report_terminal(not_finite_report(), false);
  const std::string gate = line_with(text, "  probability.max");
  CHECK(has(gate, " NaN "));
  CHECK(has(gate, " none  over budget"));
  CHECK(has(line_with(text, "layer.01"), "failed"));
}

TEST_CASE("terminal: a stage with findings is never passed, even when nothing was compared") {
  Report report = sample_report(Verdict::kFail);
  report.stages.back().n_wrong = 2;  // usage, absent until now
  CHECK(has(line_with(report_terminal(report, false), "usage"), "failed"));
}

TEST_CASE("terminal: a gate that nothing was measured for is absent, not passed") {
  Report report = sample_report(Verdict::kPass);
  report.gate_results[2].n_compared = 0;
  report.gate_results[2].gauge.value = 0;
  const std::string gate = line_with(report_terminal(report, false), "  decision.flip_margin");
  CHECK(has(gate, " 0.02      -         -  absent"));
  CHECK_FALSE(has(gate, "passed"));
}

TEST_CASE("terminal: a stage that only drifts is over budget, one that differs has failed") {
  Report report = sample_report(Verdict::kDrift);
  CHECK(has(line_with(report_terminal(report, false), "layer.07"), "over budget"));
  report.findings[0].kind = FindingKind::kMissing;
  CHECK(has(line_with(report_terminal(report, false), "layer.07"), "failed"));
}

TEST_CASE("markdown: tables keep their columns, and nothing gets out of its cell") {
  for (const Report& report : all_reports()) {
    std::size_t pipes = 0;  // of the table at hand
    for (const std::string& line : lines_of(report_markdown(report))) {
      if (!line.starts_with("|")) {
        pipes = 0;
        continue;
      }
      const std::size_t n = count(line, "|") - count(line, "\\|");
      if (pipes != 0) CHECK(n == pipes);
      pipes = n;
    }
  }
  const std::string text = report_markdown(hostile_report());
  CHECK_FALSE(has(text, "<script"));
  CHECK_FALSE(has(text, "\n## h"));
  CHECK_FALSE(has(text, " www.n"));
  CHECK(has(text, "50 of 1234 listed."));
}

TEST_CASE("markdown: verdict and reason come first") {
  const std::string text = report_markdown(sample_report(Verdict::kFail));
  CHECK(text.starts_with("## jemm parity: FAIL\n\nA winner flips where the reference leads by"));
  CHECK(has(text, "| usage | 0 | 0 |  |  |  |  | absent |"));
}

TEST_CASE("markdown: the facts of all sides lie beside each other") {
  Report report = sample_report(Verdict::kPass);
  report.observed.facts.emplace_back("isa", "avx2");
  const std::string text = report_markdown(report);
  CHECK(has(text, "| fact | reference | observed | noise |"));
  CHECK(has(text, "| device | H200 | cpu | H200 |"));
  CHECK(has(text, "| isa | - | avx2 | - |"));
}

TEST_CASE("summary: within its limit, cut at a line") {
  const Report report = hostile_report();
  const std::string whole = report_markdown(report);
  CHECK(github_summary(report) == whole);
  CHECK(whole.size() < (1u << 20));
  for (const std::size_t limit : {0u, 10u, 100u, 1000u, 9999u}) {
    const std::string cut = github_summary(report, limit);
    CHECK(cut.size() <= limit);
    const std::size_t note = cut.find("\nCut here");
    if (limit < 100) CHECK(cut.empty());
    if (limit < 1000) continue;
    REQUIRE(note != std::string::npos);
    CHECK(whole.starts_with(cut.substr(0, note)));
    CHECK(whole[note - 1] == '\n');
  }
}

TEST_CASE("annotations: at most ten a level, and every finding is shown or counted") {
  const std::string text = github_annotations(hostile_report());
  const std::vector<std::string> lines = lines_of(text);
  std::size_t n_errors = 0;
  std::size_t n_warnings = 0;
  for (const std::string& line : lines) {
    n_errors += line.starts_with("::error title=");
    n_warnings += line.starts_with("::warning title=");
  }
  CHECK(n_errors == 10);
  CHECK(n_warnings == 9);
  CHECK(n_errors + n_warnings == lines.size());
  CHECK(lines.back() == "::error title=jemm parity::1217 more findings; the report lists them");
}

TEST_CASE("annotations: text cannot end a property or start a command") {
  Report report = sample_report(Verdict::kFail);
  report.reason = "100%\n::error::x";
  report.findings[0].what = "a%0Ab:c,d";
  CHECK(github_annotations(report) ==
        "::error title=jemm parity FAIL::100%25\\n::error::x\n"
        "::error title=decision flip::case-12, question 1: a%250Ab:c,d\n");
}

TEST_CASE("annotations: drift is a warning with an error for the run, a pass is a notice") {
  const std::vector<std::string> drift =
      lines_of(github_annotations(sample_report(Verdict::kDrift)));
  REQUIRE(drift.size() == 2);
  CHECK(drift[0].starts_with("::error title=jemm parity DRIFT::layer.07"));
  CHECK(drift[1].starts_with("::warning title=layer.07 over budget::case-12, question 1"));
  CHECK(github_annotations(sample_report(Verdict::kPass)).starts_with("::notice title="));
  CHECK(github_annotations(sample_report(Verdict::kError)).starts_with("::error title="));
}

}  // namespace
