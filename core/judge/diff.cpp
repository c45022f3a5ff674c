// Outputs of decide, request by request.
#include "judge/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "contract/json.h"
#include "contract/json_members.h"
#include "judge/case_reader.h"
#include "judge/diff_tally.h"
#include "judge/distance.h"
#include "judge/indexed_lines.h"

namespace jemm {
namespace {

/// A line of decide: an answer or an error.
struct AnswerLine {
  std::optional<ResponseRecord> response;
  std::string error_type;
};

/// The JSON text of `id`, so that 1 and "1" are different.
std::string id_of(std::string_view line, const std::string& where) {
  constexpr std::string_view kId[] = {"id"};
  try {
    for (const JsonMember& member : json_members(line, kId)) return std::string(member.value);
  } catch (const Error& error) {
    fail(ErrorKind::kInput, "{}: {}", where, error.what());
  }
  fail(ErrorKind::kInput, "{} has no id", where);
}

/// An id for people: a string's text, else the JSON.
std::string shown_id(const std::string& id) {
  return id.starts_with('"') ? json_string_value(id) : id;
}

AnswerLine parse_answer(std::string_view line, const std::string& where) {
  AnswerLine result;
  constexpr std::string_view kError[] = {"error"};
  const std::vector<JsonMember> errors = json_members(line, kError);
  if (errors.empty()) {
    result.response = read_response(line, where);
    return result;
  }
  for (const JsonMember& member : json_members(errors.front().value, kError)) {
    result.error_type = json_string_value(member.value);
  }
  return result;
}

AnswerLine read_line(std::string_view line, const std::string& where) {
  try {
    return parse_answer(line, where);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRequest) throw;
    fail(ErrorKind::kInput, "{}: {}", where, error.what());
  }
}

class AnswerDiff {
 public:
  explicit AnswerDiff(const DiffOptions& options) : options_(options) {}

  void compare(const std::string& id, const AnswerLine& a, const AnswerLine& b);
  DiffTally tally;

 private:
  void compare_answers(const std::string& id, const AnswerRecord& a, const AnswerRecord& b);

  DiffOptions options_;
};

void AnswerDiff::compare(const std::string& id, const AnswerLine& a, const AnswerLine& b) {
  if (a.response && !b.response) return tally.regress({id, "", "refused now: " + b.error_type});
  if (!a.response && b.response) return tally.improve({id, "", "answered now"});
  if (!a.response) return;
  for (const AnswerRecord& answer : a.response->answers) {
    const auto other = std::find_if(
        b.response->answers.begin(), b.response->answers.end(),
        [&](const AnswerRecord& record) { return record.question_id == answer.question_id; });
    if (other == b.response->answers.end()) {
      tally.regress({id, answer.question_id, "no answer any more"});
    } else {
      compare_answers(id, answer, *other);
    }
  }
}

void AnswerDiff::compare_answers(const std::string& id, const AnswerRecord& a,
                                 const AnswerRecord& b) {
  const std::vector<double> before = probabilities_of(a);
  const std::vector<double> after = probabilities_of(b);
  const bool same_candidates =
      before.size() == after.size() && !before.empty() &&
      std::equal(a.probabilities.begin(), a.probabilities.end(), b.probabilities.begin(),
                 [](const auto& x, const auto& y) { return x.first == y.first; });
  if (!same_candidates) return tally.regress({id, a.question_id, "other candidates"});
  const bool is_finite =
      std::all_of(after.begin(), after.end(), [](double p) { return std::isfinite(p); });
  if (!is_finite) return tally.regress({id, a.question_id, "a probability is not finite"});
  const double drift = distribution_distance(after, before).drift;
  tally.move(id, a.question_id, drift);
  const Winner winner = winner_of(before);
  const std::size_t now = winner_of(after).index;
  if (winner.index == now) return;
  const DiffEntry flip{id, a.question_id,
                       fmt::format("\"{}\" {:.3f} became \"{}\" {:.3f}; A leads by {:.3g}",
                                   a.probabilities[winner.index].first, before[winner.index],
                                   b.probabilities[now].first, after[now], winner.margin)};
  tally.flip(flip);
  if (winner.margin >= options_.margin) tally.regress(flip);
}

}  // namespace

DiffResult diff_answers(const std::string& a, const std::string& b, const DiffOptions& options) {
  IndexedLines before(a, id_of);
  IndexedLines after(b, id_of);
  AnswerDiff diff(options);
  DiffResult& result = diff.tally.result;
  result.kind = "answers";
  result.n_a = before.size();
  result.n_b = after.size();
  for (const IndexedLines* side : {&before, &after}) {
    if (side->duplicates().empty()) continue;
    fail(ErrorKind::kInput, "{}: the id {} stands for more than one line", side->path(),
         side->duplicates().front());
  }
  while (const std::optional<std::string_view> line = before.next()) {
    const std::string id = id_of(*line, before.where());
    const std::optional<std::string_view> other = after.find(id);
    if (!other) {
      diff.tally.regress({shown_id(id), "", "not in B"});
      continue;
    }
    ++result.n_common;
    diff.compare(shown_id(id), read_line(*line, before.where()), read_line(*other, after.where()));
  }
  return diff.tally.finish();
}

}  // namespace jemm
