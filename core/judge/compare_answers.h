// The answers and the usage of a response beside the reference's.
#pragma once

#include "judge/compare.h"

namespace jemm {

/// Adds to `result` what the stages probabilities, decision and usage show. `reference.response` is
/// set.
void compare_answers(const CaseRecord& reference, const CaseRecord& observed,
                     const StageSet& stages, CaseComparison& result);

}  // namespace jemm
