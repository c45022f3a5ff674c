// Two lines of cases.jsonl, a line feed between them: read, compared, judged and rendered.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "judge/case_reader.h"
#include "judge/compare.h"
#include "judge/judge.h"
#include "judge/render.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jemm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view rest = text.substr(std::min(end + 1, text.size()));
  try {
    const CaseRecord reference = read_case(text.substr(0, end), "A");
    if (read_case_id(text.substr(0, end), "A") != reference.id) __builtin_trap();
    const CaseRecord observed = rest.empty() ? reference : read_case(rest, "B");
    const StageSet stages = size % 2 == 0 ? StageSet::all() : StageSet::parse("accept,decision");
    Judge judge(gate_preset("fp32"), stages, {});
    judge.add(compare_cases(reference, observed, stages), nullptr);
    const Report report = judge.finish();
    if (report.n_findings > 0 && report.verdict < Verdict::kDrift) __builtin_trap();
    report_json(report);
    report_markdown(report);
    report_html(report);
    report_terminal(redacted(report), true);
    github_annotations(report);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
  }
  return 0;
}
