// A report as text for people and machines. Every function is pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "judge/report.h"

namespace jemm {

/// For a terminal: the table of stages, the gates, distances and findings. `color`: ANSI colours,
/// which never carry meaning alone.
std::string report_terminal(const Report& report, bool color);
/// The first stage over its budget: overall, counted over the cases, and case by case.
std::string report_bisection(const Report& report);
/// "jemm-report/1", as docs/report.schema.json describes it.
std::string report_json(const Report& report);
std::string report_markdown(const Report& report);
/// One file without references to others; plots are inline SVG.
std::string report_html(const Report& report);
/// Workflow commands of GitHub: at most 10 errors and 10 warnings, the last of which says how many
/// are left out.
std::string github_annotations(const Report& report);
/// The step summary: Markdown of at most `max_bytes` (GitHub's limit is 1 MiB), cut at a line.
std::string github_summary(const Report& report, std::size_t max_bytes = 1u << 20);

/// The report without ids, candidates, quotations and paths: ids become the first 12 digits of
/// their SHA-256, candidates their label letters. What is redacted already stays as it is.
Report redacted(Report report);
/// One finding likewise, for what is written case by case.
Finding redacted(Finding finding);
/// The id of a redacted report; empty for an empty one.
std::string redacted_id(std::string_view id);

}  // namespace jemm
