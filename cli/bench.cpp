// jemm bench: latency and throughput, modes side by side, an earlier run as baseline.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/error.h"
#include "bench_run.h"
#include "commands.h"
#include "validators.h"

namespace jemm::cli {
namespace {

constexpr std::size_t kMostSizes = 256;
constexpr double kLongestSeconds = 86'400;

/// The sweep's options as they are written.
struct SweepText {
  std::string tokens = "128,512";
  std::string questions = "1";
  std::string candidates = "4";
  std::string images = "0";
};

std::vector<PromptSize> parse_sizes(const SweepText& sweep) {
  std::vector<PromptSize> sizes;
  for (const ImageSet& images : parse_images(sweep.images)) {
    for (const std::int64_t n_questions :
         parse_sweep(sweep.questions, {.option = "--questions", .lowest = 1, .highest = 256})) {
      for (const std::int64_t n_candidates :
           parse_sweep(sweep.candidates, {.option = "--candidates", .lowest = 2, .highest = 32})) {
        for (const std::int64_t n_tokens :
             parse_sweep(sweep.tokens, {.option = "--tokens", .lowest = 1, .highest = 8192})) {
          sizes.push_back({n_tokens, n_questions, n_candidates, images});
        }
      }
    }
  }
  if (sizes.size() > kMostSizes) {
    fail(ErrorKind::kUsage, "the sweep has {} sizes, more than {}", sizes.size(), kMostSizes);
  }
  return sizes;
}

void add_sweep_options(CLI::App& command, SweepText& sweep, CLI::Option* input) {
  command
      .add_option("--tokens", sweep.tokens,
                  "Tokens of each prompt: 98,278 or 64-512+64 or 64-4096*2; default 128,512")
      ->excludes(input);
  command
      .add_option("--questions", sweep.questions, "Questions of the request, likewise; default 1")
      ->excludes(input);
  command.add_option("--candidates", sweep.candidates, "Candidates of each question; default 4")
      ->excludes(input);
  command.add_option("--images", sweep.images, "WxH or WxHxN, or 0 for none; default 0")
      ->excludes(input);
}

void add_limit_options(CLI::App& command, BenchOptions& options) {
  options.limits = {.seconds = 2, .n_runs = 0, .n_warm_up = 2};
  CLI::Option* seconds =
      command
          .add_option("--time", options.limits.seconds,
                      "Seconds to measure each size for, with 3 runs at least, with --compare 4 "
                      "of each mode; default 2")
          ->check(number_validator(0, kLongestSeconds));
  command.add_option("--runs", options.limits.n_runs, "Exactly so many runs of each mode instead")
      ->check(CLI::Range(std::size_t{1}, kMostRuns))
      ->excludes(seconds);
  command
      .add_option("--warmup", options.limits.n_warm_up,
                  "Runs behind the first that are not counted; default 2")
      ->check(CLI::Range(0, 1000));
}

void add_file_options(CLI::App& command, BenchOptions& options) {
  command.add_option("--json", options.json, "Write the report with its samples here")
      ->check(not_empty());
  command.add_option("--samples", options.samples, "Write a JSON line a run here, as it is done")
      ->check(not_empty());
  command.add_flag("--force", options.force, "Overwrite these files");
  CLI::Option* baseline =
      command
          .add_option("--baseline", options.baseline,
                      "An earlier --json of the same machine, model and kind of build to compare "
                      "with")
          ->check(not_empty());
  options.max_slowdown = 1.1;
  command
      .add_option("--max-slowdown", options.max_slowdown,
                  "Exit 1 when a median is more than this times the baseline's; default 1.1")
      ->check(number_validator(0.01, 100))
      ->needs(baseline);
}

/// An option beside --compare that sets what --compare sets would be forgotten.
void check_compared_once(const CLI::App& command, const BenchOptions& options) {
  const std::string& compare = options.compare;
  make_modes(options.mode, compare);  // refuses what is no key
  const std::string option = "--" + compared_key(compare);
  const CLI::Option* common = command.get_option_no_throw(option);
  if (common == nullptr || common->count() == 0) return;
  fail(ErrorKind::kUsage, "{} {} and --compare {} set the same: leave {} out", option,
       common->as<std::string>(), compare, option);
}

}  // namespace

Command add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure latency and throughput");
  auto options = std::make_shared<BenchOptions>();
  auto sweep = std::make_shared<SweepText>();
  command->footer(
      "Examples:\n"
      "  jemm bench\n"
      "  jemm bench --model jemm-27b --tokens 128-4096*2 --json today.json\n"
      "  jemm bench --model jemm-27b --tokens 1300 --questions 1,8 --images 1280x800\n"
      "  jemm bench --model jemm-27b --input requests.jsonl --runs 3\n"
      "  jemm bench --model jemm-27b --compare deterministic=off,on\n"
      "  jemm bench --model jemm-27b --input requests.jsonl --compare reuse=off,request,file\n"
      "  jemm bench --compare model=jemm-27b,jemm-27b-merged --max-drift 0.05\n"
      "  jemm bench --model jemm-27b --baseline yesterday.json --max-slowdown 1.05\n"
      "docs/bench.md says what is measured. Exit: 0 measured, 1 slower than the baseline or\n"
      "  other answers, 2 usage or another baseline, 3 every request refused, 4 engine or\n"
      "  unusable files, 5 nothing to measure or compare, 6 input or output, 130 interrupted");
  CLI::Option* input =
      command
          ->add_option("--input", options->inputs,
                       "Answer the requests of these files instead of a sweep: throughput")
          ->check(not_empty());
  add_sweep_options(*command, *sweep, input);
  add_model_options(*command, options->mode.model);
  add_engine_options(*command, options->mode.engine);
  add_pass_options(*command, options->mode.passes);
  command->add_option("--compare", options->compare,
                      "KEY=A,B: run A and B in turn. Keys: " + mode_keys());
  options->max_drift = 0.01;
  command
      ->add_option("--max-drift", options->max_drift,
                   "A speed-up or a ratio to the baseline is given when no probability differs by "
                   "more; default 0.01")
      ->check(share_validator());
  add_limit_options(*command, *options);
  command->add_flag("--floor", options->floor,
                    "Also time the linear products alone, and give times as multiples of them");
  add_file_options(*command, *options);
  add_progress_option(*command, options->progress);
  return [command, options, sweep] {
    check_compared_once(*command, *options);
    if (options->inputs.empty()) options->sizes = parse_sizes(*sweep);
    return run_bench(*options);
  };
}

}  // namespace jemm::cli
