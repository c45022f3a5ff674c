// jemm parity: proves stage by stage that an engine does what the reference did.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "commands.h"
#include "exit_codes.h"
#include "github.h"
#include "judge/judge.h"
#include "judge/render.h"
#include "model.h"
#include "output.h"
#include "parity_files.h"
#include "progress.h"
#include "self_test.h"
#include "signals.h"
#include "subject.h"
#include "version.h"

namespace jemm::cli {
namespace {

struct ParityOptions {
  std::string golden;
  std::string against;
  std::string noise;
  ModelOptions model;
  EngineOptions engine;
  std::string stages;
  std::string preset;
  std::string gates_file;
  std::optional<double> threshold;
  bool print_gates = false;
  bool bisect = false;
  std::uint64_t min_questions = 1;
  std::string report;
  bool force = false;
  bool redact = false;
  bool github = std::getenv("GITHUB_ACTIONS") != nullptr;
  bool self_test = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// Cases whose questions are run once watched and once not.
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

/// The gates of --gates or --preset; else those that the two sides' precision asks for.
Gates choose_gates(const ParityOptions& options, const Golden& golden, const Golden* against) {
  Gates gates;
  if (!options.gates_file.empty()) {
    gates = parse_gates(map_file(options.gates_file).text(), options.gates_file);
  } else if (!options.preset.empty()) {
    gates = gate_preset(options.preset);
  } else {
    const bool both_fp32 = golden.manifest().dtype == "float32" &&
                           (against == nullptr || against->manifest().dtype == "float32");
    gates = gate_preset(both_fp32 ? "fp32" : "strict");
  }
  if (options.threshold) gates.threshold = options.threshold;
  return gates;
}

/// One run of parity: a golden against a subject, with or without a second reference.
class ParityRun {
 public:
  explicit ParityRun(const ParityOptions& options)
      : options_(options),
        stages_(options.stages.empty() ? StageSet::all() : StageSet::parse(options.stages)),
        golden_(open_golden(options.golden)) {
    if (!options.against.empty()) {
      against_.emplace(open_golden(options.against));
      subject_ = open_golden_subject(*against_, golden_);
    } else {
      subject_ =
          open_model_subject(options.model, options.engine, golden_, stages_);
    }
    gates_ = choose_gates(options, golden_, against_ ? &*against_ : nullptr);
    if (!gates_.threshold) gates_.threshold = subject_->threshold();
    if (!options.noise.empty()) measure_noise();
  }

  int run();

 private:
  void measure_noise();
  void fix_gates();
  void judge_cases();
  void judge_case(const CaseRecord& reference);
  void watch(const CaseRecord& reference, const CaseRecord& watched);
  void add_finding(const std::string& case_id, StageId stage, FindingKind kind,
                   const std::string& what);
  void check_directories();
  void publish(Report& report);

