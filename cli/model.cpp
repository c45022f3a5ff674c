#include "model.h"

#include <CLI/CLI.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/cpu_engine.h"
#include "demo/demo_checkpoint.h"
#include "progress.h"
#if defined(JEMM_CUDA)
#include "gpu/cuda_engine.h"
#endif

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

namespace {

/// "" for a device that could exist, else the fault.
std::string check_device(const std::string& text) {
  const bool numbered = text.size() > 5 && text.size() < 10 && text.starts_with("cuda:") &&
                        text.find_first_not_of("0123456789", 5) == std::string::npos;
  if (text == "auto" || text == "cpu" || text == "cuda" || numbered) return "";
  return "no such device: " + text;
}

struct Presence {
  bool usable = false;
  std::string reason;
};

Presence presence(int device) {
#if defined(JEMM_CUDA)
  const CudaPresence found = cuda_presence(device);
  return {found.usable, found.reason};
#else
  static_cast<void>(device);
  return {false, "this build has no CUDA engine"};
#endif
}

/// The number behind cuda; the CPU is -1. Throws Error(kDevice) for a device that is not there.
int device_number(const std::string& device) {
  if (device == "cpu") return -1;
  if (device == "auto") return presence(0).usable ? 0 : -1;
  const int number = device == "cuda" ? 0 : std::stoi(device.substr(5));
  const Presence found = presence(number);
  if (!found.usable) fail(ErrorKind::kDevice, "--device {}: {}", device, found.reason);
  return number;
}

}  // namespace

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")
      ->check(CLI::Validator(check_device, "DEVICE"));
  command
      .add_option("--precision", options.precision,
                  "bf16, with CUDA alone, or fp32; default: what the device is fastest with")
      ->check(CLI::IsMember({"bf16", "fp32"}));
  command.add_flag("--deterministic", options.deterministic,
                   "Answers do not depend on what shares a pass (the CPU's never do)");
  command.add_option("--threads", options.n_threads, "Threads of the CPU engine")
      ->check(CLI::Range(1, 1024));
}

EngineChoice choose_engine(const EngineOptions& options) {
  const int device = device_number(options.device);
  if (device < 0) {
    if (options.precision == "bf16") {
      fail(ErrorKind::kUsage, "--precision bf16: the CPU engine computes in fp32");
    }
    return {"cpu", "float32"};
  }
  return {fmt::format("cuda:{}", device), options.precision == "fp32" ? "float32" : "bfloat16"};
}

std::unique_ptr<Engine> open_engine(const EngineOptions& options,
                                    std::shared_ptr<const Checkpoint> checkpoint,
                                    std::span<const std::int32_t, 32> label_ids) {
  const EngineChoice choice = choose_engine(options);
#if defined(JEMM_CUDA)
  if (choice.device != "cpu") {
    return make_cuda_engine(
        std::move(checkpoint), label_ids,
        {.device = std::stoi(choice.device.substr(5)),
         .precision = choice.dtype == "float32" ? Precision::kFp32 : Precision::kBf16,
         .deterministic = options.deterministic});
  }
#endif
  return make_cpu_engine(std::move(checkpoint), label_ids, options.n_threads);
}

}  // namespace jemm::cli
