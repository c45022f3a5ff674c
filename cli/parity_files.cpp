// The report directory, file by file.
#include "parity_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/labels.h"
#include "judge/distance.h"
#include "judge/render.h"
#include "judge/render_text.h"

namespace jemm::cli {
namespace {

constexpr const char* kReportFiles[] = {"report.json", "report.md",       "report.html",
                                        "junit.xml",   "questions.jsonl", "gates.json"};
constexpr const char* kJunitBody = "junit.xml.body";

/// Question types are no secret, unless they are none.
std::string shown_type(const std::string& type, bool redact) {
  const bool is_known = type == "choice" || type == "noul" || type == "score";
  return redact && !is_known ? "other" : type;
}

const AnswerComparison* find_answer(const CaseComparison& comparison, int question) {
  for (const AnswerComparison& answer : comparison.answers) {
    if (answer.point.question == question) return &answer;
  }
  return nullptr;
}

std::string answer_fields(const AnswerPoint& point, const AnswerComparison& answer, bool redact) {
  const auto winner = [&](const std::vector<double>& p) {
    const std::size_t index = winner_of(p).index;
    return json_text(redact ? kLabels.substr(std::min(index, kLabels.size() - 1), 1)
                            : std::string_view(point.candidates[index]));
  };
  return fmt::format(
      R"(,"type":{},"tokens":{},"images":{},"candidates":{},"winner":{},"reference_winner":{},)"
      R"("flipped":{},"margin":{},"drift":{},"kl":{},"tv":{},"confidence":{},)"
      R"("reference_confidence":{})",
      json_text(shown_type(point.type, redact)), point.n_tokens, point.n_images,
      point.candidates.size(), winner(point.observed), winner(point.reference), point.flipped,
      json_number(point.margin), json_number(point.drift), json_number(point.kl),
      json_number(point.total_variation), json_number(answer.confidence),
      json_number(answer.reference_confidence));
}

std::string finding_json(const Finding& finding) {
  return fmt::format(R"({{"stage":"{}","kind":"{}","what":{}}})", stage_name(finding.stage),
                     finding_kind_name(finding.kind), json_text(finding.what));
}

}  // namespace

ReportFiles::ReportFiles(const std::string& directory, bool force, bool redact)
    : directory_(directory), redact_(redact) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error || !std::filesystem::is_directory(directory, error)) {
    fail(ErrorKind::kIo, "cannot make the directory {}: {}", directory, error.message());
  }
  for (const char* name : kReportFiles) {
    if (!std::filesystem::exists(std::filesystem::symlink_status(path(name), error))) continue;
    if (!force) fail(ErrorKind::kUsage, "{} is there already; --force overwrites", path(name));
    require_replaceable(path(name));
  }
  for (const char* name : kReportFiles) std::filesystem::remove(path(name), error);
  junit_body_.emplace(path(kJunitBody));
  questions_.emplace(path("questions.jsonl"));
}

void ReportFiles::write_gates(const std::string& gates_json) {
  write_new_file(path("gates.json"), gates_json);
}

void ReportFiles::add_case(const CaseComparison& comparison, const std::vector<Finding>& findings,
                           double seconds) {
  // What belongs to no question that is known stands with the request.
  const auto place_of = [&](const Finding& finding) {
    const bool is_known = std::any_of(
        comparison.questions.begin(), comparison.questions.end(),
        [&](const QuestionName& question) { return question.index == finding.question; });
    return is_known ? finding.question : -1;
  };
  const auto of_question = [&](int question) {
    std::vector<Finding> chosen;
    for (const Finding& finding : findings) {
      if (place_of(finding) == question) chosen.push_back(redact_ ? redacted(finding) : finding);
    }
    return chosen;
  };
  const std::string case_id = redact_ ? redacted_id(comparison.case_id) : comparison.case_id;
  junit_body_->write(junit_.test_case(case_id, "", seconds, of_question(-1)));
  for (const QuestionName& question : comparison.questions) {
    const std::vector<Finding> own = of_question(question.index);
    junit_body_->write(
        junit_.test_case(case_id, redact_ ? redacted_id(question.id) : question.id, 0, own));
    add_question(comparison, question, own);
  }
}

void ReportFiles::add_question(const CaseComparison& comparison, const QuestionName& question,
                               const std::vector<Finding>& findings) {
  const auto shown = [&](const std::string& id) {
    return json_text(redact_ ? redacted_id(id) : id);
  };
  std::string line = fmt::format(R"({{"case":{},"question":{},"id":{})", shown(comparison.case_id),
                                 question.index, shown(question.id));
  if (const AnswerComparison* answer = find_answer(comparison, question.index)) {
    line += answer_fields(answer->point, *answer, redact_);
  }
  line += R"(,"rms":{)";
  bool first = true;
  for (const StageValue& value : comparison.values) {
    if (value.question != question.index || value.stage.kind == StageKind::kProbabilities) continue;
    line += fmt::format("{}\"{}\":{}", first ? "" : ",", stage_name(value.stage),
                        json_number(value.rms_ratio));
    first = false;
  }
  line += R"(},"findings":[)";
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (i > 0) line += ',';
    line += finding_json(findings[i]);
  }
  questions_->write(line + "]}\n");
}

void ReportFiles::add_finding(const Finding& finding) {
  const Finding shown = redact_ ? redacted(finding) : finding;
  junit_body_->write(junit_.test_case(shown.case_id, "", 0, {shown}));
}

void ReportFiles::write_junit(const Report& report) {
  junit_body_->finish();
  NewFile whole(path("junit.xml"));
  whole.write(junit_.head(report));
  append_file(path(kJunitBody), whole);
  whole.write(junit_.tail());
  whole.finish();
  std::error_code ignored;
  std::filesystem::remove(path(kJunitBody), ignored);
}

void ReportFiles::finish(const Report& full) {
  const Report report = redact_ ? redacted(full) : full;
  write_junit(report);
  questions_->finish();
  write_new_file(path("report.md"), report_markdown(report));
  write_new_file(path("report.html"), report_html(report));
  write_new_file(path("report.json"), report_json(report));
}

}  // namespace jemm::cli
