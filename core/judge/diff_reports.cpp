// Report directories of parity: verdict and gates from report.json, questions from questions.jsonl.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/json_object.h"
#include "judge/diff_tally.h"
#include "judge/indexed_lines.h"

namespace jemm {
namespace {

using Json = nlohmann::json;

/// A line of questions.jsonl, as far as a diff goes.
struct QuestionLine {
  std::string case_id;
  std::string id;
  std::optional<double> drift;
  double margin = 0;
  bool flipped = false;
  std::string winner;
  std::size_t n_findings = 0;
};

QuestionLine read_question(std::string_view line, const std::string& where) {
  const Json json = parse_json_object(line, where);
  const JsonObject object(json, where);
  QuestionLine question;
  question.case_id = object.string("case", "");
  question.id = object.string("id", "");
  if (object.find_not_null("drift") != nullptr) question.drift = object.number("drift", 0);
  question.margin = object.number("margin", 0);
  question.flipped = object.boolean("flipped", false);
  question.winner = object.string("winner", "");
  if (const Json* findings = object.find("findings")) question.n_findings = findings->size();
  return question;
}

std::string key_of(std::string_view line, const std::string& where) {
  const Json json = parse_json_object(line, where);
  const JsonObject object(json, where);
  object.require("case");
  return fmt::format("{}\n{}", object.string("case", ""),
                     object.integer("question", 0, {-1, INT32_MAX}));
}

/// What was found of a stage.
struct StageFacts {
  std::int64_t n_compared = 0;
  std::int64_t n_wrong = 0;
};

/// A report's verdict, hash of the gates, gates by name with their outcome, stages.
struct ReportHead {
  std::string verdict;
  std::string gates_sha256;
  std::string golden;
  std::map<std::string, std::string> outcomes;
  std::map<std::string, StageFacts> stages;
};

void add_outcome(const JsonObject& gate, const std::string& name, ReportHead& head) {
  const std::string outcome = gate.string("outcome", "");
  if (!outcome.empty()) head.outcomes[name] = outcome;
}

/// Calls `take` with each object of the list under `key`.
template <typename Take>
void each_entry(const JsonObject& object, std::string_view key, const Take& take) {
  const Json* list = object.find(key);
  if (list == nullptr || !list->is_array()) object.refuse(key, "is not a list");
  for (const Json& entry : *list) take(JsonObject(entry, object.where()));
}

ReportHead read_head(const std::string& directory) {
  const std::string file = directory + "/report.json";
  const Blob blob = map_file(file);
  const Json json = parse_json_object(blob.text(), file);
  const JsonObject object(json, file);
  if (object.string("schema", "") != "jemm-report/1") {
    fail(ErrorKind::kInput, "{} is no report of jemm parity (\"jemm-report/1\")", file);
  }
  ReportHead head;
  head.verdict = object.string("verdict", "");
  head.gates_sha256 = object.string("gates_sha256", "");
  head.golden = object.object("reference").string("name", "");
  constexpr IntRange kAny = {0, INT64_MAX};
  each_entry(object, "stages", [&](const JsonObject& stage) {
    const std::string name = stage.string("stage", "");
    head.stages[name] = {stage.integer("compared", 0, kAny), stage.integer("wrong", 0, kAny)};
    add_outcome(stage.object("rms_gate"), name + " RMS ratio", head);
    add_outcome(stage.object("max_abs_gate"), name + " largest difference", head);
  });
  each_entry(object, "gate_results",
             [&](const JsonObject& gate) { add_outcome(gate, gate.string("name", ""), head); });
  return head;
}

int rank(const std::string& verdict) {
  static const std::map<std::string, int> kRanks = {
      {"PASS", 0}, {"WITHIN-NOISE", 1}, {"DRIFT", 2}, {"FAIL", 3}, {"ERROR", 4}};
  const auto found = kRanks.find(verdict);
  return found == kRanks.end() ? 4 : found->second;
}

void compare_heads(const ReportHead& a, const ReportHead& b, DiffTally& tally) {
  if (a.gates_sha256 != b.gates_sha256) {
    tally.result.notes.push_back("the reports were made with different gates, or different noise");
  }
  if (a.golden != b.golden) {
    tally.result.notes.push_back(
        fmt::format("the reports are of different goldens: {} and {}", a.golden, b.golden));
  }
  const DiffEntry verdict{"verdict", "", fmt::format("{} became {}", a.verdict, b.verdict)};
  if (rank(b.verdict) > rank(a.verdict)) tally.regress(verdict);
  if (rank(b.verdict) < rank(a.verdict)) tally.improve(verdict);
  for (const auto& [name, outcome] : a.outcomes) {
    const auto other = b.outcomes.find(name);
    const std::string now = other == b.outcomes.end() ? "absent" : other->second;
    if (now == outcome) continue;
    const DiffEntry entry{"gate " + name, "", fmt::format("{} became {}", outcome, now)};
    if (now == "over budget" || now == "absent") tally.regress(entry);
    if (outcome == "over budget" && now != "absent") tally.improve(entry);
  }
  for (const auto& [name, stage] : a.stages) {
    const auto other = b.stages.find(name);
    const StageFacts now = other == b.stages.end() ? StageFacts{} : other->second;
    if (stage.n_compared > 0 && now.n_compared == 0) {
      tally.regress({"stage " + name, "", "is not compared any more"});
    }
    const DiffEntry entry{"stage " + name, "",
                          fmt::format("{} findings, {} before", now.n_wrong, stage.n_wrong)};
    if (now.n_wrong > stage.n_wrong) tally.regress(entry);
    if (now.n_wrong < stage.n_wrong && now.n_compared > 0) tally.improve(entry);
  }
  for (const auto& [name, stage] : b.stages) {
    if (stage.n_wrong == 0 || a.stages.contains(name)) continue;
    tally.regress({"stage " + name, "", fmt::format("{} findings, none before", stage.n_wrong)});
  }
}

void compare_questions(const QuestionLine& a, const QuestionLine& b, const DiffOptions& options,
                       DiffTally& tally) {
  const auto entry = [&](std::string what) { return DiffEntry{a.case_id, a.id, std::move(what)}; };
  if (a.drift && b.drift) {
    tally.move(a.case_id, a.id, std::abs(*b.drift - *a.drift));
  } else if (a.drift) {
    tally.regress(entry("no probabilities any more"));
  }
  if (a.winner != b.winner) {
    tally.flip(entry(fmt::format("\"{}\" became \"{}\"", a.winner, b.winner)));
  }
  if (!a.flipped && b.flipped && a.margin >= options.margin) {
    tally.regress(entry(
        fmt::format("agreed with the reference, which leads by {:.3g}, and flips", a.margin)));
  }
  if (a.flipped && !b.flipped) tally.improve(entry("agrees with the reference now"));
  if (a.n_findings == 0 && b.n_findings > 0) {
    tally.regress(entry(fmt::format("{} findings, none before", b.n_findings)));
  }
  if (a.n_findings > 0 && b.n_findings == 0) tally.improve(entry("no findings any more"));
}

}  // namespace

DiffResult diff_reports(const std::string& a, const std::string& b, const DiffOptions& options) {
  DiffTally tally;
  tally.result.kind = "reports";
  compare_heads(read_head(a), read_head(b), tally);
  IndexedLines before(a + "/questions.jsonl", key_of);
  IndexedLines after(b + "/questions.jsonl", key_of);
  tally.result.n_a = before.size();
  tally.result.n_b = after.size();
  while (const std::optional<std::string_view> line = before.next()) {
    const QuestionLine question = read_question(*line, before.where());
    const std::optional<std::string_view> other = after.find(key_of(*line, before.where()));
    if (!other) {
      tally.regress({question.case_id, question.id, "not in B"});
      continue;
    }
    ++tally.result.n_common;
    compare_questions(question, read_question(*other, after.where()), options, tally);
  }
  return tally.finish();
}

}  // namespace jemm
