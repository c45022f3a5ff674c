#include "render.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "contract/answer.h"

namespace jemm::cli {
namespace {

constexpr std::string_view kModelName = "JEMM";

bool is_undecided(const Answer& answer, double threshold) {
  return answer.confidence < threshold;
}

std::string answers_json(const RequestResult& result) {
  std::string text = "{";
  for (const QuestionResult& question : result.questions) {
    if (text.size() > 1) text += ',';
    text += json_string(question.id) + ':' + answer_json(question.answer);
  }
  return text + '}';
}

std::string undecided_json(const RequestResult& result, double threshold) {
  std::string text = "[";
  for (const QuestionResult& question : result.questions) {
    if (!is_undecided(question.answer, threshold)) continue;
    if (text.size() > 1) text += ',';
    text += json_string(question.id);
  }
  return text + ']';
}

std::string timings_json(const StageTimes& times) {
  std::string text = "{";
  for (std::size_t i = 0; i < kStages; ++i) {
    text += fmt::format("\"{}\":{:.4f},", kStageNames[i], times.stage_ms[i]);
  }
  return text + fmt::format("\"total\":{:.4f}}}", times.total_ms);
}

/// What reuse has saved, and what checking it has shown: "equal" for equal bits, else the largest
/// difference of a probability.
std::string reuse_json(const RequestResult& result, PrefixReuse reuse) {
  std::string audit;
  if (result.audit) {
    audit = result.audit->equal_bits ? R"(,"audit":"equal")"
                                     : fmt::format(R"(,"audit":{})", result.audit->difference);
  }
  return fmt::format(R"({{"mode":"{}","rows_computed":{},"rows_reused":{}{}}})",
                     prefix_reuse_name(reuse), result.rows_computed,
                     result.input_tokens - result.rows_computed, audit);
}

/// Text for a terminal: no control characters, no lone surrogates.
std::string printable(std::string_view text) {
  const std::string quoted = json_string(text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::size_t count_undecided(const RequestResult& result, double threshold) {
  return static_cast<std::size_t>(
      std::count_if(result.questions.begin(), result.questions.end(),
                    [&](const QuestionResult& q) { return is_undecided(q.answer, threshold); }));
}

std::string error_json(const Error& error) {
  const std::string_view detail = first_code_points(error.what(), kMaxDetail);
  const std::string_view type =
      error.type().empty() ? std::string_view("EngineError") : error.type();
  return fmt::format(R"({{"error":{},"detail":{}}})", json_string(type), json_string(detail));
}

std::string result_line(RequestResult& result, const ResultContext& context) {
  const std::string provenance =
      fmt::format(R"("request_sha256":"{}","engine":"{}")", context.request_sha256, context.engine);
  if (result.error) {
    return fmt::format(R"({{"id":{},"error":{},"line":{},"jemm":{{{}}}}})"
                       "\n",
                       context.id, error_json(*result.error), context.line, provenance);
  }
  std::string answers;
  {
    const StageTimer total(result.times.total_ms);
    const StageTimer timer(result.times[Stage::kWrite]);
    answers = fmt::format(
        R"({{"id":{},"model":"{}","answers":{},"usage":{{"input_tokens":{},"output_tokens":0,)"
        R"("latency_ms":{:.4f}}},"jemm":{{"undecided":{},"special_tokens":{},)"
        R"("reuse":{},{})",
        context.id, kModelName, answers_json(result), result.input_tokens, result.latency_ms,
        undecided_json(result, context.threshold), result.special_tokens,
        reuse_json(result, context.reuse), provenance);
  }
  return answers + R"(,"timings_ms":)" + timings_json(result.times) + "}}\n";
}

std::string result_text(const RequestResult& result, const ResultContext& context) {
  std::string text = fmt::format("{}\n", context.id);
  if (result.error) {
    return text + fmt::format("  refused: {}: {}\n", result.error->type(),
                              printable(first_code_points(result.error->what(), kMaxDetail)));
  }
  for (const QuestionResult& question : result.questions) {
    const Answer& answer = question.answer;
    text += fmt::format("  {:<12} {:<6} {:>6.1f}%  {}", printable(question.id),
                        question_type_name(answer.type), 100 * answer.confidence,
                        printable(answer.candidates[answer.winner]));
    if (answer.type == QuestionType::kScore) {
      text += fmt::format(" (expected {:.2f})", answer.expected_value);
    }
    text += is_undecided(answer, context.threshold) ? "  undecided\n" : "\n";
  }
  return text;
}

}  // namespace jemm::cli
