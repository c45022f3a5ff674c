// The trials, and the table that they make.
#include "self_test.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/faults.h"
#include "exit_codes.h"
#include "judge/faults.h"
#include "judge/judge.h"
#include "model.h"
#include "observer.h"
#include "output.h"

namespace jemm::cli {
namespace {

/// Two questions and an image: every stage occurs.
constexpr std::string_view kWithImage =
    R"({"state": "A picture of stripes.", "images": ["data:image/png;base64,)"
    "iVBORw0KGgoAAAANSUhEUgAAAGAAAABAAQAAAADNT0+jAAAAG0lEQVR42mOwQQIMNOR8QAK05Iz6Z9Q/dPQPAJLcwhDR"
    R"(cJQJAAAAAElFTkSuQmCC"], "questions": {"colour": {"type": "choice", "instructions": )"
    R"("Which?", "criteria": {"red": "It is red.", "grey": "It is grey.", "blue": "It is blue."}}, )"
    R"("level": {"type": "score", "instructions": "How bright?", "criteria": ["dark", "light"]}}})";

/// More than two chunks of 64 tokens, so that a split leaves rows on both sides.
constexpr std::string_view kLong =
    R"({"state": {"api": "healthy", "database": "down", "queue": "degraded", "login": "healthy"}, )"
    R"("questions": {"status": {"type": "choice", "instructions": "What is the status of queue?", )"
    R"("criteria": {"healthy": "queue is healthy", "degraded": "queue is degraded", )"
    R"("down": "queue is down"}}, "down": {"type": "choice", "instructions": )"
    R"("Which service is down?", "criteria": {"api": "api", "database": "database"}}}})";

constexpr std::int64_t kSplit = 64;
constexpr StageId kFirstLayer{StageKind::kLayer, 0};
constexpr StageId kFirstFullAttention{StageKind::kLayer, 3};  // of the embedded checkpoint

/// The embedded checkpoint with an engine of its own, so that a fault may be planted before.
class DemoModel {
 public:
  DemoModel()
      : files_(open_embedded_model()),
        encoder_(open_encoder(files_, {})),
        weights_(open_weights(files_, encoder_, {})),
        engine_(open_engine({.device = "cpu", .precision = {}, .n_threads = 1}, weights_,
                            encoder_.label_ids())),
        observer_(
            {.encoder = encoder_, .engine = engine_.get(), .decision = weights_->decision()}) {}

  CaseRecord observe(std::string_view body, RunVariation variation = {}) const {
    CaseRecord request;
    request.id = body == kLong ? "long" : "image";
    request.body = body;
    variation.every_stage = true;
    CaseRecord record = observer_.observe(request, StageSet::all(), variation);
    record.body = body;
    return record;
  }

 private:
  ModelFiles files_;
  Encoder encoder_;
  std::shared_ptr<const Checkpoint> weights_;
  std::unique_ptr<Engine> engine_;
  Observer observer_;
};

/// What is expected of one fault; no stage: nothing may be found.
struct Trial {
  std::string name;
  std::optional<StageId> stage;
  std::optional<FindingKind> kind;  ///< checked when set
};

class SelfTest {
 public:
  int run();

 private:
  void judge(const Trial& trial, const CaseRecord& reference, const CaseRecord& observed);
  void data_trials(const CaseRecord& image);
  void run_trials(const CaseRecord& text);
  void engine_trials(const CaseRecord& image, const CaseRecord& text);
  void skip(const std::string& name);

  std::string table_ = fmt::format("{:<48} {:<16} {:<16} {:<12} {}\n", "planted", "expected",
                                   "blamed", "verdict", "");
  int n_trials_ = 0;
  int n_wrong_ = 0;
  int n_skipped_ = 0;
};

void SelfTest::judge(const Trial& trial, const CaseRecord& reference, const CaseRecord& observed) {
  Judge judge(gate_preset("fp32-trained"), StageSet::all(), std::nullopt);
  const std::vector<Finding> findings =
      judge.add(compare_cases(reference, observed, StageSet::all()), nullptr);
  const Report report = judge.finish();
  const auto name_of = [](std::optional<StageId> stage) {
    return stage ? stage_name(*stage) : std::string("nothing");
  };
  const bool is_blamed = report.bisection.overall == trial.stage &&
                         (!trial.kind || (!findings.empty() && findings[0].kind == *trial.kind));
  const bool is_failed = report.verdict == Verdict::kFail || report.verdict == Verdict::kDrift;
  const bool is_right = is_blamed && (trial.stage ? is_failed : report.verdict == Verdict::kPass);
  table_ += fmt::format("{:<48} {:<16} {:<16} {:<12} {}\n", trial.name, name_of(trial.stage),
                        name_of(report.bisection.overall), verdict_name(report.verdict),
                        is_right ? "ok" : "WRONG");
  ++n_trials_;
  if (!is_right) ++n_wrong_;
}

void SelfTest::skip(const std::string& name) {
  table_ += fmt::format("{:<48} not in this build\n", name);
  ++n_skipped_;
}

void SelfTest::data_trials(const CaseRecord& image) {
  for (const DataFault& fault : data_faults()) {
    CaseRecord copy = image;
    fault.plant(copy);
    judge({fault.name, fault.stage, fault.kind}, image, copy);
  }
}

/// Faults that the engine's callers could make.
void SelfTest::run_trials(const CaseRecord& text) {
  const DemoModel model;
  judge({"nothing", {}, {}}, text, model.observe(kLong));
  judge({"nothing, split at 64 rows", {}, {}}, text, model.observe(kLong, {.split_rows = kSplit}));
  judge({"wrong temperature", StageId{StageKind::kProbabilities}, FindingKind::kOverBudget}, text,
        model.observe(kLong, {.temperature_factor = 1.1}));
  judge({"position off by one behind a split", kFirstFullAttention, FindingKind::kOverBudget}, text,
        model.observe(kLong, {.split_rows = kSplit, .position_shift = 1}));
}

/// Faults inside the engine, in builds that can plant them.
void SelfTest::engine_trials(const CaseRecord& image, const CaseRecord& text) {
  struct EngineTrial {
    EngineFault fault;
    Trial trial;
    bool with_image;
    std::int64_t split_rows;
  };
  const StageId kSecondLayer{StageKind::kLayer, 1};
  const auto kind = FindingKind::kOverBudget;
  const std::vector<EngineTrial> trials = {
      {EngineFault::kDroppedLoraPair, {"dropped LoRA pair", kSecondLayer, kind}, false, 0},
      {EngineFault::kUnscaledQuery,
       {"unscaled query in full attention", kFirstFullAttention, kind},
       false,
       0},
      {EngineFault::kUnscaledDeltaQuery,
       {"unscaled query in DeltaNet", kFirstLayer, kind},
       false,
       0},
      {EngineFault::kRotarySection, {"wrong rotary section", kFirstFullAttention, kind}, true, 0},
      {EngineFault::kBf16State,
       {"BF16 recurrent state at a split", kFirstLayer, kind},
       false,
       kSplit},
      {EngineFault::kStaleState,
       {"stale recurrent state at a split", kFirstLayer, kind},
       false,
       kSplit},
  };
  for (const EngineTrial& planted_trial : trials) {
    if (!kFaultsBuilt) {
      skip(planted_trial.trial.name);
      continue;
    }
#if defined(JEMM_FAULTS)
    planted_fault = planted_trial.fault;
    const DemoModel model;
    const CaseRecord observed = model.observe(planted_trial.with_image ? kWithImage : kLong,
                                              {.split_rows = planted_trial.split_rows});
    planted_fault = EngineFault::kNone;
    judge(planted_trial.trial, planted_trial.with_image ? image : text, observed);
#endif
  }
  static_cast<void>(image);
  static_cast<void>(text);
}

int SelfTest::run() {
  CaseRecord image;
  CaseRecord text;
  {
    const DemoModel model;
    image = model.observe(kWithImage);
    text = model.observe(kLong);
  }
  data_trials(image);
  run_trials(text);
  engine_trials(image, text);
  table_ += fmt::format("\n{} of {} trials as expected", n_trials_ - n_wrong_, n_trials_);
  if (n_skipped_ > 0) {
    table_ +=
        fmt::format("; {} faults inside the engine need a build with JEMM_FAULTS", n_skipped_);
  }
  Output::standard_output().write(table_ + "\n");
  return n_wrong_ == 0 ? kOk : kGateFailed;
}

}  // namespace

int run_self_test() {
  return SelfTest().run();
}

}  // namespace jemm::cli