  const ParityOptions& options_;
  StageSet stages_;
  Golden golden_;
  std::optional<Golden> against_;
  std::optional<Golden> second_;  ///< of --noise
  std::unique_ptr<Subject> subject_;
  Gates gates_;
  std::string gates_sha256_;
  std::optional<NoiseLevels> noise_;
  std::optional<Judge> judge_;
  std::optional<ReportFiles> files_;
  std::uint64_t n_done_ = 0;
  std::uint64_t n_wrong_ = 0;
};

/// How far the second reference lies from the first one, over all cases.
void ParityRun::measure_noise() {
  second_.emplace(open_golden(options_.noise));
  open_golden_subject(*second_, golden_);  // for its check
  const StageSet stages = second_->has_tensors() ? stages_ : stages_.without_tensors();
  Judge judge(Gates{}, stages, std::nullopt);
  CaseRecord reference;
  golden_.rewind();
  while (golden_.next(reference)) {
    const std::string name = options_.redact ? redacted_id(reference.id) : reference.id;
    const std::optional<CaseRecord> other = second_->find(reference.id);
    if (!other) {
      fail(ErrorKind::kInput, "{} does not have the case {}", options_.noise, name);
    }
    const std::vector<Finding> findings =
        judge.add(compare_cases(reference, *other, stages), nullptr);
    if (findings.empty()) continue;
    const Finding& first = findings.front();
    fail(ErrorKind::kInput, "{} cannot tell the noise: case {}, {}: {}", options_.noise, name,
         stage_name(first.stage), options_.redact ? first.what_redacted : first.what);
  }
  noise_ = noise_levels(judge.finish());
}

/// From here on nothing about the gates can change.
void ParityRun::fix_gates() {
  const std::string text = resolved_gates_json(gates_, noise_);
  gates_sha256_ = sha256_hex(text);
  if (!options_.report.empty()) {
    files_.emplace(options_.report, options_.force, options_.redact);
    files_->write_gates(text);
  }
  log_line(fmt::format("gates {} (SHA-256 {})", gates_.name, gates_sha256_));
  judge_.emplace(gates_, stages_, noise_);
}

void ParityRun::add_finding(const std::string& case_id, StageId stage, FindingKind kind,
                            const std::string& what) {
  judge_->add_finding({.case_id = case_id,
                       .question = -1,
                       .question_id = "",
                       .stage = stage,
                       .kind = kind,
                       .what = what,
                       .what_redacted = what});
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
  while (against_->next(record)) {
    if (golden_.contains(record.id)) continue;
    add_finding(record.id, kAccept, FindingKind::kUnmatched, "the reference has no such case");
  }
}

void ParityRun::judge_cases() {
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
    add_finding(reference.id, {StageKind::kAccept}, FindingKind::kUnmatched,
                "the case is not there");
    if (files_) files_->add_error(reference.id, "the case is not there");
    return;
  }
  const CaseComparison comparison = compare_cases(reference, *observed, stages_);
  std::optional<CaseComparison> noise;
  if (second_) noise = compare_cases(reference, *second_->find(reference.id), stages_);
  const std::vector<Finding> findings = judge_->add(comparison, noise ? &*noise : nullptr);
  if (!findings.empty()) ++n_wrong_;
  if (files_) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    files_->add_case(comparison, findings, seconds.count());
  }
  if (n_done_ < kWatchedCases) watch(reference, *observed);
}

/// Watching must not change the result: the same logits, bit by bit, without a tap.
void ParityRun::watch(const CaseRecord& reference, const CaseRecord& watched) {
  const std::optional<CaseRecord> bare = subject_->unwatched(reference);
  if (!bare) return;
  judge_->note_watched();
  for (std::size_t i = 0; i < watched.questions.size(); ++i) {
    if (bare->questions[i].logits == watched.questions[i].logits) continue;
    add_finding(reference.id, {StageKind::kLogits}, FindingKind::kWatched,
                fmt::format("question {} has other logits when its stages are watched", i));
  }
}

/// Fills in what the judge does not know, prints, and writes the reports.
void ParityRun::publish(Report& report) {
  const std::string version = version_text();
  report.version = version.substr(0, version.find('\n'));
  report.reference = golden_side(golden_);
  report.observed = subject_->side();
  if (second_) report.noise = golden_side(*second_);
  report.gates_sha256 = gates_sha256_;
  if (files_) files_->finish(report);
  const Report shown = options_.redact ? redacted(report) : report;
  Output output = Output::standard_output();
  output.write(report_terminal(shown, wants_color()) +
               (options_.bisect ? report_bisection(shown) : ""));
  output.close();
  if (options_.github) publish_on_github(shown);
}

int ParityRun::run() {
  fix_gates();
  int error_code = kNoRequests;  // of a verdict ERROR
  std::string failure;
  try {
    check_directories();
    judge_cases();
  } catch (const Error& error) {
    error_code = error.kind() == ErrorKind::kDevice ? kEngine : kUnusableInput;
    failure = error.what();
  }
  if (interrupted()) failure = "interrupted";
  Report report = judge_->finish();
  const bool is_passed =
      report.verdict == Verdict::kPass || report.verdict == Verdict::kWithinNoise;
  if (is_passed && report.n_questions < options_.min_questions) {
    report.verdict = Verdict::kError;
    report.reason = fmt::format("only {} questions were compared, {} are wanted",
                                report.n_questions, options_.min_questions);
    report.reason_redacted = report.reason;
  }
  if (!failure.empty()) {
    report.verdict = Verdict::kError;
    report.reason = fmt::format("stopped after {} cases: {}", n_done_, failure);
    report.reason_redacted = fmt::format("stopped after {} cases", n_done_);
  }
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

/// Unusable goldens and checkpoints have an exit status of their own here.
int run_parity(const ParityOptions& options) {
  if (options.self_test) return run_self_test();
  if (options.print_gates) {
    const Gates gates = options.gates_file.empty()
                            ? gate_preset(options.preset.empty() ? "fp32" : options.preset)
                            : parse_gates(map_file(options.gates_file).text(), options.gates_file);
    Output::standard_output().write(gates_json(gates));
    return kOk;
  }
  if (options.golden.empty()) fail(ErrorKind::kUsage, "parity needs --golden DIR");
  if (!options.against.empty() && !options.model.model.empty()) {
    fail(ErrorKind::kUsage, "--against judges a golden, --model an engine: name one of them");
  }
  try {
    return ParityRun(options).run();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput && error.kind() != ErrorKind::kIo) throw;
    log_line(fmt::format("error: {}", error.what()));
    return kUnusableInput;
  }
}

void add_gate_options(CLI::App& command, ParityOptions& options) {
  CLI::Option* preset =
      command.add_option("--preset", options.preset, "fp32, fp32-trained, strict or system1-omni");
  CLI::Option* gates =
      command.add_option("--gates", options.gates_file, "Gates from this JSON file")
          ->excludes(preset);
  preset->excludes(gates);
  command.add_flag("--print-gates", options.print_gates, "Print the gates as JSON and stop");
  command.add_option("--noise", options.noise,
                     "A second golden of the same cases: budgets are multiples of what the two "
                     "references differ by");
  command
      .add_option("--threshold", options.threshold,
                  "Count confidences that cross it; default: the gates', then the adapter's")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--min-questions", options.min_questions,
                     "Fewer questions than this are no pass but an error (exit 5)");
  command.add_option("--stages", options.stages,
                     "Compare only these: a comma list of accept, prompt, tokens, image, "
                     "positions, vision, layer, final_norm, logits, probabilities, decision, "
                     "usage. The first five take no weights");
}

