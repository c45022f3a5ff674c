// Where cases first go over budget, as text.
#include <fmt/format.h>

#include "judge/render.h"
#include "judge/render_text.h"

namespace jemm {

std::string report_bisection(const Report& report) {
  const Bisection& bisection = report.bisection;
  if (!bisection.overall) return "\nfirst stage over budget: none\n";
  std::string text = fmt::format("\nfirst stage over budget: {}\n", stage_name(*bisection.overall));
  std::uint64_t n_cases = 0;
  for (const auto& [stage, n] : bisection.counts) {
    text +=
        fmt::format("  {:<16} first in {} {}\n", stage_name(stage), n, n == 1 ? "case" : "cases");
    n_cases += n;
  }
  for (const FirstFault& first : bisection.listed) {
    const std::string question =
        first.question < 0 ? "" : fmt::format(", question {}", first.question);
    text += fmt::format("  case {}{}: {}\n", printable(first.case_id), question,
                        stage_name(first.stage));
  }
  if (n_cases > bisection.listed.size()) {
    text += fmt::format("  and {} more\n", n_cases - bisection.listed.size());
  }
  return text;
}

}  // namespace jemm
