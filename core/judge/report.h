// What a run of the judge found: plain data for the renderers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/gates.h"
#include "judge/stage_id.h"

namespace jemm {

/// Entries that a list of a report or a diff holds at most; counts count all.
inline constexpr std::size_t kMaxListed = 100;

enum class Verdict {
  kPass,         ///< exact stages equal, every number within its fixed budget
  kWithinNoise,  ///< likewise, but a number needs the reference's own noise to be within budget
  kDrift,        ///< exact stages equal, winners agree, but a number is over its budget
  kFail,         ///< an exact stage differs, a winner flips, or something is missing or not finite
  kError,        ///< nothing could be judged: unusable input, engine failure, nothing compared
};
std::string_view verdict_name(Verdict verdict);  // "PASS", "WITHIN-NOISE", "DRIFT", "FAIL", "ERROR"

enum class FindingKind {
  kDiffers,     ///< an exact stage is not equal
  kOverBudget,  ///< a number of this case is over its budget
  kFlip,        ///< the winner differs where the reference leads by at least the margin
  kNotFinite,   ///< NaN or infinity
  kMissing,     ///< the reference has it, the other side does not
  kExtra,       ///< the other side has it, the reference does not
  kUnmatched,   ///< a case without its counterpart
  kDuplicate,   ///< an id that occurs twice
  kWatched,     ///< logits differ between a run that is watched and one that is not
};
std::string_view finding_kind_name(FindingKind kind);  // "differs", "over budget", ...

/// Something wrong with one case.
struct Finding {
  std::string case_id;
  int question = -1;        ///< index, or -1 for the request
  std::string question_id;  ///< empty for the request
  StageId stage;
  FindingKind kind = FindingKind::kDiffers;
  std::string what;  ///< a sentence; may quote the request
  /// The same without a word of the request, for redacted reports.
  std::string what_redacted;
};

/// Largest, and typical, of a value over all cases; where the largest was.
struct Extreme {
  double median = 0;
  double max = 0;
  std::string case_id;
  int question = -1;
  bool is_set = false;  ///< false: no value has come
};

/// One row of the table of stages.
struct StageSummary {
  StageId stage;
  std::uint64_t n_compared = 0;  ///< values of this stage that both sides have; 0: absent
  std::uint64_t n_wrong = 0;     ///< findings
  Extreme rms;                   ///< numeric stages but probabilities: RMS ratio
  Extreme max_abs;               ///< numeric stages: largest |x - reference|
  std::optional<Gauge> rms_gauge;
  std::optional<Gauge> max_abs_gauge;
};

/// A gate that is not a stage's own: "probability.median", "probability.max",
/// "probability.far_share", "expected_value.max", "decision.flip_margin".
struct GateResult {
  std::string name;
  StageId stage;  ///< that is blamed
  std::uint64_t n_compared = 0;
  Gauge gauge;
  std::string case_id;  ///< of the largest value; empty for medians
  int question = -1;
};

/// Distances of answers from the reference's, over all questions.
struct DistanceSummary {
  std::uint64_t n = 0;
  Extreme drift;            ///< max |p - p_reference| over the candidates
  Extreme kl;               ///< sum p_ref ln(p_ref / p), nats
  Extreme total_variation;  ///< sum |p - p_ref| / 2
};

/// Winners that agree, with the 95% Wilson interval of the share.
struct Agreement {
  std::uint64_t n = 0;
  std::uint64_t n_agree = 0;
  double share = 0, low = 0, high = 0;
};

/// Answers whose reference margin lies in [from, to).
struct MarginBand {
  double from = 0, to = 0;
  std::uint64_t n = 0;
  std::uint64_t n_flipped = 0;
  std::uint64_t n_flipped_noise = 0;  ///< by the second reference
};

struct Crossing {
  std::string case_id;
  int question = 0;
  double reference_confidence = 0, confidence = 0;
};

/// Confidences that lie on the other side of the threshold than the reference's.
struct Crossings {
  double threshold = 0;
  std::uint64_t n_up = 0, n_down = 0;
  std::vector<Crossing> listed{};  ///< the first ones
};

/// Drift by one property: "tokens", "type", "candidates", "images", "margin".
struct Breakdown {
  struct Bin {
    std::string label;
    std::uint64_t n = 0;
    double mean = 0, max = 0;  ///< of the drift
  };
  std::string property;
  std::vector<Bin> bins;
};

/// One answer, for plots and lists.
struct AnswerPoint {
  std::string case_id;
  int question = 0;
  std::string question_id;
  std::string type;
  std::int64_t n_tokens = 0;  ///< 0 when unknown
  std::int64_t n_images = 0;
  std::vector<std::string> candidates;
  std::vector<double> reference, observed;  ///< probabilities
  double drift = 0, kl = 0, total_variation = 0;
  double margin = 0;  ///< of the reference
  bool flipped = false;
  std::optional<double> noise_drift;  ///< the second reference's
};

/// Where cases first go over budget.
struct FirstFault {
  std::string case_id;
  int question = -1;
  StageId stage;
};
struct Bisection {
  std::optional<StageId> overall;                         ///< the earliest of all
  std::vector<std::pair<StageId, std::uint64_t>> counts;  ///< cases by their first stage, in order
  std::vector<FirstFault> listed;                         ///< the first ones
};

/// One side of the comparison.
struct Side {
  std::string kind;  ///< "golden", "engine" or "answers"
  std::string name;  ///< directory or model; empty in redacted reports
  std::vector<std::pair<std::string, std::string>> facts;  ///< "dtype", "device", "revision", ...
};

struct Report {
  std::string version;  ///< name and version of the program
  Side reference, observed;
  std::optional<Side> noise;
  Gates gates;
  std::string gates_sha256;  ///< of gates_json, budgets from noise filled in
  std::string stage_names;   ///< the stages asked for
  Verdict verdict = Verdict::kError;
  std::string reason;           ///< one sentence; may quote the request
  std::string reason_redacted;  ///< the same without a word of the request
  bool is_redacted = false;     ///< ids are the starts of their hashes; see redacted()

  std::uint64_t n_cases = 0, n_ok = 0, n_refused = 0, n_questions = 0, n_images = 0;
  std::vector<StageSummary> stages;  ///< in order; absent ones of those asked for too
  std::vector<GateResult> gate_results;
  std::uint64_t n_findings = 0;
  std::vector<Finding> findings;  ///< the first ones
  DistanceSummary distance;
  std::optional<DistanceSummary> noise_distance;  ///< of the second reference from the first
  Agreement agreement;
  std::optional<Agreement> noise_agreement;
  std::vector<MarginBand> bands;
  std::optional<Crossings> crossings;
  std::vector<Breakdown> breakdowns;
  std::vector<AnswerPoint> worst;   ///< ten, largest drift first
  std::vector<AnswerPoint> points;  ///< a sample without candidates and probabilities
  Bisection bisection;
  std::uint64_t n_watched = 0;  ///< forwards run with and without a tap; logits equal, or a finding
};

}  // namespace jemm
