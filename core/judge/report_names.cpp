// The words for verdicts and findings.
#include "judge/report.h"

namespace jemm {

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kWithinNoise:
      return "WITHIN-NOISE";
    case Verdict::kDrift:
      return "DRIFT";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kError:
      break;
  }
  return "ERROR";
}

std::string_view finding_kind_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kDiffers:
      return "differs";
    case FindingKind::kOverBudget:
      return "over budget";
    case FindingKind::kFlip:
      return "flip";
    case FindingKind::kNotFinite:
      return "not finite";
    case FindingKind::kMissing:
      return "missing";
    case FindingKind::kExtra:
      return "extra";
    case FindingKind::kUnmatched:
      return "unmatched";
    case FindingKind::kDuplicate:
      return "duplicate";
    case FindingKind::kWatched:
      break;
  }
  return "watched run differs";
}

}  // namespace jemm
