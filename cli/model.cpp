#include "model.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/export_files.h"
#include "cpu/cpu_engine.h"
#include "demo/demo_checkpoint.h"
#include "progress.h"
#include "tokens/framing.h"
#include "validators.h"
#if defined(JEMM_CUDA)
#include "gpu/cuda_engine.h"
#endif

namespace jemm::cli {

void add_tokenizer_options(CLI::App& command, ModelOptions& options) {
  command
      .add_option("--tokenizer-pattern", options.tokenizer_pattern,
                  "Split pattern in place of the one that the tokenizer class implies")
      ->check(choice({"qwen2", "qwen3_5", "file"}));
  command.add_flag("--accept-template", options.accept_template,
                   "Take an unknown chat template to render the known framing");
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  command.add_option("--model", options.model,
                     "A directory made by jemm export; BASE+ADAPTER, two directories in Hugging "
                     "Face form; or synthetic:BASE+ADAPTER[,seed=N]; default: the embedded toy");
  command.add_flag("--trust", options.trust,
                   "Check an export's large files by size and time instead of SHA-256");
  add_tokenizer_options(command, options);
}

std::optional<std::uint32_t> formula_seed(const ModelFiles& model) {
  return model.files.exported == nullptr ? model.spec.synthetic_seed
                                         : model.files.exported->manifest().synthetic_seed;
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
  const ModelSpec& spec = model.spec;
  if (is_export(spec.base) || is_unfinished_export(spec.base)) {
    if (!spec.adapter.empty() || spec.synthetic_seed) {
      fail(ErrorKind::kUsage, "{} is an export, which holds its adapter: --model {}", spec.base,
           spec.base);
    }
    model.files.exported = std::make_shared<const ExportFiles>(spec.base);
    model.files.base = model.files.adapter = model.files.exported;
    return model;
  }
  model.files.base = open_directory(spec.base);
  if (!spec.adapter.empty()) model.files.adapter = open_directory(spec.adapter);
  return model;
}

Encoder open_encoder(const ModelFiles& model, const ModelOptions& options) {
  if (model.files.exported == nullptr) {
    return Encoder(*model.files.base, {{options.tokenizer_pattern}, options.accept_template});
  }
  // The exporter took the template, and perhaps another pattern than the class implies.
  const PromptFacts& recorded = model.files.exported->manifest().prompt;
  const bool byte_level = recorded.tokenizer_pattern != "sentencepiece";
  const bool overridden = !options.tokenizer_pattern.empty() || !byte_level;
  Encoder encoder(*model.files.base,
                  {{overridden ? options.tokenizer_pattern : recorded.tokenizer_pattern}, true});
  PromptFacts facts = prompt_facts(encoder);
  if (overridden) facts.tokenizer_pattern = recorded.tokenizer_pattern;
  if (facts != recorded) {
    fail(ErrorKind::kInput,
         "{} was made for other prompts (labels, framing, tokenizer or token budgets) than those "
         "of this program; export it again",
         model.spec.base);
  }
  return encoder;
}

PromptFacts prompt_facts(const Encoder& encoder) {
  constexpr std::size_t kOnePad[] = {1};
  const Tokenizer::Description& tokenizer = encoder.tokenizer().description();
  return {.label_ids = encoder.label_ids(),
          .text_framing = frame_prompt("{prompt}"),
          .image_framing = frame_prompt("{prompt}", kOnePad),
          .template_sha256 = encoder.template_sha256(),
          .tokenizer_class = tokenizer.tokenizer_class,
          .tokenizer_pattern = tokenizer.pattern,
          .text_token_budget = kTextTokenBudget,
          .image_token_budget = kImageTokenBudget};
}

std::shared_ptr<const Checkpoint> open_weights(const ModelFiles& model, const Encoder& encoder,
                                               const ModelOptions& options) {
  if (model.files.adapter == nullptr) {
    fail(ErrorKind::kUsage,
         "{} is a plain base checkpoint, and answering needs an adapter: --model {}+ADAPTER, or an "
         "export of both",
         model.spec.base, model.spec.base);
  }
  std::shared_ptr<const Checkpoint> checkpoint =
      model.spec.synthetic_seed
          ? open_synthetic(model.files, *model.spec.synthetic_seed)
          : open_checkpoint(model.files, options.trust ? Trust::kSizeAndTime : Trust::kHash);
  const std::string_view mode = lora_mode_name(checkpoint->lora_mode());
  if (!options.lora.empty() && options.lora != mode) {
    fail(ErrorKind::kUsage, "--lora {}: these weights are {}; jemm export --lora makes others",
         options.lora, mode);
  }
  const std::int32_t max_id = encoder.tokenizer().max_id();
  if (max_id >= checkpoint->config().text.vocab_size) {
    fail(ErrorKind::kInput,
         "{}: the tokenizer gives ids up to {}, but config.json's vocab_size is {}",
         model.files.base->name(), max_id, checkpoint->config().text.vocab_size);
  }
  return checkpoint;
}

namespace {

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
  int number = 0;
  if (device != "cuda" &&
      std::from_chars(device.data() + 5, device.data() + device.size(), number).ec != std::errc{}) {
    number = std::numeric_limits<int>::max();  // too long: such a device is not there either
  }
  const Presence found = presence(number);
  if (!found.usable) fail(ErrorKind::kDevice, "--device {}: {}", device, found.reason);
  return number;
}

}  // namespace

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")
      ->check(device_validator())
      ->capture_default_str();
  command
      .add_option("--precision", options.precision,
                  "bf16, with CUDA alone, or fp32; default: what the device is fastest with")
      ->check(choice({"bf16", "fp32"}));
  command.add_flag("--deterministic", options.deterministic,
                   "Answers do not depend on what shares a pass (the CPU's never do)");
  command.add_option("--threads", options.n_threads, "Threads of the CPU engine")
      ->check(CLI::Range(1, kMostThreads))
      ->capture_default_str();
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
         .deterministic = options.deterministic,
         .graphs = options.graphs});
  }
#endif
  return make_cpu_engine(std::move(checkpoint), label_ids, options.n_threads);
}

}  // namespace jemm::cli
