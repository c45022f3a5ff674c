// jemm encode: what the model will see, without weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "exit_codes.h"
#include "input.h"
#include "judge/golden_writer.h"
#include "model.h"
#include "observer.h"
#include "output.h"
#include "progress.h"
#include "render.h"
#include "signals.h"

namespace jemm::cli {
namespace {

struct EncodeOptions {
  std::vector<std::string> inputs;
  ModelOptions model;
  std::string out;
  bool force = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// Writes the line of one request; returns false when the pipe is closed, throws when refused.
bool write_encoded(const Encoder& encoder, const Record& record, Output& output) {
  // A body of few bytes can ask many questions about a long state. Past this size a line is not
  // held: the remaining questions are checked first, then rendered again as they are written.
  constexpr std::size_t kMaxHeldBytes = std::size_t{1} << 24;
  if (record.error) throw *record.error;
  StageTimes times;  // not shown
  ImageCache no_cache(0);
  EncodedRequest request =
      encoder.open(record.body, read_image_files(record), ImageHashes::kCompute, no_cache, times);
  const std::size_t n_questions = request.request.question_count();
  std::string text = fmt::format(R"({{"id":{},"status":"ok","questions":[)", record.id);
  const auto add = [&](std::size_t i) {
    if (i > 0) text += ',';
    text += record_json(question_record(encoder.encode(request, i, times)));
  };
  std::size_t n_held = 0;
  while (n_held < n_questions && text.size() < kMaxHeldBytes) add(n_held++);
  for (std::size_t i = n_held; i < n_questions; ++i) encoder.encode(request, i, times);
  for (std::size_t i = n_held; i < n_questions; ++i) {
    if (!output.write(text)) return false;
    text.clear();
    add(i);
  }
  text += ']';
  if (!request.images.empty()) {
    std::vector<std::string> images;
    for (const EncodedImagePtr& image : request.images) {
      images.push_back(record_json(image_record(*image, ImageHashes::kCompute)));
    }
    text += fmt::format(R"(,"images":[{}])", fmt::join(images, ","));
  }
  return output.write(text + "}\n");
}

int run_encode(const EncodeOptions& options) {
  Inputs inputs(options.inputs);
  const ModelFiles model = open_model_files(options.model);
  const Encoder encoder = open_encoder(model, options.model);
  Output output = open_output(options.out, options.force, inputs);
  Progress progress(options.progress, "requests");
  std::uint64_t n_done = 0;
  std::uint64_t n_failed = 0;
  bool open = true;
  Record record;
  while (open && !interrupted() && inputs.next(record, Wait::kYes) == ReadStatus::kLine) {
    try {
      open = write_encoded(encoder, record, output);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kRequest) throw;
      ++n_failed;
      open = output.write(fmt::format(R"({{"id":{},"status":"error","http":{},"error":{}}})"
                                      "\n",
                                      record.id, kRefusedHttp, error_json(error)));
    }
    progress.update(++n_done, n_failed, inputs.fraction(record.input_end));
  }
  output.close();
  progress.clear();
  if (interrupted()) return kInterrupted;
  inputs.explain();
  if (n_failed > 0) {
    log_line(fmt::format("{} of {} requests were refused", n_failed, n_done));
    return kSomeFailed;
  }
  return n_done == 0 ? kNoRequests : kOk;
}

}  // namespace

Command add_encode(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("encode", "Show prompts and token ids: what the model will see");
  auto options = std::make_shared<EncodeOptions>();
  command->footer(
      "Examples:\n"
      "  jemm encode --model BASE requests.jsonl > encoded.jsonl\n"
      "Exit: 0 all encoded, 2 usage, 3 some were refused, 4 checkpoint, 5 no requests,\n"
      "  6 input or output, 130 interrupted");
  command->add_option("INPUT", options->inputs,
                      "JSON-lines files, directories of fixtures, or - for standard input");
  add_model_options(*command, options->model);
  CLI::Option* out = command->add_option("--out", options->out, "Write to this new file");
  command->add_flag("--force", options->force, "Overwrite the file of --out")->needs(out);
  add_progress_option(*command, options->progress);
  return [options] { return run_encode(*options); };
}

}  // namespace jemm::cli
