// jemm plan: what prefix reuse would save on an input.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "checkpoint/memory_need.h"
#include "commands.h"
#include "evaluate/counting_engine.h"
#include "evaluate/measure_profile.h"
#include "exit_codes.h"
#include "input.h"
#include "model.h"
#include "output.h"
#include "profile.h"
#include "progress.h"
#include "render.h"
#include "reuse.h"
#include "signals.h"

namespace jemm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PlanOptions {
  std::vector<std::string> inputs;
  ModelOptions model;
  EngineOptions engine;
  ReuseOptions reuse;
  std::string profile;
  bool measure = false;
  bool as_json = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// The input, counted once in every mode.
class PlanRun {
 public:
  explicit PlanRun(const PlanOptions& options)
      : options_(options),
        inputs_(options.inputs),
        model_(open_model_files(options.model)),
        encoder_(open_encoder(model_, options.model)),
        config_(read_config()),
        profile_(make_profile()),
        engine_(sizeof(float) * static_cast<std::size_t>(config_.text.hidden_size)),
        progress_(options.progress, "requests") {
    for (std::size_t i = 0; i < kPrefixReuseNames.size(); ++i) {
      EvaluatorOptions mode =
          evaluator_options(options.reuse, static_cast<PrefixReuse>(i), config_.text);
      mode.profile = profile_;
      modes_[i] =
          std::make_unique<Evaluator>(encoder_, engine_, DecisionConfig{1, 1, 0}, mode,
                                      [this, i](RequestResult&& result) { count(i, result); });
    }
  }

  int run() {
    Record record;
    while (!interrupted() && inputs_.next(record, Wait::kYes) == ReadStatus::kLine) {
      take(std::move(record));
    }
    if (interrupted()) return kInterrupted;
    for (const auto& mode : modes_) mode->flush();
    progress_.clear();
    inputs_.explain();
    if (n_requests_ == 0) return kNoRequests;
    if (n_refused_ > 0) log_line(first_refusal_);
    Output output = Output::standard_output();
    output.write(options_.as_json ? report().dump(2) + "\n" : text());
    output.close();
    return n_refused_ == 0 ? kOk : kSomeFailed;
  }

 private:
  ModelConfig read_config() const {
    const FileSource& base = *model_.files.base;
    return parse_model_config(base.open("config.json").text(), base.path("config.json"));
  }

  CostProfile make_profile() const {
    if (!options_.profile.empty()) return read_profile(options_.profile);
    if (!options_.measure) return assumed_profile(config_);
    const std::shared_ptr<const Checkpoint> weights =
        open_weights(model_, encoder_, options_.model);
    const auto engine = open_engine(options_.engine, weights, encoder_.label_ids());
    return measure_profile(*engine, static_cast<std::int64_t>(options_.reuse.batch_tokens));
  }

  void take(Record&& record) {
    const std::vector<std::string> images = take_image_files(record);
    in_flight_.push_back({record.line, record.input_end});
    for (const auto& mode : modes_) {
      if (record.error) {
        mode->refuse(*record.error);
      } else {
        mode->submit(record.body, images);
      }
    }
  }

  void count(std::size_t mode, const RequestResult& result) {
    if (mode != 0) return;
    const Place place = in_flight_.front();
    in_flight_.pop_front();
    ++n_requests_;
    if (result.error && n_refused_++ == 0) {
      first_refusal_ = fmt::format("first refusal: line {}: {}: {}", place.line,
                                   result.error->type(), result.error->what());
    }
    progress_.update(n_requests_, n_refused_, inputs_.fraction(place.input_end));
  }

  const ReuseSummary& summary(PrefixReuse reuse) const {
    return modes_[static_cast<std::size_t>(reuse)]->summary();
  }

  Json report() const;
  std::string text() const;
  std::string memory_text() const;

  /// Of a request in the input.
  struct Place {
    std::uint64_t line;
    std::uint64_t input_end;
  };

  const PlanOptions& options_;
  Inputs inputs_;
  ModelFiles model_;
  Encoder encoder_;
  ModelConfig config_;
  CostProfile profile_;
  CountingEngine engine_;
  Progress progress_;
  std::array<std::unique_ptr<Evaluator>, kPrefixReuseNames.size()> modes_;
  std::uint64_t n_requests_ = 0;
  std::uint64_t n_refused_ = 0;
  std::string first_refusal_;
  std::deque<Place> in_flight_;
};

constexpr std::array<const char*, kPrefixFates> kFateNames = {"shared", "over_batch_budget",
                                                              "short_prefix"};

Json mode_json(const ReuseSummary& summary, const PassMemory& memory) {
  Json fates;
  for (std::size_t i = 0; i < kFateNames.size(); ++i) {
    const ReuseSummary::Fate& fate = summary.fates[i];
    Json largest = Json::array();
    for (const SharedTree& tree : fate.largest) {
      largest.push_back({{"rows", tree.decision.n_rows},
                         {"questions", tree.decision.last - tree.decision.first + 1},
                         {"requests", tree.n_requests},
                         {"first_request", tree.first_request},
                         {"passes", tree.decision.n_passes},
                         {"rows_saved", tree.decision.rows_saved},
                         {"gain_ms", tree.decision.gain_ms},
                         {"why", explain(tree.decision)}});
    }
    fates[kFateNames[i]] = {
        {"beginnings", fate.n}, {"rows", fate.rows_saved}, {"largest", largest}};
  }
  return {{"passes", summary.n_passes},
          {"rows", summary.n_rows()},
          {"rows_computed", summary.rows_computed},
          {"rows_saved", summary.rows_reused},
          {"predicted_ms", summary.predicted_ms},
          {"most_rows", summary.most_rows},
          {"most_segments", summary.most_segments},
          {"state_bytes", static_cast<std::uint64_t>(summary.most_segments) * memory.a_segment},
          {"key_value_bytes", static_cast<std::uint64_t>(summary.most_rows) * memory.a_row},
          {"beginnings", fates}};
}

Json PlanRun::report() const {
  const ReuseSummary& off = summary(PrefixReuse::kOff);
  const PassMemory memory = pass_memory(config_.text, sizeof(float));
  Json modes;
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    modes[std::string(kPrefixReuseNames[i])] = mode_json(modes_[i]->summary(), memory);
  }
  return {{"schema", "jemm-plan/1"},
          {"requests", n_requests_},
          {"refused", n_refused_},
          {"questions", off.n_questions},
          {"rows", off.rows_computed},
          {"batch_tokens", options_.reuse.batch_tokens},
          {"reuse_memory", options_.reuse.memory},
          {"profile", profile_json(profile_)},
          {"modes", modes}};
}

