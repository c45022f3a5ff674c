// jemm decide: answers requests in bulk.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"
#include "commands.h"
#include "evaluate/evaluator.h"
#include "exit_codes.h"
#include "input.h"
#include "model.h"
#include "output.h"
#include "progress.h"
#include "render.h"
#include "resume.h"
#include "reuse.h"
#include "signals.h"
#include "validators.h"

namespace jemm::cli {
namespace {

struct Shard {
  std::uint64_t index = 1;  ///< from 1
  std::uint64_t count = 1;
};

struct DecideOptions {
  std::vector<std::string> inputs;
  ModelOptions model;
  EngineOptions engine;
  ReuseOptions reuse;
  std::optional<double> threshold;
  std::optional<double> fail_on_undecided;
  std::uint64_t max_errors = 0;  ///< 0: no limit
  bool fail_fast = false;
  Shard shard;
  std::string out;
  bool force = false;
  bool resume = false;
  bool as_text = false;
  ProgressMode progress = ProgressMode::kAuto;
};

/// A request between reading and writing.
struct Ticket {
  std::string id;
  std::uint64_t line = 0;
  std::string request_sha256;
  std::uint64_t input_end = 0;
};

/// One run of decide: reads records, has them answered, writes what comes back.
class DecideRun {
 public:
  explicit DecideRun(const DecideOptions& options)
      : options_(options),
        inputs_(open_inputs()),
        model_(open_model_files(options.model)),
        encoder_(open_encoder(model_, options.model)),
        weights_(open_weights(model_, encoder_, options.model)),
        engine_(open_engine(options.engine, weights_, encoder_.label_ids())),
        threshold_(options.threshold.value_or(weights_->decision().threshold)),
        fingerprint_(make_fingerprint()),
        output_(options.resume ? Output::resume(options.out)
                               : open_output(options.out, options.force, inputs_)),
        progress_(options.progress, "requests"),
        evaluator_(encoder_, *engine_, weights_->decision(), make_evaluator_options(),
                   [this](RequestResult&& result) { write(std::move(result)); }) {
    if (options.resume) answered_.emplace(options.out);
  }

  int run() {
    read_all();
    output_.close();
    progress_.clear();
    return summarise();
  }

 private:
  Inputs open_inputs() const;
  std::string make_fingerprint() const;
  EvaluatorOptions make_evaluator_options();
  void read_all();
  ReadStatus next(Record& record);
  void take(Record&& record);
  bool already_answered(const Ticket& ticket);
  void check_no_answers_left();
  void write(RequestResult&& result);
  void note_failure();
  int summarise() const;

