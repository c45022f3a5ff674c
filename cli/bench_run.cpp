#include "bench_run.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/new_file.h"
#include "bench/baseline.h"
#include "bench_environment.h"
#include "bench_floor.h"
#include "bench_workloads.h"
#include "evaluate/measure_profile.h"
#include "exit_codes.h"
#include "gpu_monitor.h"
#include "output.h"
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

/// Of the first mode's GPU that has one.
std::unique_ptr<GpuMonitor> watch_gpu(const std::vector<Mode>& modes) {
  for (const Mode& mode : modes) {
    if (const std::optional<int> device = cuda_device(mode)) {
      return std::make_unique<GpuMonitor>(*device);
    }
  }
  return nullptr;
}

/// As decide has them.
EvaluatorOptions make_evaluator_options(const Mode& mode, const Checkpoint& weights,
                                        Engine& engine) {
  EvaluatorOptions options =
      evaluator_options(mode.passes, mode.passes.mode, weights.config().text);
  if (options.reuse != PrefixReuse::kOff && cuda_device(mode)) {
    options.profile = measure_profile(engine, static_cast<std::int64_t>(options.batch_tokens));
  }
  return options;
}

class BenchRun {
 public:
  explicit BenchRun(const BenchOptions& options);
  int run();

 private:
  void open_modes();
  void open_mode(const Mode& mode);
  Result measure_workload(const BenchWorkload& workload);
  void note(const std::string& workload, std::size_t mode, RunKind kind, Sample& sample);
  void check_outcome(const BenchWorkload& workload, const RequestSubject& subject) const;
  void add_floors();
  int finish();

  const BenchOptions& options_;
  std::vector<Mode> modes_;
  BenchReport report_;
  std::optional<Baseline> baseline_;
  std::optional<Output> samples_;
  std::unique_ptr<GpuMonitor> gpu_;  // made before any engine: who is there now is somebody else
  ModelFiles model_;
  Encoder encoder_;
  std::vector<OpenMode> open_modes_;
  std::optional<OperationCount> operations_;
  Progress progress_;
  std::uint64_t n_runs_ = 0;
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
      gpu_(watch_gpu(modes_)),
      model_(open_model_files(modes_[0].model)),
      encoder_(open_encoder(model_, modes_[0].model)),
      progress_(options.progress, "runs") {
  check_modes_differ(modes_);
  if (gpu_ != nullptr) report_.environment.gpu = gpu_->facts();
  if (options.floor && gpu_ == nullptr) fail(ErrorKind::kUsage, "--floor needs --device cuda");
  for (const std::string& file : {options.json, options.samples}) {
    if (!options.force && std::filesystem::exists(file)) {
      fail(ErrorKind::kUsage, "{} exists; --force overwrites it", file);
    }
  }
}

int BenchRun::run() {
  const std::vector<BenchWorkload> workloads = options_.inputs.empty()
                                                   ? make_sweep(encoder_, options_.sizes)
                                                   : read_workload(options_.inputs);
  open_modes();
  if (baseline_) baseline_->check_same_ground(report_);
  if (!options_.samples.empty()) {
    samples_.emplace(Output::create(options_.samples, options_.force));
  }
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
  for (const Mode& mode : modes_) {
    const Clock::time_point start = Clock::now();
    open_mode(mode);
    const std::chrono::duration<double, std::milli> load = Clock::now() - start;
    report_.modes.push_back({.name = mode.name,
                             .setup = mode_setup(mode),
                             .weights = open_modes_.back().weights->fingerprint(),
                             .engine = open_modes_.back().engine->fingerprint(),
                             .load_ms = load.count()});
  }
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
  open.evaluator = make_evaluator_options(mode, *open.weights, *open.engine);
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
          [&](std::size_t mode, RunKind kind, Sample& sample) {
            if (kind == RunKind::kFirst) check_outcome(workload, subjects[mode]);
            note(workload.facts.name, mode, kind, sample);
          }};
  Result result{.workload = workload.facts,
                .modes = measure(pointers, options_.limits, hooks),
                .operations = {},
                .floor_ms = std::vector<std::optional<double>>(open_modes_.size())};
  result.workload.n_refused = subjects[0].n_refused();
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

void BenchRun::note(const std::string& workload, std::size_t mode, RunKind kind, Sample& sample) {
  if (gpu_ != nullptr) sample.gpu = gpu_->read();
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
  if (interrupted()) {
    log_line("interrupted; nothing is reported");
    return kInterrupted;
  }
  if (report_.results.empty()) {
    log_line("error: the input holds no requests");
    return kNoRequests;
  }
  const Workload& first = report_.results[0].workload;
  if (first.n_refused == first.n_requests) {
    log_line("error: every request was refused");
    return kSomeFailed;
  }
  report_.environment.load_after = load_average();
  std::string text = bench_text(report_);
  int code = kOk;
  if (baseline_) {
    const BaselineComparison comparison = baseline_->compare(report_, options_.max_slowdown);
    text += baseline_text(comparison, options_.max_slowdown);
    if (comparison.slowdowns.empty()) code = kNoRequests;
    for (const Slowdown& slowdown : comparison.slowdowns) {
      if (slowdown.is_over) code = kGateFailed;
    }
  }
  Output::standard_output().write(text);
  if (!options_.json.empty()) write_new_file(options_.json, bench_json(report_));
  if (code == kNoRequests) log_line("error: nothing measured here is in the baseline");
  return code;
}

}  // namespace

int run_bench(const BenchOptions& options) {
  return BenchRun(options).run();
}

}  // namespace jemm::cli
