// Calibration and the response fields of one question.
#include "contract/answer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/error.h"

namespace jemm {
namespace {

/// log(exp(a) + exp(b)) of finite values, in the steps of numpy's logaddexp.
double logaddexp(double a, double b) {
  if (a == b) return a + std::numbers::ln2;
  const double gap = a - b;
  return gap > 0 ? a + std::log1p(std::exp(-gap)) : b + std::log1p(std::exp(gap));
}

/// sum(i * p_i) as CPython 3.12 adds floats: Neumaier's compensated sum.
double expected_level(std::span<const double> probabilities) {
  double sum = 0;
  double lost = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const double term = static_cast<double>(i) * probabilities[i];
    const double next = sum + term;
    lost += std::abs(sum) >= std::abs(term) ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  return std::isfinite(lost) ? sum + lost : sum;
}

std::string probabilities_json(const Answer& answer) {
  std::string out = "{";
  for (std::size_t i = 0; i < answer.candidates.size(); ++i) {
    if (i > 0) out += ',';
    out += json_string(answer.candidates[i]) + ":" + python_float(answer.probabilities[i]);
  }
  return out + "}";
}

}  // namespace

std::vector<double> calibrate(std::span<const float> logits, double temperature) {
  std::vector<double> values;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double value = static_cast<double>(logits[i]) / temperature;
    if (!std::isfinite(value)) {
      fail(ErrorKind::kDevice, "logit {} of {} is {}, and {} over the temperature {}", i,
           logits.size(), logits[i], value, temperature);
    }
    values.push_back(value);
  }
  double total = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) total = logaddexp(total, values[i]);
  for (double& value : values) value = std::exp(value - total);
  return values;
}

Answer make_answer(const Question& question, std::vector<double> probabilities) {
  if (probabilities.empty() || probabilities.size() != question.candidates.size()) {
    fail(ErrorKind::kDevice, "{} probabilities for {} candidates", probabilities.size(),
         question.candidates.size());
  }
  Answer answer;
  answer.type = question.type;
  answer.candidates = question.candidates;
  answer.probabilities = std::move(probabilities);
  const auto& p = answer.probabilities;
  answer.winner = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  answer.confidence = p[answer.winner];
  if (answer.type == QuestionType::kScore) answer.expected_value = expected_level(p);
  return answer;
}

std::string answer_json(const Answer& answer) {
  std::string out = fmt::format("{{\"type\":\"{}\"", question_type_name(answer.type));
  if (answer.type == QuestionType::kChoice) {
    out += ",\"choice\":" + json_string(answer.candidates[answer.winner]);
  } else if (answer.type == QuestionType::kNoul) {
    out += ",\"noul\":" + python_float(answer.probabilities[0]);
  }
  out += ",\"probabilities\":" + probabilities_json(answer);
  out += ",\"confidence\":" + python_float(answer.confidence);
  if (answer.type == QuestionType::kScore) {
    out += ",\"expected_value\":" + python_float(answer.expected_value);
  }
  return out + "}";
}

}  // namespace jemm
