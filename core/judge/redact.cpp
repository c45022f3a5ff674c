// A report that can be shown to those who may not see the requests.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/labels.h"
#include "base/sha256.h"
#include "contract/request.h"
#include "judge/render.h"

namespace jemm {
namespace {

void redact_id(std::string& id) {
  id = redacted_id(id);
}

void redact(Extreme& extreme) {
  redact_id(extreme.case_id);
}

void redact(DistanceSummary& distance) {
  redact(distance.drift);
  redact(distance.kl);
  redact(distance.total_variation);
}

/// A type of the contract is no secret; anything else came from a file.
void redact_type(std::string& type) {
  constexpr std::array kTypes = {QuestionType::kChoice, QuestionType::kNoul, QuestionType::kScore};
  const bool known = std::any_of(kTypes.begin(), kTypes.end(), [&](QuestionType candidate) {
    return question_type_name(candidate) == type;
  });
  if (!known) redact_id(type);
}

void redact(AnswerPoint& point) {
  redact_id(point.case_id);
  redact_id(point.question_id);
  redact_type(point.type);
  for (std::size_t i = 0; i < point.candidates.size(); ++i) {
    point.candidates[i] = i < kLabels.size() ? std::string(1, kLabels[i]) : fmt::format("#{}", i);
  }
}

/// A fact is a version, a hash or a word, unless it looks like a path.
void redact(Side& side) {
  side.name.clear();
  for (auto& [name, value] : side.facts) {
    const bool like_path = value.find_first_of("/\\") != std::string::npos;
    if (like_path && name != "format") value = fmt::format("(redacted {})", redacted_id(value));
  }
}

}  // namespace

std::string redacted_id(std::string_view id) {
  constexpr std::size_t kDigits = 12;
  return id.empty() ? "" : sha256_hex(id).substr(0, kDigits);
}

Finding redacted(Finding finding) {
  redact_id(finding.case_id);
  redact_id(finding.question_id);
  finding.what = finding.what_redacted;
  return finding;
}

Report redacted(Report report) {
  if (report.is_redacted) return report;
  report.is_redacted = true;
  redact(report.reference);
  redact(report.observed);
  if (report.noise) redact(*report.noise);
  report.reason = report.reason_redacted;
  for (StageSummary& stage : report.stages) {
    redact(stage.rms);
    redact(stage.max_abs);
  }
  for (GateResult& gate : report.gate_results) redact_id(gate.case_id);
  for (Finding& finding : report.findings) finding = redacted(std::move(finding));
  redact(report.distance);
  if (report.noise_distance) redact(*report.noise_distance);
  if (report.crossings) {
    for (Crossing& crossing : report.crossings->listed) redact_id(crossing.case_id);
  }
  for (Breakdown& breakdown : report.breakdowns) {
    if (breakdown.property != "type") continue;
    for (Breakdown::Bin& bin : breakdown.bins) redact_type(bin.label);
  }
  for (AnswerPoint& point : report.worst) redact(point);
  for (AnswerPoint& point : report.points) redact(point);
  for (FirstFault& fault : report.bisection.listed) redact_id(fault.case_id);
  return report;
}

}  // namespace jemm
