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

Json parse_line(std::string_view line, const std::string& where) {
  return parse_json_object(line, where);
}

QuestionLine read_question(std::string_view line, const std::string& where) {
  const Json json = parse_line(line, where);
  const JsonObject object(json, where);
  QuestionLine question;
  question.case_id = object.string("case", "");
  question.id = object.string("id", "");
  if (object.find_not_null("drift") != nullptr) question.drift = object.number("drift", 0);
  if (object.find_not_null("margin") != nullptr) question.margin = object.number("margin", 0);
  question.flipped = object.boolean("flipped", false);
  question.winner = object.string("winner", "");
  if (const Json* findings = object.find("findings")) question.n_findings = findings->size();
  return question;
}

std::string key_of(std::string_view line, const std::string& where) {
  const Json json = parse_line(line, where);
  const JsonObject object(json, where);
  object.require("case");
  return fmt::format("{}\n{}", object.string("case", ""),
                     object.integer("question", 0, {-1, INT32_MAX}));
}

/// A report's verdict, hash of the gates, and gates by name with their outcome.
struct ReportHead {
  std::string verdict;
  std::string gates_sha256;
  std::string golden;
  std::map<std::string, std::string> outcomes;
};

void add_outcome(const Json& gate, const std::string& name, ReportHead& head) {
  if (gate.is_object() && gate.contains("outcome") && gate["outcome"].is_string()) {
    head.outcomes[name] = gate["outcome"].get<std::string>();
  }
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
  for (const char* list : {"stages", "gate_results"}) {
    const Json* entries = object.find(list);
    if (entries == nullptr || !entries->is_array()) continue;
    for (const Json& entry : *entries) {
      if (!entry.is_object()) continue;
      const std::string name = entry.value("stage", "") + " " + entry.value("name", "");
      for (const auto& [key, value] : entry.items()) add_outcome(value, name + " " + key, head);
    }
  }
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
    if (other == b.outcomes.end() || other->second == outcome) continue;
    const DiffEntry entry{"gate " + name, "", fmt::format("{} became {}", outcome, other->second)};
    if (other->second == "over budget") tally.regress(entry);
    if (outcome == "over budget") tally.improve(entry);
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
