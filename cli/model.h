// --model and the options beside it: from text to open files, checkpoint, encoder and engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "engine/engine.h"
#include "evaluate/encoder.h"

namespace CLI {
class App;
}

namespace jemm::cli {

struct ModelOptions {
  std::string model;  ///< empty: the embedded demonstration checkpoint
  std::string tokenizer_pattern;
  bool accept_template = false;
  bool trust = false;  ///< do not hash an export's large files
  std::string lora;    ///< "", "unmerged" or "merged": what the weights must be
};

/// Adds --model, --trust, --tokenizer-pattern and --accept-template.
void add_model_options(CLI::App& command, ModelOptions& options);
/// Adds the last two of them alone.
void add_tokenizer_options(CLI::App& command, ModelOptions& options);

/// The files that the options name. Throws Error(kUsage), Error(kIo) or, for an export that is not
/// whole, Error(kInput).
struct ModelFiles {
  ModelSpec spec;
  CheckpointFiles files;
};
ModelFiles open_model_files(const ModelOptions& options);
/// The seed of weights from the formula, exported or not; none for others.
std::optional<std::uint32_t> formula_seed(const ModelFiles& model);
/// The embedded demonstration checkpoint, without the warning that a user of it gets.
ModelFiles open_embedded_model();

Encoder open_encoder(const ModelFiles& model, const ModelOptions& options);

/// What a manifest says of a checkpoint's prompts.
PromptFacts prompt_facts(const Encoder& encoder);

/// Opens and checks the weights, that the embedding has a row for every id of the tokenizer and
/// that an export was made for the encoder's prompts. Throws Error(kInput), or Error(kUsage)
/// without an adapter or for weights in another LoRA mode than asked for.
std::shared_ptr<const Checkpoint> open_weights(const ModelFiles& model, const Encoder& encoder,
                                               const ModelOptions& options);

inline constexpr int kMostThreads = 1024;

struct EngineOptions {
  std::string device = "auto";  ///< auto, cpu, cuda or cuda:N
  std::string precision;        ///< bf16 or fp32; empty: bf16 with CUDA, fp32 on the CPU
  bool deterministic = false;
  bool graphs = true;  ///< CUDA: launch passes of few rows that come again as one graph
  int n_threads = static_cast<int>(std::thread::hardware_concurrency());
};

/// Adds --device, --precision, --deterministic and --threads.
void add_engine_options(CLI::App& command, EngineOptions& options);

/// The engine that the options name; auto is CUDA where it is built in and usable, else the CPU.
/// `label_ids`: the head's rows to read. Throws Error(kDevice) when this build or machine lacks the
/// device, Error(kUsage) for BF16 on the CPU.
std::unique_ptr<Engine> open_engine(const EngineOptions& options,
                                    std::shared_ptr<const Checkpoint> checkpoint,
                                    std::span<const std::int32_t, 32> label_ids);
/// What open_engine would take: "cpu" or "cuda:N", and "float32" or "bfloat16".
struct EngineChoice {
  std::string device, dtype;
};
EngineChoice choose_engine(const EngineOptions& options);

}  // namespace jemm::cli