  const DecideOptions& options_;
  Inputs inputs_;
  ModelFiles model_;
  Encoder encoder_;
  std::shared_ptr<const Checkpoint> weights_;
  std::unique_ptr<Engine> engine_;
  double threshold_;
  std::string fingerprint_;
  Output output_;
  Progress progress_;
  Evaluator evaluator_;
  std::optional<AnsweredLines> answered_;  ///< set while earlier lines may be left
  std::deque<Ticket> tickets_;
  std::uint64_t n_read_ = 0;  ///< records of all shards
  std::uint64_t n_done_ = 0;
  std::uint64_t n_kept_ = 0;  ///< of them, answered by an earlier run
  std::uint64_t n_failed_ = 0;
  std::uint64_t n_questions_ = 0;
  std::uint64_t n_undecided_ = 0;
  AuditTally audits_;
  bool stopped_ = false;  ///< nothing more is written
};

Inputs DecideRun::open_inputs() const {
  Inputs inputs(options_.inputs);
  if (options_.resume) {
    check_not_input(options_.out, inputs);
  } else {
    check_output(options_.out, options_.force, inputs);
  }
  if (options_.reuse.mode == PrefixReuse::kFile) {
    inputs.require_regular_files("--prefix-reuse file");
  }
  return inputs;
}

/// What an answer depends on beside the request, the program itself included: two runs with equal
/// fingerprints agree. Where reuse cannot show, it is not part of it.
std::string DecideRun::make_fingerprint() const {
  Sha256 hash;
  hash.update(map_file("/proc/self/exe").bytes);
  for (const char* file : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                           "special_tokens_map.json", "preprocessor_config.json"}) {
    const FileSource& base = *model_.files.base;
    hash.update(fmt::format("{} {};", file, base.contains(file)));
    if (base.contains(file)) hash.update(base.open(file).bytes);
  }
  hash.update(fmt::format(
      "{} template={} tokenizer={} temperatures={},{} threshold={}", engine_->fingerprint(),
      encoder_.template_sha256(), encoder_.tokenizer().description().pattern,
      weights_->decision().temperature, weights_->decision().mm_temperature, threshold_));
  if (options_.reuse.mode != PrefixReuse::kOff && !is_exact(options_.engine)) {
    hash.update(fmt::format(" reuse={}", prefix_reuse_name(options_.reuse.mode)));
  }
  return hash.hex().substr(0, 32);
}

EvaluatorOptions DecideRun::make_evaluator_options() {
  EvaluatorOptions result =
      evaluator_options(options_.reuse, weights_->config().text, options_.engine, *engine_);
  result.stop = [this] { return stopped_ || interrupted(); };
  return result;
}

void DecideRun::read_all() {
  Record record;
  while (!stopped_ && !interrupted()) {
    const ReadStatus status = next(record);
    if (status == ReadStatus::kNotYet) {
      evaluator_.flush();
    } else if (status == ReadStatus::kLine) {
      if (n_read_++ % options_.shard.count == options_.shard.index - 1) take(std::move(record));
    } else {
      break;
    }
  }
  evaluator_.flush();
  if (!interrupted() && !stopped_) check_no_answers_left();
}

/// The next record, without waiting while answers are owed. What was read before an input fails is
/// still answered.
ReadStatus DecideRun::next(Record& record) {
  try {
    return inputs_.next(record, evaluator_.in_flight() > 0 ? Wait::kNo : Wait::kYes);
  } catch (const Error&) {
    evaluator_.flush();
    throw;
  }
}

void DecideRun::take(Record&& record) {
  std::vector<std::string> images = take_image_files(record);
  Ticket ticket{std::move(record.id), record.line, request_sha256(record, images),
                record.input_end};
  if (answered_ && already_answered(ticket)) return;
  if (interrupted()) return;  // perhaps while the earlier lines were read
  const bool audited = is_audited(ticket.request_sha256, options_.reuse.audit_rate);
  tickets_.push_back(std::move(ticket));
  if (record.error) {
    evaluator_.refuse(*record.error);
  } else {
    evaluator_.submit(record.body, std::move(images), audited ? Audit::kYes : Audit::kNo);
  }
}

/// Lines of an earlier run stand in input order, so each is met by its own request.
bool DecideRun::already_answered(const Ticket& ticket) {
  AnsweredLine line;
  if (!answered_->next(line)) {
    if (!interrupted()) {
      output_.truncate(answered_->kept_bytes());
      answered_.reset();
    }
    return false;
  }
  const auto differs = [&](std::string_view how) {
    fail(ErrorKind::kUsage, "--resume: line {} of {} {}; --force starts over", answered_->n_lines(),
         options_.out, how);
  };
  if (line.id != ticket.id) differs("answers another request");
  if (line.request_sha256 != ticket.request_sha256) differs("answers a request that has changed");
  if (line.engine != fingerprint_) differs("was answered by another engine, model or threshold");
  ++n_done_;
  ++n_kept_;
  n_questions_ += line.n_questions;
  n_undecided_ += line.n_undecided;
  if (line.audit) audits_.add(*line.audit);
  if (line.failed) note_failure();
  return true;
}

/// At the end of the input no earlier line may be left over.
void DecideRun::check_no_answers_left() {
  if (!answered_) return;
  AnsweredLine line;
  if (answered_->next(line)) {
    fail(ErrorKind::kUsage, "--resume: {} has more lines than the input has requests",
         options_.out);
  }
  if (interrupted()) return;
  output_.truncate(answered_->kept_bytes());
  if (n_kept_ > 0) {
    log_line(fmt::format("all {} requests are already answered in {}", n_kept_, options_.out));
  }
}

void DecideRun::write(RequestResult&& result) {
  const Ticket ticket = std::move(tickets_.front());
  tickets_.pop_front();
  if (stopped_) return;
  const ResultContext context{.id = ticket.id,
                              .line = ticket.line,
                              .request_sha256 = ticket.request_sha256,
                              .engine = fingerprint_,
                              .reuse = options_.reuse.mode,
                              .threshold = threshold_};
  const std::string text =
      options_.as_text ? result_text(result, context) : result_line(result, context);
  progress_.clear();
  if (!output_.write(text)) {
    stopped_ = true;
    return;
  }
  ++n_done_;
  n_questions_ += result.questions.size();
  n_undecided_ += count_undecided(result, threshold_);
  if (result.audit && !result.error) audits_.add(*result.audit);
  if (result.error) note_failure();
  progress_.update(n_done_, n_failed_, inputs_.fraction(ticket.input_end));
}

void DecideRun::note_failure() {
  ++n_failed_;
  if (options_.fail_fast || n_failed_ == options_.max_errors) stopped_ = true;
}

int DecideRun::summarise() const {
  if (interrupted()) {
    log_line(fmt::format("interrupted after {} requests", n_done_));
    return kInterrupted;
  }
  const double tolerance = audit_tolerance(options_.reuse, options_.engine);
  if (audits_.n_audited() > 0) log_line(audits_.text(tolerance));
  if (audits_.is_over(tolerance)) return kEngine;
  inputs_.explain();
  if (n_failed_ > 0) {
    log_line(fmt::format("{} of {} requests failed", n_failed_, n_done_));
    return kSomeFailed;
  }
  if (n_done_ == 0 && !stopped_) {
    if (n_read_ > 0) log_line("error: the shard holds no requests");
    return kNoRequests;
  }
  if (options_.fail_on_undecided && n_questions_ > 0) {
    const double rate = static_cast<double>(n_undecided_) / static_cast<double>(n_questions_);
    if (rate > *options_.fail_on_undecided) {
      log_line(fmt::format("{} of {} questions are undecided, over the limit of {}", n_undecided_,
                           n_questions_, *options_.fail_on_undecided));
      return kGateFailed;
    }
  }
  return kOk;
}

Shard parse_shard(std::string_view text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  const bool slash = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  const auto count = slash ? std::from_chars(index.ptr + 1, end, shard.count) : index;
  if (!slash || count.ec != std::errc() || count.ptr != end || shard.index < 1 ||
      shard.index > shard.count) {
    throw CLI::ValidationError("--shard", fmt::format("takes I/N with 1 <= I <= N, not {}", text));
  }
  return shard;
}

}  // namespace

