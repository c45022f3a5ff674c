// Reports made by hand, for the tests of the renderers.
#pragma once

#include <string>
#include <vector>

#include "judge/report.h"

namespace jemm::test {

/// Text that tries to leave its place in HTML, XML, JSON, Markdown, terminals and workflow
/// commands: markup, ends of sections, control characters, a lone surrogate, bytes that are no
/// text.
std::string hostile_text();

/// A run that went as it should: a golden with three stages of tensors, 60 cases, noise given.
Report sample_report(Verdict verdict);
/// All differences are zero, nothing else is known.
Report zero_report();
/// Nothing was compared, lists are empty.
Report empty_report();
/// NaN and infinity wherever a number is measured.
Report not_finite_report();
/// hostile_text in every text, 200 findings, an id of 100,000 bytes.
Report hostile_report();

}  // namespace jemm::test
