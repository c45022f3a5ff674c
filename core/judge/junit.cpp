// Test cases and the head of junit.xml. A finding is a failure; what could not be judged, an error.
#include "judge/junit.h"

#include <fmt/format.h>

#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

/// XML that counts what it holds.
struct Cases {
  std::string xml;
  std::uint64_t n_tests = 0, n_failures = 0, n_errors = 0, n_skipped = 0;

  void add(std::string_view group, std::string_view name, std::string_view body) {
    ++n_tests;
    xml += fmt::format("<testcase classname=\"{}\" name=\"{}\" time=\"0.000\"", html_text(group),
                       html_text(name));
    xml += body.empty() ? "/>\n" : fmt::format(">{}</testcase>\n", body);
  }
  void pass(std::string_view group, std::string_view name) { add(group, name, ""); }
  void fail(std::string_view group, std::string_view name, std::string_view type,
            std::string_view message) {
    ++n_failures;
    add(group, name,
        fmt::format("<failure type=\"{}\" message=\"{}\"/>", html_text(type), html_text(message)));
  }
  void error(std::string_view group, std::string_view name, std::string_view message) {
    ++n_errors;
    add(group, name, fmt::format("<error type=\"error\" message=\"{}\"/>", html_text(message)));
  }
  void skip(std::string_view group, std::string_view name, std::string_view message) {
    ++n_skipped;
    add(group, name, fmt::format("<skipped message=\"{}\"/>", html_text(message)));
  }
};

std::string gauge_text(const Gauge& gauge) {
  const SmallestBudget smallest = smallest_budget(gauge);
  return fmt::format("value {}, budget {}, share {}, smallest that passes {}",
                     number_text(gauge.value), budget_text(gauge),
                     gauge.share() ? percent_text(*gauge.share()) : "-",
                     smallest.at_most ? number_text_up(*smallest.at_most) : "none");
}

void add_verdict(Cases& cases, const Report& report) {
  const std::string_view verdict = verdict_name(report.verdict);
  switch (report.verdict) {
    case Verdict::kPass:
    case Verdict::kWithinNoise:
      return cases.pass("run", "verdict");
    case Verdict::kDrift:
    case Verdict::kFail:
      return cases.fail("run", "verdict", verdict, fmt::format("{}: {}", verdict, report.reason));
    case Verdict::kError:
      return cases.error("run", "verdict", fmt::format("{}: {}", verdict, report.reason));
  }
}

/// Absent and ungated ones are skipped: nothing was judged.
void add(Cases& cases, std::string_view group, std::string_view name, StageState state,
         std::string_view message) {
  const std::string_view word = stage_state_name(state);
  switch (state) {
    case StageState::kAbsent:
    case StageState::kNotGated:
      return cases.skip(group, name, word);
    case StageState::kPassed:
    case StageState::kWithinNoise:
      return cases.pass(group, name);
    case StageState::kOverBudget:
    case StageState::kFailed:
      return cases.fail(group, name, word, message);
  }
}

/// The run as test cases: verdict, stages, gates. A run that is not a pass is thus never all green.
Cases run_cases(const Report& report) {
  Cases cases;
  add_verdict(cases, report);
  for (const StageSummary& stage : report.stages) {
    add(cases, "stage", stage_name(stage.stage), stage_state(report, stage),
        fmt::format("{} wrong of {} compared", stage.n_wrong, stage.n_compared));
  }
  for (const GateRow& row : gate_rows(report)) {
    add(cases, "gate", row.name, gauge_state(row.gauge, row.n_compared), gauge_text(row.gauge));
  }
  return cases;
}

std::string property(std::string_view name, std::string_view value) {
  return fmt::format("<property name=\"{}\" value=\"{}\"/>\n", html_text(name), html_text(value));
}

std::string properties(const Report& report) {
  std::string xml = "<properties>\n";
  xml += property("version", report.version);
  xml += property("verdict", verdict_name(report.verdict));
  xml += property("reason", report.reason);
  xml += property("reference", side_text(report.reference));
  xml += property("observed", side_text(report.observed));
  if (report.noise) xml += property("noise", side_text(*report.noise));
  xml += property("gates", report.gates.name);
  xml += property("gates_sha256", report.gates_sha256);
  xml += property("stages", report.stage_names);
  xml += property("compared", counts_text(report));
  for (const GateRow& row : gate_rows(report)) {
    xml += property("gate " + row.name, gauge_text(row.gauge));
  }
  return xml + "</properties>\n";
}

std::string finding_line(const Finding& finding) {
  return fmt::format("{} {}: {}", stage_name(finding.stage), finding_kind_name(finding.kind),
                     finding.what);
}

/// All findings as the text of an element, one a line.
std::string finding_lines(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += html_text(finding_line(finding)) + "\n";
  return text;
}

}  // namespace

std::string JunitSuite::test_case(std::string_view case_id, std::string_view question_id,
                                  double seconds, const std::vector<Finding>& findings,
                                  std::string_view error) {
  ++n_tests_;
  seconds_ += seconds;
  const std::string name =
      question_id.empty() ? "request" : fmt::format("question {}", question_id);
  std::string xml = fmt::format("<testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                                html_text(case_id), html_text(name), seconds);
  if (!error.empty()) {
    ++n_errors_;
    return xml + fmt::format("><error type=\"error\" message=\"{}\">{}</error></testcase>\n",
                             html_text(error), finding_lines(findings));
  }
  if (findings.empty()) return xml + "/>\n";
  ++n_failures_;
  std::string message = finding_line(findings.front());
  if (findings.size() > 1) message += fmt::format(" (and {} more)", findings.size() - 1);
  return xml + fmt::format("><failure type=\"{}\" message=\"{}\">{}</failure></testcase>\n",
                           finding_kind_name(findings.front().kind), html_text(message),
                           finding_lines(findings));
}

std::string JunitSuite::head(const Report& report) const {
  const Cases run = run_cases(report);
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format(
      "<testsuites name=\"jemm parity\" tests=\"{}\" failures=\"{}\" errors=\"{}\" "
      "time=\"{:.3f}\">\n",
      run.n_tests + n_tests_, run.n_failures + n_failures_, run.n_errors + n_errors_, seconds_);
  xml += fmt::format(
      "<testsuite name=\"run\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"0.000\">\n",
      run.n_tests, run.n_failures, run.n_errors, run.n_skipped);
  xml += properties(report) + run.xml + "</testsuite>\n";
  xml += fmt::format(
      "<testsuite name=\"cases\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" "
      "time=\"{:.3f}\">\n",
      n_tests_, n_failures_, n_errors_, seconds_);
  return xml;
}

std::string JunitSuite::tail() const {
  return "</testsuite>\n</testsuites>\n";
}

}  // namespace jemm
