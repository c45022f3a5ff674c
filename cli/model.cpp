#include "model.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "base/error.h"
#include "cpu/cpu_engine.h"
#include "demo/demo_checkpoint.h"
#include "progress.h"

namespace jemm::cli {

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--model", options.model,
                     "BASE+ADAPTER, two directories in Hugging Face form; or "
                     "synthetic:BASE+ADAPTER[,seed=N]; default: the embedded toy");
  command
      .add_option("--tokenizer-pattern", options.tokenizer_pattern,
                  "Split pattern in place of the one that the tokenizer class implies")
      ->check(CLI::IsMember({"qwen2", "qwen3_5", "file"}));
  command.add_flag("--accept-template", options.accept_template,
                   "Take an unknown chat template to render the known framing");
}

ModelFiles open_embedded_model() {
  return {.spec = {}, .files = demo_checkpoint_files()};
}

ModelFiles open_model_files(const ModelOptions& options) {
  ModelFiles model;
  if (options.model.empty()) {
    model = open_embedded_model();
    log_line(
        "warning: no --model, so this is the embedded demonstration checkpoint: a toy trained on a "
        "handful of task kinds");
    return model;
  }
  model.spec = parse_model_spec(options.model);
  model.files.base = open_directory(model.spec.base);
  if (!model.spec.adapter.empty()) model.files.adapter = open_directory(model.spec.adapter);
  return model;
}

Encoder open_encoder(const ModelFiles& model, const ModelOptions& options) {
  return Encoder(*model.files.base, {{options.tokenizer_pattern}, options.accept_template});
}

std::shared_ptr<const Checkpoint> open_weights(const ModelFiles& model,
                                               const Tokenizer& tokenizer) {
  if (model.files.adapter == nullptr) {
    fail(ErrorKind::kUsage, "answering needs an adapter: --model {}+ADAPTER", model.spec.base);
  }
  std::shared_ptr<const Checkpoint> checkpoint =
      model.spec.synthetic_seed ? open_synthetic(model.files, *model.spec.synthetic_seed)
                                : open_checkpoint(model.files);
  if (tokenizer.max_id() >= checkpoint->config().text.vocab_size) {
    fail(ErrorKind::kInput,
         "{}: the tokenizer gives ids up to {}, but config.json's vocab_size is {}",
         model.files.base->name(), tokenizer.max_id(), checkpoint->config().text.vocab_size);
  }
  return checkpoint;
}

std::unique_ptr<Engine> open_engine(const std::string& device,
                                    std::shared_ptr<const Checkpoint> checkpoint,
                                    std::span<const std::int32_t, 32> label_ids, int n_threads) {
  if (device != "auto" && device != "cpu") {
    fail(ErrorKind::kDevice, "--device {}: this build has no CUDA engine", device);
  }
  return make_cpu_engine(std::move(checkpoint), label_ids, n_threads);
}

}  // namespace jemm::cli
