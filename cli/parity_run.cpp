// Opening both sides, judging case by case, publishing what came out.
#include "parity_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "exit_codes.h"
#include "github.h"
#include "judge/judge.h"
#include "judge/render.h"
#include "output.h"
#include "signals.h"
#include "subject.h"
#include "version.h"

namespace jemm::cli {
namespace {

/// Cases that are run once watched and once not.
constexpr std::uint64_t kWatchedCases = 8;

Golden open_golden(const std::string& directory) {
  Golden golden(directory);
  const GoldenManifest& manifest = golden.manifest();
  if (manifest.n_cases && *manifest.n_cases != golden.n_cases()) {
    fail(ErrorKind::kInput, "{}: the manifest counts {} cases, cases.jsonl holds {}", directory,
         *manifest.n_cases, golden.n_cases());
  }
  return golden;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

StageSet choose_stages(const ParityOptions& options) {
  if (!options.stages.empty()) return StageSet::parse(options.stages);
  return options.answers.empty() ? StageSet::all() : answer_stages();
}

class ParityRun {
 public:
  /// Opens everything. Throws Error(kInput) and Error(kIo) for what cannot be used.
  ParityRun(const ParityOptions& options, ReportFiles* files)
      : options_(options),
        files_(files),
        stages_(choose_stages(options)),
        golden_(open_golden(options.golden)) {
    if (!options.against.empty()) {
      against_.emplace(open_golden(options.against));
      subject_ = open_golden_subject(*against_, golden_);
    } else if (!options.answers.empty()) {
      subject_ = open_answers_subject(options.answers, golden_);
    } else {
      subject_ = open_model_subject(options.model, options.engine, golden_, stages_);
    }
    gates_ = choose_gates(options, golden_.manifest().dtype == "float32" && subject_->is_fp32());
    if (!gates_.threshold) gates_.threshold = subject_->threshold();
    if (!options.noise.empty()) measure_noise();
  }

  int run();

 private:
  void measure_noise();
  void fix_gates();
  void judge_all();
  void check_directories();
  void judge_case(const CaseRecord& reference);
  void watch(const CaseRecord& reference, const CaseRecord& watched);
  void add_finding(const std::string& case_id, StageId stage, FindingKind kind,
                   const std::string& what);
  Report finish(const std::string& failure);
  void publish(Report& report);

  const ParityOptions& options_;
  ReportFiles* files_;
  StageSet stages_;
  Golden golden_;
  std::optional<Golden> against_;
  std::optional<Golden> second_;  ///< of --noise
  std::unique_ptr<Subject> subject_;
  Gates gates_;
  std::string gates_sha256_;
  std::optional<NoiseLevels> noise_;
  std::optional<Judge> judge_;
  std::uint64_t n_done_ = 0;
  std::uint64_t n_wrong_ = 0;
  std::uint64_t n_watched_ = 0;
};

/// How far the second reference lies from the first one, over all cases.
void ParityRun::measure_noise() {
  second_.emplace(open_golden(options_.noise));
  check_same_checkpoint(*second_, golden_);
  const bool has_fixed_budget = gates_.stage_rms.at_most.has_value();
  if (golden_.has_tensors() && stages_.needs_tensors() && !second_->has_tensors() &&
      !has_fixed_budget) {
    fail(ErrorKind::kInput,
         "{} has no tensors, so nothing tells the noise of vision, layer and final_norm; leave "
         "those stages out with --stages",
         options_.noise);
  }
  const StageSet stages = second_->has_tensors() ? stages_ : stages_.without_tensors();
  Judge judge(Gates{}, stages, std::nullopt);
  CaseRecord reference;
  golden_.rewind();
  while (!interrupted() && golden_.next(reference)) {
    const std::string name = options_.redact ? redacted_id(reference.id) : reference.id;
    const std::optional<CaseRecord> other = second_->find(reference.id);
    if (!other) fail(ErrorKind::kInput, "{} does not have the case {}", options_.noise, name);
    const std::vector<Finding> findings =
        judge.add(compare_cases(reference, *other, stages), nullptr);
    if (findings.empty()) continue;
    const Finding& first = findings.front();
    fail(ErrorKind::kInput, "{} cannot tell the noise: case {}, {}: {}", options_.noise, name,
         stage_name(first.stage), options_.redact ? first.what_redacted : first.what);
  }
  if (!second_->duplicates().empty()) {
    fail(ErrorKind::kInput, "{} has more than one case of an id", options_.noise);
  }
  noise_ = noise_levels(judge.finish());
}

/// From here on nothing about the gates can change.
void ParityRun::fix_gates() {
  const std::string text = resolved_gates_json(gates_, noise_);
  gates_sha256_ = sha256_hex(text);
  if (files_ != nullptr) files_->write_gates(text);
  log_line(fmt::format("gates {} (SHA-256 {})", gates_.name, gates_sha256_));
  judge_.emplace(gates_, stages_, noise_);
}

void ParityRun::add_finding(const std::string& case_id, StageId stage, FindingKind kind,
                            const std::string& what) {
  const Finding finding{.case_id = case_id,
                        .question = -1,
                        .question_id = "",
                        .stage = stage,
                        .kind = kind,
                        .what = what,
                        .what_redacted = what};
  judge_->add_finding(finding);
  if (files_ != nullptr) files_->add_finding(finding);
  ++n_wrong_;
}

/// What is wrong with the directories themselves.
void ParityRun::check_directories() {
  constexpr StageId kAccept{StageKind::kAccept};
  for (Golden* side : {&golden_, against_ ? &*against_ : nullptr}) {
    if (side == nullptr) continue;
    for (const std::string& id : side->duplicates()) {
      add_finding(id, kAccept, FindingKind::kDuplicate, "the id stands for more than one case");
    }
    if (side->n_stray_tensors() > 0) {
      add_finding("", {StageKind::kFinalNorm}, FindingKind::kExtra,
                  fmt::format("{} tensors belong to no case", side->n_stray_tensors()));
    }
  }
  if (!against_) return;
  CaseRecord record;
  against_->rewind();
  while (!interrupted() && against_->next(record)) {
    if (golden_.contains(record.id)) continue;
    add_finding(record.id, kAccept, FindingKind::kUnmatched, "the reference has no such case");
  }
}

void ParityRun::judge_all() {
  check_directories();
  Progress progress(options_.progress, "cases");
  CaseRecord reference;
  golden_.rewind();
  while (!interrupted() && golden_.next(reference)) {
    judge_case(reference);
    ++n_done_;
    progress.update(n_done_, n_wrong_,
                    static_cast<double>(n_done_) / static_cast<double>(golden_.n_cases()));
  }
  progress.clear();
}

void ParityRun::judge_case(const CaseRecord& reference) {
  const auto start = std::chrono::steady_clock::now();
  const std::optional<CaseRecord> observed = subject_->find(reference);
  if (!observed) {
    return add_finding(reference.id, {StageKind::kAccept}, FindingKind::kUnmatched,
                       "the case is not there");
  }
  const CaseComparison comparison = compare_cases(reference, *observed, stages_);
  std::optional<CaseComparison> noise;
  if (second_) {
    // Its tensors have been compared by measure_noise; here the answers stand side by side.
    noise =
        compare_cases(reference, *second_->find(reference.id), StageSet::parse("probabilities"));
  }
  const std::vector<Finding> findings = judge_->add(comparison, noise ? &*noise : nullptr);
  if (!findings.empty()) ++n_wrong_;
  if (files_ != nullptr) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    files_->add_case(comparison, findings, seconds.count());
  }
  if (!observed->tensors.empty() && n_watched_ < kWatchedCases) watch(reference, *observed);
}

/// Watching must not change the result: the same logits, bit by bit, without a tap.
void ParityRun::watch(const CaseRecord& reference, const CaseRecord& watched) {
  const std::optional<CaseRecord> bare = subject_->unwatched(reference);
  if (!bare) return;
  ++n_watched_;
  judge_->note_watched();
  for (std::size_t i = 0; i < watched.questions.size(); ++i) {
    if (same_bits(*bare->questions[i].logits, *watched.questions[i].logits)) continue;
    add_finding(reference.id, {StageKind::kLogits}, FindingKind::kWatched,
                fmt::format("question {} has other logits when its stages are watched", i));
  }
}

/// The report with what the judge does not know; `failure`: what ended the run early.
Report ParityRun::finish(const std::string& failure) {
  Report report = judge_->finish();
  const std::string version = version_text();
  report.version = version.substr(0, version.find('\n'));
  report.reference = golden_side(golden_);
  report.observed = subject_->side();
  if (second_) report.noise = golden_side(*second_);
  report.gates_sha256 = gates_sha256_;
  const bool is_passed =
      report.verdict == Verdict::kPass || report.verdict == Verdict::kWithinNoise;
  if (!failure.empty()) {
    report.verdict = Verdict::kError;
    report.reason = fmt::format("stopped after {} cases: {}", n_done_, failure);
    report.reason_redacted = fmt::format("stopped after {} cases", n_done_);
  } else if (is_passed && report.n_questions < options_.min_questions) {
    report.verdict = Verdict::kError;
    report.reason = fmt::format("the golden holds {} questions, {} are wanted", report.n_questions,
                                options_.min_questions);
    report.reason_redacted = report.reason;
  }
  return report;
}

/// Prints first, so that the verdict is seen whatever becomes of the files.
void ParityRun::publish(Report& report) {
  const Report shown = options_.redact ? redacted(report) : report;
  Output output = Output::standard_output();
  output.write(report_terminal(shown, wants_color()) +
               (options_.bisect ? report_bisection(shown) : ""));
  output.close();
  if (files_ != nullptr) files_->finish(report);
  if (options_.github) publish_on_github(shown);
}

int ParityRun::run() {
  fix_gates();
  int error_code = kNoRequests;  // of a verdict ERROR
  std::string failure;
  try {
    judge_all();
  } catch (const Error& error) {
    error_code = error.kind() == ErrorKind::kDevice ? kEngine : kUnusableInput;
    failure = error.what();
  }
  if (interrupted()) failure = "interrupted";
  Report report = finish(failure);
  publish(report);
  if (interrupted()) return kInterrupted;
  switch (report.verdict) {
    case Verdict::kPass:
    case Verdict::kWithinNoise:
      return kOk;
    case Verdict::kDrift:
    case Verdict::kFail:
      return kGateFailed;
    case Verdict::kError:
      break;
  }
  log_line(fmt::format("error: {}", options_.redact ? report.reason_redacted : report.reason));
  return error_code;
}

}  // namespace

Gates choose_gates(const ParityOptions& options, bool both_fp32) {
  Gates gates;
  if (!options.gates_file.empty()) {
    gates = parse_gates(map_file(options.gates_file).text(), options.gates_file);
  } else if (!options.preset.empty()) {
    gates = gate_preset(options.preset);
  } else {
    gates = gate_preset(both_fp32 ? "fp32" : "strict");
  }
  if (options.threshold) gates.threshold = options.threshold;
  return gates;
}

int run_parity(const ParityOptions& options, ReportFiles* files) {
  std::optional<ParityRun> run;
  try {
    run.emplace(options, files);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kIo) throw;
    log_line(options.redact ? "error: an input is unusable; what is wrong shows without --redact"
                            : fmt::format("error: {}", error.what()));
    return kUnusableInput;
  }
  return run->run();
}

}  // namespace jemm::cli
