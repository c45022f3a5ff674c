#include "bench_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "bench/baseline.h"
#include "bench_environment.h"
#include "bench_floor.h"
#include "bench_workloads.h"
#include "exit_codes.h"
#include "gpu_monitor.h"
#include "output.h"
#include "report_file.h"
#include "signals.h"

namespace jemm::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A mode with what it runs on. Modes that can share weights and engine do.
struct OpenMode {
  Mode mode;
  std::shared_ptr<const Checkpoint> weights;
  std::shared_ptr<Engine> engine;
  EvaluatorOptions evaluator;
};

std::optional<Baseline> open_baseline(const std::string& file) {
  if (file.empty()) return std::nullopt;
  return Baseline(map_file(file).text(), file);
}

std::vector<std::optional<int>> cuda_devices(const std::vector<Mode>& modes) {
  std::vector<std::optional<int>> devices;
  for (const Mode& mode : modes) devices.push_back(cuda_device(mode));
  return devices;
}

std::vector<std::string> model_options(const std::vector<Mode>& modes) {
  std::vector<std::string> models;
  for (const Mode& mode : modes) models.push_back(mode.model.model);
  return models;
}

/// Throws Error(kUsage) for a file to be written that is another file of the command.
void check_files_differ(const BenchOptions& options) {
  const auto check = [](const char* option, const std::string& file, const char* other_option,
                        const std::string& other) {
    if (file.empty() || other.empty() || !is_same_file(file, other)) return;
    fail(ErrorKind::kUsage, "{} {} and {} {} are one file", other_option, other, option, file);
  };
  check("--samples", options.samples, "--json", options.json);
  const std::pair<const char*, const std::string&> written[] = {{"--json", options.json},
                                                                {"--samples", options.samples}};
  for (const auto& [option, file] : written) {
    check(option, file, "--baseline", options.baseline);
    for (const std::string& input : options.inputs) check(option, file, "--input", input);
  }
}

int report_interrupt() {
  log_line("interrupted; nothing is reported");
  return kInterrupted;
}

class BenchRun {
 public:
  explicit BenchRun(const BenchOptions& options);
  int run();

 private:
  void open_modes();
  void open_mode(const Mode& mode);
  Result measure_workload(const BenchWorkload& workload);
  void note(const std::string& workload, std::size_t mode, RunKind kind, RunSample& sample);
  void check_outcome(const BenchWorkload& workload, const RequestSubject& subject) const;
  void add_floors();
  int finish();

  const BenchOptions& options_;
  std::vector<Mode> modes_;
  BenchReport report_;
  std::optional<Baseline> baseline_;
  std::optional<ReportFile> json_;
  std::optional<Output> samples_;
  GpuMonitors gpus_;  // made before any engine: who is there now is somebody else
  ModelFiles model_;
  Encoder encoder_;
  std::vector<OpenMode> open_modes_;
  std::optional<OperationCount> operations_;
  Progress progress_;
  std::uint64_t n_runs_ = 0;
  std::string first_refusal_;
};

BenchRun::BenchRun(const BenchOptions& options)
    : options_(options),
      modes_(make_modes(options.mode, options.compare)),
      report_{.environment = capture_environment(),
              .model = {},
              .limits = options.limits,
              .max_drift = options.max_drift,
              .modes = {},
              .results = {}},
      baseline_(open_baseline(options.baseline)),
      gpus_(cuda_devices(modes_)),
      model_(open_model_files(modes_[0].model)),
      encoder_(open_encoder(model_, modes_[0].model)),
      progress_(options.progress, "runs") {
  check_modes_differ(modes_, model_options(modes_));
  report_.environment.gpu = gpus_.first_facts();
  if (options.floor && !report_.environment.gpu) {
    fail(ErrorKind::kUsage, "--floor needs --device cuda");
  }
  check_files_differ(options);
  if (!options.json.empty()) json_.emplace(options.json, options.force);
  if (!options.samples.empty()) samples_.emplace(Output::create(options.samples, options.force));
}

int BenchRun::run() {
  const std::vector<BenchWorkload> workloads = options_.inputs.empty()
                                                   ? make_sweep(encoder_, options_.sizes)
                                                   : read_workload(options_.inputs);
  open_modes();
  if (baseline_) baseline_->check_same_ground(report_);
  for (const BenchWorkload& workload : workloads) {
    Result result = measure_workload(workload);
    if (interrupted()) break;
    report_.results.push_back(std::move(result));
  }
  if (options_.floor && !interrupted()) add_floors();
  progress_.clear();
  return finish();
}

void BenchRun::open_modes() {
  std::vector<std::string> fingerprints;
  for (const Mode& mode : modes_) {
    const Clock::time_point start = Clock::now();
    open_mode(mode);
    const std::chrono::duration<double, std::milli> load = Clock::now() - start;
    const OpenMode& open = open_modes_.back();
    fingerprints.push_back(open.weights->fingerprint());
    const bool shares_weights =
        std::any_of(open_modes_.begin(), open_modes_.end() - 1,
                    [&](const OpenMode& other) { return other.weights == open.weights; });
    report_.modes.push_back({.name = mode.name,
                             .setup = mode_setup(mode),
                             .weights = fingerprints.back(),
                             .engine = open.engine->fingerprint(),
                             .load_ms = {}});
    if (!shares_weights) report_.modes.back().load_ms = load.count();
  }
  check_modes_differ(modes_, fingerprints);
  const Checkpoint& first = *open_modes_[0].weights;
  operations_.emplace(first.config());
  const std::string& name = modes_[0].model.model;
  report_.model = {.name = name.empty() ? "embedded demonstration checkpoint" : name,
                   .fingerprint = first.fingerprint(),
                   .is_toy = name.empty()};
}