Command add_decide(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("decide", "Answer requests: JSON lines in, JSON lines out");
  auto options = std::make_shared<DecideOptions>();
  command->footer(
      "Examples:\n"
      "  jemm decide < requests.jsonl > answers.jsonl\n"
      "  jemm decide --model BASE+ADAPTER --out answers.jsonl requests.jsonl\n"
      "  jemm decide --model EXPORT --trust --out answers.jsonl requests.jsonl\n"
      "  jemm decide --resume --out answers.jsonl requests.jsonl\n"
      "  jemm decide --prefix-reuse file --audit-reuse 0.01 requests.jsonl > answers.jsonl\n"
      "Exit: 0 answered, 1 too many undecided, 2 usage, 3 some requests failed, 4 engine\n"
      "  or a difference that an audit found, 5 no requests, 6 input or output, 130 interrupted");
  command->add_option("INPUT", options->inputs,
                      "JSON-lines files, directories of fixtures, or - for standard input");
  add_model_options(*command, options->model);
  add_engine_options(*command, options->engine);
  command->add_option("--lora", options->model.lora, "unmerged or merged: refuse other weights")
      ->check(choice({"unmerged", "merged"}));
  add_pass_options(*command, options->reuse);
  add_reuse_options(*command, options->reuse);
  command
      ->add_option("--threshold", options->threshold,
                   "Confidences below it are undecided; default: the adapter's")
      ->check(share_validator());
  command
      ->add_option("--fail-on-undecided", options->fail_on_undecided,
                   "Exit 1 when more than this share of the questions is undecided")
      ->check(share_validator());
  command->add_flag("--fail-fast", options->fail_fast, "Stop at the first failed request");
  command->add_option("--max-errors", options->max_errors, "Stop when this many requests failed")
      ->check(CLI::PositiveNumber);
  command->add_option_function<std::string>(
      "--shard", [options](const std::string& text) { options->shard = parse_shard(text); },
      "I/N: only every N-th request, from the I-th (1 to N)");
  CLI::Option* out = command->add_option("--out", options->out, "Write to this new file");
  CLI::Option* force =
      command->add_flag("--force", options->force, "Overwrite the file of --out")->needs(out);
  command->add_flag("--resume", options->resume, "Go on with the file of --out")
      ->needs(out)
      ->excludes(force);
  add_choice<bool>(*command, "--format", options->as_text, {{"json", false}, {"text", true}},
                   "JSON lines, or text for reading");
  add_progress_option(*command, options->progress);
  return [options] {
    if (options->resume && options->as_text) {
      fail(ErrorKind::kUsage, "--resume goes on with JSON lines, not with --format text");
    }
    if (options->reuse.audit_rate > 0 && options->reuse.mode == PrefixReuse::kOff) {
      fail(ErrorKind::kUsage, "--audit-reuse needs --prefix-reuse request or file");
    }
    return DecideRun(*options).run();
  };
}

}  // namespace jemm::cli
