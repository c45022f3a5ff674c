// The report directory of parity: what is written case by case, and the reports at the end.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "judge/compare.h"
#include "judge/junit.h"
#include "judge/report.h"

namespace jemm::cli {

/// Writes gates.json at once, questions.jsonl and junit.xml as cases come, report.json, report.md
/// and report.html at the end. Each file is written beside and renamed, so that none is half there.
class ReportFiles {
 public:
  /// Creates `directory`. An earlier report is Error(kUsage) unless `force`, which removes it: what
  /// lies there afterwards is of this run alone. Throws Error(kIo) when it cannot be written.
  /// `redact`: no word of the requests goes into any file.
  ReportFiles(const std::string& directory, bool force, bool redact);
  ~ReportFiles();
  ReportFiles(const ReportFiles&) = delete;
  ReportFiles& operator=(const ReportFiles&) = delete;

  void write_gates(const std::string& gates_json);
  void add_case(const CaseComparison& comparison, const std::vector<Finding>& findings,
                double seconds);
  /// What is wrong beside the cases that were compared.
  void add_finding(const Finding& finding);
  void finish(const Report& report);

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write_file(const std::string& name, const std::string& text);
  void add_question(const CaseComparison& comparison, const QuestionName& question,
                    const std::vector<Finding>& findings);

  std::string directory_;
  bool redact_;
  JunitSuite junit_;
  std::ofstream junit_body_;
  std::ofstream questions_;
};

}  // namespace jemm::cli
