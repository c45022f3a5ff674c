// Two outputs of decide, or two reports of parity, side by side: what moved and what got worse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/report.h"

namespace jemm {

struct DiffOptions {
  /// A winner that changes counts as a regression where A leads by at least as much.
  double margin = 0.02;
};

/// One question of which A and B say different things.
struct DiffEntry {
  std::string case_id;
  std::string question_id;  ///< empty for the whole request
  std::string what;
};

/// Lists hold the first hundred; the counts count all.
struct DiffList {
  std::uint64_t n = 0;
  std::vector<DiffEntry> listed;
};

struct DiffResult {
  std::string kind;                ///< "answers" or "reports"
  std::uint64_t n_a = 0, n_b = 0;  ///< requests of answers, questions of reports
  std::uint64_t n_common = 0;      ///< of them, in both
  std::uint64_t n_questions = 0;   ///< compared
  std::uint64_t n_moved = 0;       ///< questions whose numbers are not equal
  /// Answers: largest |p_B - p_A| of a question. Reports: |drift_B - drift_A|.
  Extreme moved;
  DiffList flips;                  ///< winners that changed, whatever the margin
  DiffList regressions;            ///< worse in B
  DiffList improvements;           ///< better in B
  std::vector<std::string> notes;  ///< what makes the two hard to compare
};

/// Outputs of `jemm decide`. A regression: a request that A answers and B refuses or lacks, a
/// question that B lacks, a winner that changes although A leads by the margin. Throws
/// Error(kInput) and Error(kIo) for unusable files.
DiffResult diff_answers(const std::string& a, const std::string& b, const DiffOptions& options);

/// Report directories of `jemm parity`. A regression: a worse verdict, a gate that passed and is
/// over now, a finding that A does not have, a question that B lacks, a winner that agreed with a
/// reference that leads by the margin and flips now. Throws likewise.
DiffResult diff_reports(const std::string& a, const std::string& b, const DiffOptions& options);

std::string diff_text(const DiffResult& result);
std::string diff_json(const DiffResult& result);  ///< "jemm-diff/1"

}  // namespace jemm
