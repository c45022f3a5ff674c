// Two records of one request, stage by stage. Knows no budgets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judge/record.h"
#include "judge/report.h"

namespace jemm {

/// The distance of one tensor, or of one question's logits.
struct StageValue {
  int question = 0;
  StageId stage;
  double rms_ratio = 0;
  double max_abs = 0;
};

/// One answer beside the reference's.
struct AnswerComparison {
  AnswerPoint point;
  double confidence = 0, reference_confidence = 0;
  std::optional<double> expected_value_difference;
};

/// A question of the reference, for reports by question.
struct QuestionName {
  std::string id;
  int index = 0;
};

struct CaseComparison {
  std::string case_id;
  bool refused = false;  ///< by the reference
  std::size_t n_images = 0;
  std::vector<QuestionName> questions;
  std::vector<StageId> compared;  ///< an entry for each thing compared, of whatever stage
  std::vector<Finding> findings;  ///< all but what depends on budgets
  std::vector<StageValue> values;
  std::vector<AnswerComparison> answers;
};

/// Compares what the reference has, of the stages asked for. A refusal that is a crash of the
/// reference (http 500, or a typed video pad) is matched by any refusal; so is one of a body that
/// the reference's server reads in another encoding than UTF-8. Details are compared where the
/// reference itself words them.
CaseComparison compare_cases(const CaseRecord& reference, const CaseRecord& observed,
                             const StageSet& stages);

}  // namespace jemm
