// jemm record: what this engine answers, as a golden that another engine can be judged by.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/utf8.h"
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

/// The body with image files behind its own images. Of two equal keys the last one counts, so the
/// new list can stand at the end. Throws Error::request for a body that takes none.
std::string with_images(const std::string& body, const std::vector<std::string>& image_files) {
  if (image_files.empty()) return body;
  constexpr std::string_view kImages[] = {"images"};
  std::vector<std::string> images;
  const std::vector<JsonMember> own = json_members(body, kImages);
  if (!own.empty() && own.back().value != "null") {
    for (const std::string_view image : json_elements(own.back().value)) images.emplace_back(image);
  }
  for (const std::string& file : image_files) {
    images.push_back(fmt::format("\"{}\"", encode_base64(file)));
  }
  return fmt::format("{},\"images\":[{}]}}", body.substr(0, body.rfind('}')),
                     fmt::join(images, ","));
}

/// Requests of the inputs, or of another golden.
class Requests {
 public:
  /// Throws Error(kUsage) when the output would replace what is read.
  explicit Requests(const RecordOptions& options) {
    if (options.golden.empty()) {
      inputs_.emplace(options.inputs);
    } else {
      golden_.emplace(options.golden);
    }
    std::error_code ignored;
    const bool is_golden = std::filesystem::equivalent(options.golden, options.out, ignored);
    if (is_golden || (inputs_ && inputs_->include(options.out + "/cases.jsonl"))) {
      fail(ErrorKind::kUsage, "--out {} is also the input; name another directory", options.out);
    }
  }

  /// False behind the last one. Lines that a golden cannot hold are named and left out.
  bool next(CaseRecord& request) {
    request = {};
    if (golden_) {
      CaseRecord other;
      if (!golden_->next(other)) return false;
      request.id = std::move(other.id);
      request.body = std::move(other.body);
      ++n_read_;
      return true;
    }
    Record record;
    while (inputs_->next(record, Wait::kYes) == ReadStatus::kLine) {
      ++n_read_;
      const std::string reason = open_case(record, request);
      if (reason.empty()) return true;
      ++n_left_out_;
      log_line(fmt::format("line {} is left out: {}", record.line, reason));
    }
    return false;
  }

  std::optional<double> fraction() const {
    if (inputs_) return inputs_->fraction(input_end_);
    return static_cast<double>(n_read_) / static_cast<double>(golden_->n_cases());
  }
  std::uint64_t n_left_out() const { return n_left_out_; }
  void explain() const {
    if (inputs_) inputs_->explain();
  }

 private:
  /// The record as a case that is still to be answered, or why it cannot be one.
  std::string open_case(Record& record, CaseRecord& request) {
    input_end_ = record.input_end;
    const std::vector<std::string> image_files = take_image_files(record);
    if (record.error) return record.error->what();
    try {
      request.body = with_images(record.body, image_files);
    } catch (const Error& error) {
      return error.what();
    }
    request.id = record.id.starts_with('"') ? json_string_value(record.id) : record.id;
    if (request.id.empty()) return "its id is empty";
    if (!is_utf8(request.id)) return "its id holds a lone surrogate";
    const auto [first, is_new] = lines_.emplace(request.id, record.line);
    if (is_new) return "";
    return fmt::format("it repeats the id {} of line {}", record.id, first->second);
  }

  std::optional<Inputs> inputs_;
  std::optional<Golden> golden_;
  std::map<std::string, std::uint64_t> lines_;  ///< of the ids
  std::uint64_t input_end_ = 0;                 ///< of the request returned last
  std::uint64_t n_read_ = 0;
  std::uint64_t n_left_out_ = 0;
};

int run_record(const RecordOptions& options) {
  Requests requests(options);
  GoldenWriter writer(options.out, options.force);
  const ModelFiles model = open_model_files(options.model);
  const Encoder encoder = open_encoder(model, options.model);
  const auto weights = open_weights(model, encoder, options.model);
  const EngineChoice choice = choose_engine(options.engine);
  const auto engine = open_engine(options.engine, weights, encoder.label_ids());
  const Observer observer(
      {.encoder = encoder, .engine = engine.get(), .decision = weights->decision()});
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
    progress.update(n_done, n_refused, requests.fraction());
  }
  progress.clear();
  if (interrupted()) return kInterrupted;
  requests.explain();
  if (n_done + requests.n_left_out() == 0) return kNoRequests;
  if (n_refused == n_done) {
    log_line("error: every request was refused, so no golden is written");
    return kSomeFailed;
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
  if (requests.n_left_out() == 0) return kOk;
  log_line(fmt::format("{} lines were left out", requests.n_left_out()));
  return kSomeFailed;
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
      "Exit: 0 recorded, 2 usage, 3 lines were left out or every request was refused,\n"
      "  4 checkpoint, golden or engine, 5 no requests, 6 a file cannot be read or written,\n"
      "  130 interrupted (nothing is written, an earlier golden stays)");
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