void add_report_options(CLI::App& command, ParityOptions& options) {
  CLI::Option* report = command.add_option(
      "--report", options.report,
      "Write report.json, report.md, report.html, junit.xml, questions.jsonl and gates.json here");
  command.add_flag("--force", options.force, "Overwrite an earlier report")->needs(report);
  command.add_flag("--bisect", options.bisect,
                   "Print the first stage over its budget, overall and by case");
  command.add_flag("--redact", options.redact,
                   "No ids, candidates, quotations and paths in what is printed and written");
  command.add_flag("--github", options.github,
                   "Annotations and a step summary for GitHub Actions, where it is on by itself");
}

}  // namespace

Command add_parity(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "parity", "Prove stage by stage that the engine does what the reference did");
  auto options = std::make_shared<ParityOptions>();
  command->footer(
      "Examples:\n"
      "  jemm parity --golden golden/text-fp32-cpu --model BASE+ADAPTER --report out\n"
      "  jemm parity --golden GOLDEN --noise SECOND --model BASE+ADAPTER --bisect\n"
      "  jemm parity --golden GOLDEN --model BASE --stages accept,prompt,tokens,image,positions\n"
      "  jemm parity --golden A --against B\n"
      "  jemm parity --self-test\n"
      "Exit: 0 PASS or WITHIN-NOISE, 1 DRIFT or FAIL, 2 usage, 3 inputs unusable or of another\n"
      "  checkpoint, 4 engine or device, 5 nothing evaluated, 6 output failed, 130 interrupted");
  command->add_option("--golden", options->golden, "What the reference said");
  add_model_options(*command, options->model);
  command->add_option("--against", options->against, "Judge this golden instead of an engine");
  add_engine_options(*command, options->engine);
  add_gate_options(*command, *options);
  add_report_options(*command, *options);
  command->add_flag("--self-test", options->self_test,
                    "Plant every known fault and show that the judge blames the right stage");
  add_progress_option(*command, options->progress);
  return [options] { return run_parity(*options); };
}

}  // namespace jemm::cli
