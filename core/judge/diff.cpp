// Outputs of decide, request by request.
#include "judge/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "judge/answer_lines.h"
#include "judge/diff_tally.h"
#include "judge/distance.h"

namespace jemm {
namespace {

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
  if (a.response && !b.response) return tally.regress({id, "", "refused now: " + b.error->type});
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
  IndexedLines before = open_answer_lines(a, answer_key_of);
  IndexedLines after = open_answer_lines(b, answer_key_of);
  AnswerDiff diff(options);
  DiffResult& result = diff.tally.result;
  result.kind = "answers";
  result.n_a = before.size();
  result.n_b = after.size();
  while (const std::optional<std::string_view> line = before.next()) {
    const std::string key = answer_key_of(*line, before.where());
    const std::string id = shown_answer_id(key);
    const std::optional<std::string_view> other = after.find(key);
    if (!other) {
      diff.tally.regress({id, "", "not in B"});
      continue;
    }
    ++result.n_common;
    diff.compare(id, read_answer_line(*line, before.where()),
                 read_answer_line(*other, after.where()));
  }
  return diff.tally.finish();
}

}  // namespace jemm
