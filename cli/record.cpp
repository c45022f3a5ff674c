// jemm record: what this engine answers, as a golden that another engine can be judged by.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/input_hashes.h"
#include "commands.h"
#include "contract/json_members.h"
#include "exit_codes.h"
#include "input.h"
#include "judge/golden.h"
#include "judge/golden_writer.h"
#include "model.h"
#include "observer.h"
#include "progress.h"
#include "signals.h"
#include "version.h"

namespace jemm::cli {
namespace {

struct RecordOptions {
  std::vector<std::string> inputs;
  std::string golden;
  ModelOptions model;
  EngineOptions engine;
  std::string out;
  bool force = false;
  bool no_stages = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// A request of the input as a case that is still to be answered.
CaseRecord open_case(Record&& record) {
  CaseRecord request;
  request.id = record.id.starts_with('"') ? json_string_value(record.id) : record.id;
  if (record.error) {
    fail(ErrorKind::kInput, "line {} is no request: {}", record.line, record.error->what());
  }
  if (!record.image_files.empty()) {
    fail(ErrorKind::kInput,
         "line {} names image files; a golden holds bodies, with their images in them",
         record.line);
  }
  request.body = std::move(record.body);
  return request;
}

/// Requests of the inputs, or of another golden.
class Requests {
 public:
  explicit Requests(const RecordOptions& options) {
    if (options.golden.empty()) {
      inputs_.emplace(options.inputs);
    } else {
      golden_.emplace(options.golden);
    }
  }

  /// False behind the last one.
  bool next(CaseRecord& request) {
    if (golden_) {
      CaseRecord other;
      if (!golden_->next(other)) return false;
      request = {};
      request.id = std::move(other.id);
      request.body = std::move(other.body);
      return true;
    }
    Record record;
    if (inputs_->next(record, Wait::kYes) != ReadStatus::kLine) return false;
    request = open_case(std::move(record));
    return true;
  }
  std::optional<double> fraction_read(std::uint64_t n_done) const {
    if (inputs_) return inputs_->fraction_read();
    return static_cast<double>(n_done) / static_cast<double>(golden_->n_cases());
  }

 private:
  std::optional<Inputs> inputs_;
  std::optional<Golden> golden_;
};

int run_record(const RecordOptions& options) {
  Requests requests(options);
  const ModelFiles model = open_model_files(options.model);
  const Encoder encoder = open_encoder(model, options.model);
  const auto weights = open_weights(model, encoder, options.model);
  const EngineChoice choice = choose_engine(options.engine);
  const auto engine = open_engine(options.engine, weights, encoder.label_ids());
  const Observer observer(
      {.encoder = encoder, .engine = engine.get(), .decision = weights->decision()});
  GoldenWriter writer(options.out, options.force);
  Progress progress(options.progress, "requests");
  std::uint64_t n_done = 0, n_refused = 0;
  CaseRecord request;
  while (!interrupted() && requests.next(request)) {
    CaseRecord answered =
        observer.observe(request, StageSet::all(), {.every_stage = !options.no_stages});
    answered.body = request.body;
    if (answered.error) {
      ++n_refused;
    } else if (!answered.response) {
      fail(ErrorKind::kDevice, "request {} has logits that are not finite", request.id);
    }
    writer.add(answered);
    ++n_done;
    progress.update(n_done, n_refused, requests.fraction_read(n_done));
  }
  progress.clear();
  if (interrupted()) return kInterrupted;
  if (n_done == 0) {
    log_line("error: the input holds no requests");
    return kNoRequests;
  }
  GoldenWriter::Source source{
      .dtype = choice.dtype,
      .device = choice.device,
      .versions = {{"jemm", program_version()}, {"engine", engine->fingerprint()}},
      .checkpoint_sha256 = input_hashes(model.files, input_names(model.files)),
      .synthetic_seed = {}};
  if (const auto seed = formula_seed(model)) source.synthetic_seed = *seed;
  writer.finish(source);
  log_line(fmt::format("recorded {} requests, {} of them refused", n_done, n_refused));
  return kOk;
}

}  // namespace

Command add_record(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("record", "Record what this engine answers as a golden for jemm parity");
  auto options = std::make_shared<RecordOptions>();
  command->footer(
      "Examples:\n"
      "  jemm record --device cpu --model BASE+ADAPTER --out golden/cpu requests.jsonl\n"
      "  jemm parity --golden golden/cpu --model BASE+ADAPTER --device cuda --precision fp32\n"
      "Exit: 0 recorded, 2 usage, 4 checkpoint, input or engine, 5 no requests,\n"
      "  6 input or output, 130 interrupted (no file is left)");
  CLI::Option* input =
      command->add_option("INPUT", options->inputs,
                          "JSON-lines files, directories of fixtures, or - for standard input");
  command->add_option("--golden", options->golden, "Answer the requests of this golden instead")
      ->excludes(input);
  add_model_options(*command, options->model);
  add_engine_options(*command, options->engine);
  command->add_option("--out", options->out, "The golden's directory, made when absent")
      ->required();
  command->add_flag("--force", options->force, "Overwrite a golden that is there");
  command->add_flag("--no-stages", options->no_stages,
                    "Leave out stages.safetensors: layers, final norm and vision rows");
  add_progress_option(*command, options->progress);
  return [options] { return run_record(*options); };
}

}  // namespace jemm::cli
