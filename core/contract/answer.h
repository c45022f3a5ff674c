// Logits to answers: calibrated probabilities and the response fields of a question.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/request.h"

namespace jemm {

/// Probabilities, p_i = exp(x_i - logaddexp(x_0, ..., x_n)) with x = logits / temperature, in
/// double, the logarithm reduced from left to right. Source: model.py, softmax. The reference's
/// last exp is numpy's own, which differs from libm's in the last bit on about one value in
/// fifteen. logits: [n] with n >= 1. Throws Error(kDevice) when a logit, or one over the
/// temperature, is not finite; behind that check every probability is.
std::vector<double> calibrate(std::span<const float> logits, double temperature);

/// The answer of one question.
struct Answer {
  QuestionType type = QuestionType::kChoice;
  std::vector<std::string> candidates;
  std::vector<double> probabilities;  ///< [candidates]
  std::size_t winner = 0;             ///< first of the largest
  double confidence = 0;              ///< probability of the winner
  double expected_value = 0;          ///< score questions: sum of i * p_i, compensated
};

Answer make_answer(const Question& question, std::vector<double> probabilities);

/// The answer as a JSON object with the reference's field order and Python's float text.
std::string answer_json(const Answer& answer);

/// `text` as a quoted JSON string: UTF-8 raw, control characters escaped as Python does, lone
/// surrogates written back as \ud800 escapes.
std::string json_string(std::string_view text);

/// Python's repr of a float: shortest digits that round-trip, "1e+16", "5e-324", "inf", "nan".
std::string python_float(double value);

}  // namespace jemm
