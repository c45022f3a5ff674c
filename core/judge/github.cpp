// Findings as workflow commands of GitHub.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "judge/render.h"
#include "judge/render_text.h"
#include "judge/tables.h"

namespace jemm {
namespace {

constexpr std::size_t kPerLevel = 10;  // what GitHub shows of a step
constexpr std::size_t kMessageColumns = 1000;
constexpr std::size_t kTitleColumns = 120;

std::string replaced(std::string_view text, std::string_view unsafe) {
  std::string result;
  for (const char byte : text) {
    if (unsafe.find(byte) != std::string_view::npos) {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    } else {
      result += byte;
    }
  }
  return result;
}

/// A command; its message and its title are escaped, each by its own rule.
std::string command(std::string_view level, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", level,
                     replaced(shortened(printable(title), kTitleColumns), "%\r\n:,"),
                     replaced(shortened(printable(message), kMessageColumns), "%\r\n"));
}

std::string command(std::string_view level, const Finding& finding) {
  const std::string title =
      fmt::format("{} {}", stage_name(finding.stage), finding_kind_name(finding.kind));
  return command(
      level, title,
      fmt::format("{}: {}", place_text(finding.case_id, finding.question), finding.what));
}

bool is_warning(const Finding& finding) {
  return finding.kind == FindingKind::kOverBudget;
}

/// The first of `findings` as commands, at most `room`; returns how many are shown.
std::size_t list(std::string& out, std::string_view level,
                 const std::vector<const Finding*>& findings, std::size_t room) {
  const std::size_t n = std::min(findings.size(), room);
  for (std::size_t i = 0; i < n; ++i) out += command(level, *findings[i]);
  return n;
}

}  // namespace

std::string github_annotations(const Report& report) {
  const std::string title = fmt::format("jemm parity {}", verdict_name(report.verdict));
  if (report.verdict == Verdict::kPass || report.verdict == Verdict::kWithinNoise) {
    return command("notice", title, report.reason);
  }
  std::vector<const Finding*> errors;
  std::vector<const Finding*> warnings;
  for (const Finding& finding : report.findings) {
    (is_warning(finding) ? warnings : errors).push_back(&finding);
  }
  std::string out = command("error", title, report.reason);
  std::uint64_t n_shown = list(out, "error", errors, kPerLevel - 2);
  n_shown += list(out, "warning", warnings, kPerLevel - 1);
  if (report.n_findings > n_shown) {
    out += command(errors.empty() ? "warning" : "error", "jemm parity",
                   fmt::format("{}; the report lists them",
                               count_text(report.n_findings - n_shown, "more finding")));
  }
  return out;
}

}  // namespace jemm
