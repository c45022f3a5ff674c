// jemm export: makes the checked, self-describing directory that --model loads.
#include "checkpoint/export.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/error.h"
#include "commands.h"
#include "exit_codes.h"
#include "model.h"
#include "progress.h"
#include "signals.h"
#include "validators.h"
#include "version.h"

namespace jemm::cli {
namespace {

struct ExportOptions {
  std::string base;
  std::string adapter;
  ModelOptions model;
  std::string out;
  LoraMode lora = LoraMode::kUnmerged;
  bool hugging_face = false;
  bool force = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// Base, adapter and seed of the job, from --base and --adapter or from --model.
void name_sources(const ExportOptions& options, ExportJob& job) {
  if (options.model.model.empty() == options.base.empty() ||
      options.base.empty() != options.adapter.empty()) {
    fail(ErrorKind::kUsage, "name --base and --adapter, or both in --model");
  }
  if (!options.base.empty()) {
    job.base = options.base;
    job.adapter = options.adapter;
    return;
  }
  const ModelSpec spec = parse_model_spec(options.model.model);
  if (spec.adapter.empty()) {
    fail(ErrorKind::kUsage, "{} names no adapter: --model BASE+ADAPTER", options.model.model);
  }
  job.base = spec.base;
  job.adapter = spec.adapter;
  job.synthetic_seed = spec.synthetic_seed;
}

void report(const ExportSummary& summary, const std::string& out) {
  if (summary.already_done) {
    log_line(fmt::format("{} is already the export of these files", out));
    return;
  }
  log_line(
      fmt::format("{}: {} files linked, {} copied, {} written, {} of an earlier run; {:.1f} MB "
                  "written",
                  out, summary.n_linked, summary.n_copied, summary.n_written, summary.n_resumed,
                  static_cast<double>(summary.bytes_written) / 1e6));
}

int run_export(const ExportOptions& options) {
  ExportJob job;
  name_sources(options, job);
  if (options.hugging_face && !job.synthetic_seed) {
    fail(ErrorKind::kUsage, "--hugging-face takes --model synthetic:BASE+ADAPTER");
  }
  job.out = options.out;
  job.lora = options.lora;
  job.start_over = options.force;
  job.exporter = program_version();
  const Encoder encoder(*open_directory(job.base),
                        {{options.model.tokenizer_pattern}, options.model.accept_template});
  job.prompt = prompt_facts(encoder);
  Progress progress(options.progress, "MB");
  job.progress = [&progress](std::uint64_t done, std::uint64_t total) {
    if (interrupted()) fail(ErrorKind::kIo, "interrupted; the same command goes on from here");
    progress.update(done / 1'000'000, 0, static_cast<double>(done) / static_cast<double>(total));
  };
  const ExportSummary summary =
      options.hugging_face ? write_synthetic(job) : export_checkpoint(job);
  progress.clear();
  report(summary, options.out);
  return kOk;
}

}  // namespace

Command add_export(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("export", "Make one checked directory of base and adapter, for --model");
  auto options = std::make_shared<ExportOptions>();
  command->footer(
      "Files that need not change are linked, or copied where that fails. The same command goes "
      "on\n"
      "with an interrupted export.\n"
      "Examples:\n"
      "  jemm export --base Qwen3.8-27B --adapter JEMM --out exported\n"
      "  jemm export --model synthetic:BASE+ADAPTER,seed=1 --out exported\n"
      "Exit: 0 made, 2 usage, 4 checkpoint, 6 input or output, 130 interrupted");
  command->add_option("--base", options->base, "The base model's directory, as downloaded");
  command->add_option("--adapter", options->adapter, "The adapter's directory");
  command->add_option("--model", options->model.model,
                      "Both as BASE+ADAPTER, or synthetic:BASE+ADAPTER[,seed=N] for weights from "
                      "the formula");
  add_tokenizer_options(*command, options->model);
  command->add_option("--out", options->out, "The directory to make")->required();
  add_choice<LoraMode>(*command, "--lora", options->lora,
                       {{"unmerged", LoraMode::kUnmerged}, {"merged", LoraMode::kMerged}},
                       "unmerged: updates stay apart; merged: added to the weights and rounded to "
                       "BF16, which changes answers a little");
  command->add_flag("--hugging-face", options->hugging_face,
                    "With synthetic: write OUT/base and OUT/adapter in Hugging Face form instead");
  command->add_flag("--force", options->force, "Start over in a directory that is not empty");
  add_progress_option(*command, options->progress);
  return [options] { return run_export(*options); };
}

}  // namespace jemm::cli