void BenchRun::open_mode(const Mode& mode) {
  OpenMode open{mode, nullptr, nullptr, {}};
  for (const OpenMode& other : open_modes_) {
    if (other.mode.model.model == mode.model.model) open.weights = other.weights;
    if (share_engine(other.mode, mode)) open.engine = other.engine;
  }
  if (open.weights == nullptr) {
    // All modes get the same prompts, so their models must agree about them.
    const bool is_first = open_modes_.empty();
    const ModelFiles files = is_first ? model_ : open_model_files(mode.model);
    if (!is_first && prompt_facts(open_encoder(files, mode.model)) != prompt_facts(encoder_)) {
      fail(ErrorKind::kUsage, "--compare: {} and {} do not take the same prompts",
           modes_[0].model.model, mode.model.model);
    }
    open.weights = open_weights(files, encoder_, mode.model);
  }
  if (open.engine == nullptr) {
    open.engine = open_engine(mode.engine, open.weights, encoder_.label_ids());
  }
  open.evaluator =
      evaluator_options(mode.passes, open.weights->config().text, mode.engine, *open.engine);
  open_modes_.push_back(std::move(open));
}

Result BenchRun::measure_workload(const BenchWorkload& workload) {
  std::vector<RequestSubject> subjects;
  for (const OpenMode& mode : open_modes_) {
    subjects.emplace_back(encoder_, *mode.engine, mode.weights->decision(), mode.evaluator,
                          workload.requests);
  }
  std::vector<Subject*> pointers;
  for (RequestSubject& subject : subjects) pointers.push_back(&subject);
  const MeasureHooks hooks{
      .now_s =
          [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); },
      .stop = [] { return interrupted(); },
      .after_run =
          [&](std::size_t mode, RunKind kind, RunSample& sample) {
            if (kind == RunKind::kFirst) check_outcome(workload, subjects[mode]);
            note(workload.facts.name, mode, kind, sample);
          }};
  Result result{.workload = workload.facts,
                .modes = measure(pointers, options_.limits, hooks),
                .operations = {},
                .floor_ms = std::vector<std::optional<double>>(open_modes_.size())};
  result.workload.n_refused = subjects[0].n_refused();
  if (first_refusal_.empty()) first_refusal_ = subjects[0].first_refusal();
  result.workload.n_questions = subjects[0].n_questions();
  result.workload.n_tokens = subjects[0].n_tokens();
  for (const Series& series : result.modes) {
    result.operations.push_back(operations_->operations(series.first.work));
  }
  return result;
}

/// A sweep's request must be answered, with as many tokens as it was made for.
void BenchRun::check_outcome(const BenchWorkload& workload, const RequestSubject& subject) const {
  if (!options_.inputs.empty()) return;
  if (subject.n_refused() > 0) {
    fail(ErrorKind::kDevice, "{}: {}", workload.facts.name, subject.first_refusal());
  }
  if (subject.n_tokens() != workload.facts.n_tokens) {
    fail(ErrorKind::kInput, "{}: the prompts have {} tokens instead of {}", workload.facts.name,
         subject.n_tokens(), workload.facts.n_tokens);
  }
}

void BenchRun::note(const std::string& workload, std::size_t mode, RunKind kind,
                    RunSample& sample) {
  sample.gpu = gpus_.read(mode);
  if (samples_) samples_->write(sample_json(workload, modes_[mode].name, kind, sample));
  progress_.update(++n_runs_, 0, std::nullopt);
}

/// Behind all that is measured, since the search heats the device.
void BenchRun::add_floors() {
  for (std::size_t i = 0; i < open_modes_.size(); ++i) {
    const std::optional<int> device = cuda_device(open_modes_[i].mode);
    if (!device) continue;
    FloorTimes floor(*device, open_modes_[i].weights->config().text);
    for (Result& result : report_.results) {
      result.floor_ms[i] = floor.ms(result.modes[i].first.work.pass_rows);
    }
  }
}

int BenchRun::finish() {
  if (samples_) samples_->close();
  if (interrupted()) return report_interrupt();
  if (report_.results.empty()) {
    log_line("error: the input holds no requests");
    return kNoRequests;
  }
  const Workload& first = report_.results[0].workload;
  if (first.n_refused == first.n_requests) {
    log_line(fmt::format("error: every request was refused; {}", first_refusal_));
    return kSomeFailed;
  }
  report_.environment.load_after = load_average();
  std::string text = bench_text(report_);
  int code = kOk;
  if (baseline_) {
    const BaselineComparison comparison =
        baseline_->compare(report_, options_.max_slowdown, interrupted);
    text += baseline_text(comparison, options_.max_slowdown, options_.max_drift);
    if (comparison.slowdowns.empty()) code = kNoRequests;
    for (const Slowdown& slowdown : comparison.slowdowns) {
      if (slowdown.is_over || !slowdown.ratio) code = kGateFailed;
    }
  }
  const std::string json = json_ ? bench_json(report_) : "";
  if (interrupted()) return report_interrupt();  // the intervals of many samples take a while
  if (json_) json_->write(json);
  Output::standard_output().write(text);
  if (code == kNoRequests) log_line("error: nothing measured here is in the baseline");
  return code;
}

}  // namespace

int run_bench(const BenchOptions& options) {
  return BenchRun(options).run();
}

}  // namespace jemm::cli
