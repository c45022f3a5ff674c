// The report directory of parity: what is written case by case, and the reports at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/new_file.h"
#include "judge/compare.h"
#include "judge/junit.h"
#include "judge/report.h"

namespace jemm::cli {

/// Writes gates.json at once, questions.jsonl and junit.xml as cases come, report.json, report.md
/// and report.html at the end. Each file is written beside and renamed, so that none is half there.
class ReportFiles {
 public:
  /// Creates `directory`. A file in it that a report would replace is Error(kUsage) unless `force`,
  /// which removes all of them: what lies there afterwards is of this run alone. Throws Error(kIo)
  /// when it cannot be written. `redact`: no word of the requests goes into any file.
  ReportFiles(const std::string& directory, bool force, bool redact);

  void write_gates(const std::string& gates_json);
  void add_case(const CaseComparison& comparison, const std::vector<Finding>& findings,
                double seconds);
  /// What is wrong beside the cases that were compared.
  void add_finding(const Finding& finding);
  void finish(const Report& report);

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write_junit(const Report& report);
  void add_question(const CaseComparison& comparison, const QuestionName& question,
                    const std::vector<Finding>& findings);

  std::string directory_;
  bool redact_;
  JunitSuite junit_;
  std::optional<NewFile> junit_body_;  ///< test cases, until the head before them is known
  std::optional<NewFile> questions_;
};

}  // namespace jemm::cli