std::string bytes_text(std::uint64_t n) {
  const auto x = static_cast<double>(n);
  return n < 1'000'000       ? fmt::format("{:.1f} kB", x / 1e3)
         : n < 1'000'000'000 ? fmt::format("{:.1f} MB", x / 1e6)
                             : fmt::format("{:.1f} GB", x / 1e9);
}

std::string ms_text(double ms) {
  return ms < 1000 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.1f} s", ms / 1000);
}

std::string trees_text(const ReuseSummary& summary, PrefixFate fate, std::string_view title) {
  const ReuseSummary::Fate& trees = summary[fate];
  if (trees.n == 0) return "";
  std::string text = fmt::format("  {}: {}\n", title, trees.n);
  for (const SharedTree& tree : trees.largest) {
    text += fmt::format(
        "    {} ({}, from request {})\n", explain(tree.decision),
        tree.n_requests == 1 ? "1 request" : fmt::format("{} requests", tree.n_requests),
        tree.first_request);
  }
  return text;
}

std::string PlanRun::memory_text() const {
  const PassMemory memory = pass_memory(config_.text, sizeof(float));
  std::int64_t most_segments = 0, most_rows = 0;
  for (const auto& mode : modes_) {
    most_segments = std::max(most_segments, mode->summary().most_segments);
    most_rows = std::max(most_rows, mode->summary().most_rows);
  }
  return fmt::format(
      "Memory of a pass, one layer at a time: {} recurrent states of {}, {} in all (bound: {}),\n"
      "  keys and values of {} rows {}\n",
      most_segments, bytes_text(memory.a_segment),
      bytes_text(static_cast<std::uint64_t>(most_segments) * memory.a_segment),
      bytes_text(options_.reuse.memory), most_rows,
      bytes_text(static_cast<std::uint64_t>(most_rows) * memory.a_row));
}

std::string PlanRun::text() const {
  const ReuseSummary& off = summary(PrefixReuse::kOff);
  std::string text = fmt::format(
      "{} requests ({} refused), {} questions, {} rows; at most {} rows a pass\n"
      "Costs: {}\n\n{:<8} {:>8} {:>14} {:>12} {:>7} {:>11}\n",
      n_requests_, n_refused_, off.n_questions, off.rows_computed, options_.reuse.batch_tokens,
      profile_.origin, "reuse", "passes", "rows computed", "rows saved", "", "predicted");
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    const ReuseSummary& mode = modes_[i]->summary();
    text += fmt::format("{:<8} {:>8} {:>14} {:>12} {:>6.1f}% {:>11}\n", kPrefixReuseNames[i],
                        mode.n_passes, mode.rows_computed, mode.rows_reused,
                        100 * static_cast<double>(mode.rows_reused) /
                            static_cast<double>(std::max<std::int64_t>(mode.n_rows(), 1)),
                        ms_text(mode.predicted_ms));
  }
  for (const PrefixReuse reuse : {PrefixReuse::kRequest, PrefixReuse::kFile}) {
    text += fmt::format("\n{}\n", prefix_reuse_name(reuse));
    text += trees_text(summary(reuse), PrefixFate::kShared, "shared beginnings");
    text += trees_text(summary(reuse), PrefixFate::kSharedInParts,
                       "over the batch budget, so computed several times");
    text += trees_text(summary(reuse), PrefixFate::kShortPrefix, "left alone");
  }
  return text + "\n" + memory_text();
}

}  // namespace

Command add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "Show what prefix reuse would save on an input, without weights");
  auto options = std::make_shared<PlanOptions>();
  command->footer(
      "Examples:\n"
      "  jemm plan requests.jsonl\n"
      "  jemm plan --model BASE --batch-tokens 8192 --json requests.jsonl\n"
      "  jemm plan --model BASE+ADAPTER --measure --json requests.jsonl > plan.json\n"
      "  jemm plan --model BASE --profile profile.json requests.jsonl\n"
      "Exit: 0 planned, 2 usage, 3 some requests would be refused, 4 checkpoint, profile or\n"
      "  engine, 5 no requests, 6 input or output, 130 interrupted");
  command->add_option("INPUT", options->inputs,
                      "JSON-lines files, directories of fixtures, or - for standard input");
  add_model_options(*command, options->model);
  add_engine_options(*command, options->engine);
  add_pass_options(*command, options->reuse);
  CLI::Option* measure = command->add_flag(
      "--measure", options->measure, "Time the engine (needs the weights) instead of guessing");
  command
      ->add_option("--profile", options->profile,
                   "Costs from a file: an earlier --json, or its \"profile\"")
      ->excludes(measure);
  command->add_flag("--json", options->as_json, "JSON instead of text");
  add_progress_option(*command, options->progress);
  return [options] { return PlanRun(*options).run(); };
}

}  // namespace jemm::cli
