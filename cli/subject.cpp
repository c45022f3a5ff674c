// The kinds of subject, and the check that they are of the golden's checkpoint.
#include "subject.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "checkpoint/input_hashes.h"
#include "judge/answer_lines.h"
#include "progress.h"

namespace jemm::cli {
namespace {

bool is_weight_file(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

void warn_of_nothing_in_common() {
  log_line(
      "warning: the two sides name no checkpoint file in common, so nothing shows that they are of "
      "the same checkpoint");
}

/// Compares what the golden says about its checkpoint with the files in use. Weights that are not
/// read (none are needed, or they come from the formula) are not compared.
void check_checkpoint(const ModelFiles& model, const Golden& golden, bool needs_weights) {
  const GoldenManifest& manifest = golden.manifest();
  const std::optional<std::uint32_t> own_seed = formula_seed(model);
  const bool reads_weights = needs_weights && !own_seed;
  std::vector<std::string> names;
  for (const auto& [name, hash] : manifest.checkpoint_sha256) {
    if (reads_weights || !is_weight_file(name)) names.push_back(name);
  }
  const FileHashes hashes = input_hashes(model.files, names);
  std::map<std::string, std::string> theirs;
  for (const std::string& name : names) theirs[name] = manifest.checkpoint_sha256.at(name);
  std::optional<std::int64_t> seed;
  if (own_seed) seed = *own_seed;
  if (!needs_weights) seed = manifest.synthetic_seed;
  const std::string difference =
      checkpoint_difference(hashes, seed, theirs, manifest.synthetic_seed);
  if (!difference.empty()) {
    fail(ErrorKind::kInput,
         "{} is of another checkpoint than {}: {}; --model names the checkpoint to judge",
         golden.name(), model.spec.base.empty() ? "the embedded toy" : model.spec.base, difference);
  }
  if (hashes.empty()) warn_of_nothing_in_common();
}

class ModelSubject : public Subject {
 public:
  ModelSubject(const ModelOptions& options, const EngineOptions& engine, const Golden& golden,
               const StageSet& stages)
      : stages_(stages),
        model_(open_model_files(options)),
        encoder_(open_encoder(model_, options)) {
    check_checkpoint(model_, golden, stages.needs_engine());
    name_ = options.model.empty() ? "the embedded demonstration checkpoint" : options.model;
    Observer::Model model{.encoder = encoder_, .engine = nullptr, .decision = {}};
    if (stages.needs_engine()) {
      weights_ = open_weights(model_, encoder_, options);
      choice_ = choose_engine(engine);
      engine_ = open_engine(engine, weights_, encoder_.label_ids());
      model.engine = engine_.get();
      model.decision = weights_->decision();
    }
    observer_.emplace(model);
  }

  std::optional<CaseRecord> find(const CaseRecord& reference) override {
    return observer_->observe(reference, stages_);
  }

  std::optional<CaseRecord> unwatched(const CaseRecord& reference) override {
    if (engine_ == nullptr || reference.tensors.empty()) return std::nullopt;
    CaseRecord bare = reference;
    bare.tensors.clear();
    return observer_->observe(bare, stages_);
  }

  Side side() const override {
    Side side{.kind = "engine", .name = name_, .facts = {}};
    side.facts.emplace_back("tokenizer", encoder_.tokenizer().description().pattern);
    if (engine_ != nullptr) {
      side.facts.emplace_back("dtype", choice_.dtype);
      side.facts.emplace_back("device", choice_.device);
      side.facts.emplace_back("lora", std::string(lora_mode_name(weights_->lora_mode())));
      side.facts.emplace_back("fingerprint", engine_->fingerprint());
    }
    return side;
  }

  bool is_fp32() const override { return engine_ == nullptr || choice_.dtype == "float32"; }

  std::optional<double> threshold() const override {
    if (weights_ == nullptr) return std::nullopt;
    return weights_->decision().threshold;
  }

 private:
  StageSet stages_;
  std::string name_;
  ModelFiles model_;
  Encoder encoder_;
  std::shared_ptr<const Checkpoint> weights_;
  EngineChoice choice_;
  std::unique_ptr<Engine> engine_;
  std::optional<Observer> observer_;
};

class GoldenSubject : public Subject {
 public:
  explicit GoldenSubject(Golden& other) : other_(other) {}

  std::optional<CaseRecord> find(const CaseRecord& reference) override {
    return other_.find(reference.id);
  }
  Side side() const override { return golden_side(other_); }
  bool is_fp32() const override { return other_.manifest().dtype == "float32"; }

 private:
  Golden& other_;
};

class AnswersSubject : public Subject {
 public:
  AnswersSubject(const std::string& file, const Golden& golden)
      : lines_(open_answer_lines(file, [&golden](std::string_view line, const std::string& where) {
          const std::string id = shown_answer_id(answer_key_of(line, where));
          if (!golden.contains(id)) {
            fail(ErrorKind::kInput, "{}: {} has no case {}", where, golden.name(), id);
          }
          return answer_key(id);  // of a number too: a golden keeps ids as text
        })) {}

  std::optional<CaseRecord> find(const CaseRecord& reference) override {
    const std::optional<std::string_view> line = lines_.find(answer_key(reference.id));
    if (!line) return std::nullopt;
    AnswerLine answer = read_answer_line(*line, lines_.where());
    if (!answer.request_sha256.empty() && answer.request_sha256 != sha256_hex(reference.body)) {
      fail(ErrorKind::kInput, "{}: {} answers other bytes than the golden's request",
           lines_.where(), reference.id);
    }
    CaseRecord record;
    record.id = reference.id;
    record.error = std::move(answer.error);
    record.response = std::move(answer.response);
    record.has_questions = reference.has_questions;  // a line has answers, not what was asked
    record.questions = reference.questions;
    return record;
  }

  Side side() const override { return {.kind = "answers", .name = lines_.path(), .facts = {}}; }
  bool is_fp32() const override { return false; }  // nobody knows

 private:
  IndexedLines lines_;
};

}  // namespace

std::unique_ptr<Subject> open_model_subject(const ModelOptions& options,
                                            const EngineOptions& engine, const Golden& golden,
                                            const StageSet& stages) {
  return std::make_unique<ModelSubject>(options, engine, golden, stages);
}

std::unique_ptr<Subject> open_golden_subject(Golden& other, const Golden& golden) {
  check_same_checkpoint(other, golden);
  return std::make_unique<GoldenSubject>(other);
}

std::unique_ptr<Subject> open_answers_subject(const std::string& file, const Golden& golden) {
  return std::make_unique<AnswersSubject>(file, golden);
}

StageSet answer_stages() {
  return StageSet::parse("accept,probabilities,decision,usage");
}

void check_same_checkpoint(const Golden& ours, const Golden& theirs) {
  const std::string difference =
      checkpoint_difference(ours.manifest().checkpoint_sha256, ours.manifest().synthetic_seed,
                            theirs.manifest().checkpoint_sha256, theirs.manifest().synthetic_seed);
  if (!difference.empty()) {
    fail(ErrorKind::kInput, "{} is of another checkpoint than {}: {}", ours.name(), theirs.name(),
         difference);
  }
  const auto& files = theirs.manifest().checkpoint_sha256;
  for (const auto& [name, hash] : ours.manifest().checkpoint_sha256) {
    if (files.contains(name)) return;
  }
  warn_of_nothing_in_common();
}

Side golden_side(const Golden& golden) {
  Side side{.kind = "golden", .name = golden.name(), .facts = golden.manifest().facts};
  if (golden.manifest().synthetic_seed) {
    side.facts.emplace_back("synthetic_seed", fmt::format("{}", *golden.manifest().synthetic_seed));
  }
  return side;
}

}  // namespace jemm::cli
