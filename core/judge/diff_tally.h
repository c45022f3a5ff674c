// Collects what a diff finds: counts, bounded lists, how far numbers moved.
#pragma once

#include <string>
#include <vector>

#include "judge/diff.h"

namespace jemm {

class DiffTally {
 public:
  void regress(const DiffEntry& entry) { add(result.regressions, entry); }
  void improve(const DiffEntry& entry) { add(result.improvements, entry); }
  void flip(const DiffEntry& entry) { add(result.flips, entry); }
  void move(const std::string& case_id, const std::string& question_id, double distance);
  /// Fills in the median. Call once.
  DiffResult finish();

  DiffResult result;

 private:
  static void add(DiffList& list, const DiffEntry& entry);

  std::vector<double> distances_;
};

}  // namespace jemm
