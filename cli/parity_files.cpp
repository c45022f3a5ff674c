// The report directory, file by file.
#include "parity_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/labels.h"
#include "contract/answer.h"
#include "judge/distance.h"
#include "judge/render.h"

namespace jemm::cli {
namespace {

constexpr const char* kReportFiles[] = {"report.json", "report.md",       "report.html",
                                        "junit.xml",   "questions.jsonl", "gates.json"};
constexpr const char* kJunitBody = ".junit.xml.body";
constexpr const char* kQuestions = ".questions.jsonl";

/// JSON has no number for NaN and infinity: they stand as the texts that report.json has.
std::string json_number(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return python_float(value);
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
    return json_string(redact ? kLabels.substr(std::min(index, kLabels.size() - 1), 1)
                              : std::string_view(point.candidates[index]));
  };
  return fmt::format(
      R"(,"type":{},"tokens":{},"images":{},"candidates":{},"winner":{},"reference_winner":{},)"
      R"("flipped":{},"margin":{},"drift":{},"kl":{},"tv":{},"confidence":{},)"
      R"("reference_confidence":{})",
      json_string(point.type), point.n_tokens, point.n_images, point.candidates.size(),
      winner(point.observed), winner(point.reference), point.flipped, json_number(point.margin),
      json_number(point.drift), json_number(point.kl), json_number(point.total_variation),
      json_number(answer.confidence), json_number(answer.reference_confidence));
}

std::string finding_json(const Finding& finding) {
  return fmt::format(R"({{"stage":"{}","kind":"{}","what":{}}})", stage_name(finding.stage),
                     finding_kind_name(finding.kind), json_string(finding.what));
}

}  // namespace

ReportFiles::ReportFiles(const std::string& directory, bool force, bool redact)
    : directory_(directory), redact_(redact) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error || !std::filesystem::is_directory(directory)) {
    fail(ErrorKind::kIo, "cannot make the directory {}: {}", directory, error.message());
  }
  if (!force && std::filesystem::exists(path("report.json"))) {
    fail(ErrorKind::kUsage, "{} holds a report already; --force overwrites it", directory);
  }
  for (const char* name : kReportFiles) std::filesystem::remove(path(name), error);
  junit_body_.open(path(kJunitBody), std::ios::binary | std::ios::trunc);
  questions_.open(path(kQuestions), std::ios::binary | std::ios::trunc);
  if (!junit_body_ || !questions_) {
    fail(ErrorKind::kIo, "cannot write into {}: {}", directory, std::strerror(errno));
  }
}

ReportFiles::~ReportFiles() {
  std::error_code ignored;
  std::filesystem::remove(path(kJunitBody), ignored);
  std::filesystem::remove(path(kQuestions), ignored);
}

void ReportFiles::write_gates(const std::string& gates_json) {
  write_file("gates.json", gates_json);
}

void ReportFiles::add_case(const CaseComparison& comparison, const std::vector<Finding>& findings,
                           double seconds) {
  const auto of_question = [&](int question) {
    std::vector<Finding> chosen;
    for (const Finding& finding : findings) {
      if (finding.question == question) chosen.push_back(redact_ ? redacted(finding) : finding);
    }
    return chosen;
  };
  const std::string case_id = redact_ ? redacted_id(comparison.case_id) : comparison.case_id;
  junit_body_ << junit_.test_case(case_id, "", seconds, of_question(-1));
  for (const QuestionName& question : comparison.questions) {
    const std::vector<Finding> own = of_question(question.index);
    junit_body_ << junit_.test_case(case_id, redact_ ? redacted_id(question.id) : question.id, 0,
                                    own);
    add_question(comparison, question, own);
  }
}

void ReportFiles::add_question(const CaseComparison& comparison, const QuestionName& question,
                               const std::vector<Finding>& findings) {
  const auto shown = [&](const std::string& id) {
    return json_string(redact_ ? redacted_id(id) : id);
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
  questions_ << line << "]}\n";
}

void ReportFiles::add_finding(const Finding& finding) {
  const Finding shown = redact_ ? redacted(finding) : finding;
  junit_body_ << junit_.test_case(shown.case_id, "", 0, {shown});
}

void ReportFiles::write_file(const std::string& name, const std::string& text) {
  const std::string beside = path("." + name);
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(beside, path(name), error);
  if (!file || error) fail(ErrorKind::kIo, "cannot write {}", path(name));
}

void ReportFiles::finish(const Report& full) {
  const Report report = redact_ ? redacted(full) : full;
  junit_body_.close();
  questions_.close();
  if (!junit_body_ || !questions_) fail(ErrorKind::kIo, "cannot write into {}", directory_);
  {
    std::ofstream whole(path(".junit.xml"), std::ios::binary | std::ios::trunc);
    whole << junit_.head(report);
    std::ifstream body(path(kJunitBody), std::ios::binary);
    if (body.peek() != std::char_traits<char>::eof()) whole << body.rdbuf();
    whole << junit_.tail();
    whole.close();
    if (!whole) fail(ErrorKind::kIo, "cannot write {}", path("junit.xml"));
  }
  std::error_code error;
  std::filesystem::rename(path(".junit.xml"), path("junit.xml"), error);
  if (!error) std::filesystem::rename(path(kQuestions), path("questions.jsonl"), error);
  if (error) fail(ErrorKind::kIo, "cannot write into {}: {}", directory_, error.message());
  write_file("report.md", report_markdown(report));
  write_file("report.html", report_html(report));
  write_file("report.json", report_json(report));
}

}  // namespace jemm::cli
