// Bounded lists and their text.
#include "judge/diff_tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/distance.h"
#include "judge/render_text.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxPrinted = 20;

std::string list_text(std::string_view title, const DiffList& list) {
  if (list.n == 0) return "";
  std::string text = fmt::format("{}: {}\n", title, list.n);
  for (std::size_t i = 0; i < std::min(list.listed.size(), kMaxPrinted); ++i) {
    const DiffEntry& entry = list.listed[i];
    text += fmt::format("  {}{}{}: {}\n", printable(entry.case_id),
                        entry.question_id.empty() ? "" : ", ", printable(entry.question_id),
                        printable(entry.what));
  }
  if (list.n > kMaxPrinted) text += fmt::format("  and {} more\n", list.n - kMaxPrinted);
  return text;
}

std::string list_json(const DiffList& list) {
  std::string text = fmt::format(R"({{"n":{},"listed":[)", list.n);
  for (std::size_t i = 0; i < list.listed.size(); ++i) {
    const DiffEntry& entry = list.listed[i];
    if (i > 0) text += ',';
    text += fmt::format(R"({{"case":{},"question":{},"what":{}}})", json_text(entry.case_id),
                        json_text(entry.question_id), json_text(entry.what));
  }
  return text + "]}";
}

}  // namespace

void DiffTally::add(DiffList& list, const DiffEntry& entry) {
  ++list.n;
  if (list.listed.size() < kMaxListed) list.listed.push_back(entry);
}

void DiffTally::move(const std::string& case_id, const std::string& question_id, double distance) {
  ++result.n_questions;
  if (distance != 0) ++result.n_moved;
  distances_.push_back(distance);
  if (result.moved.is_set && distance <= result.moved.max) return;
  result.moved.is_set = true;
  result.moved.max = distance;
  result.moved.case_id = question_id.empty() ? case_id : case_id + ", " + question_id;
}

DiffResult DiffTally::finish() {
  result.moved.median = median_of(distances_);
  return std::move(result);
}

std::string diff_text(const DiffResult& result) {
  std::string text = fmt::format("A {}, B {}, in both {}; {} questions compared\n", result.n_a,
                                 result.n_b, result.n_common, result.n_questions);
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", printable(note));
  if (result.n_questions > 0) {
    text += fmt::format("moved: {} of {} questions, median {:.3g}, largest {:.3g}{}{}\n",
                        result.n_moved, result.n_questions, result.moved.median, result.moved.max,
                        result.n_moved > 0 ? " at " : "",
                        result.n_moved > 0 ? printable(result.moved.case_id) : "");
  }
  text += list_text("winners that changed", result.flips);
  text += list_text("better in B", result.improvements);
  text += list_text("worse in B", result.regressions);
  return text + (result.regressions.n == 0 ? "no regression\n" : "REGRESSION\n");
}

std::string diff_json(const DiffResult& result) {
  std::string notes;
  for (const std::string& note : result.notes) {
    if (!notes.empty()) notes += ',';
    notes += json_text(note);
  }
  return fmt::format(
      R"({{"format":"jemm-diff/1","kind":"{}","a":{},"b":{},"common":{},"questions":{},)"
      R"("moved":{{"n":{},"median":{},"max":{},"at":{}}},"flips":{},"improvements":{},)"
      R"("regressions":{},"notes":[{}]}})"
      "\n",
      result.kind, result.n_a, result.n_b, result.n_common, result.n_questions, result.n_moved,
      json_number(result.moved.median), json_number(result.moved.max),
      json_text(result.moved.case_id), list_json(result.flips), list_json(result.improvements),
      list_json(result.regressions), notes);
}

}  // namespace jemm
