// A case: one request and all that a reference or an engine made of it, in the shape of a golden.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/stage_id.h"

namespace jemm {

struct ImageRecord {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string rgb_sha256;
  std::array<std::int64_t, 3> grid_thw{};
  std::string pixel_values_sha256;
};

/// What a golden does not hold is absent (nullopt), which is neither equal nor different.
struct QuestionRecord {
  std::string id;
  std::string type;
  std::vector<std::string> candidates;  ///< ids
  std::optional<std::string> prompt;    ///< framed text, one pad an image
  std::optional<std::vector<std::int32_t>> token_ids;
  std::optional<std::string> position_ids_sha256;
  std::optional<std::vector<double>> logits;  ///< [candidates]; may hold NaN and infinities
};

/// An answer of the response, field by field.
struct AnswerRecord {
  std::string question_id;
  std::vector<std::string> fields;                            ///< names, in order
  std::vector<std::pair<std::string, double>> probabilities;  ///< by candidate id, in order
  std::vector<std::pair<std::string, double>> numbers;        ///< confidence, expected_value, noul
  /// type, choice; what is neither text nor number stands as its JSON kind in brackets.
  std::vector<std::pair<std::string, std::string>> texts;  ///< type, choice
};

/// The probabilities alone, in order.
std::vector<double> probabilities_of(const AnswerRecord& answer);

struct ResponseRecord {
  std::string model;
  std::vector<AnswerRecord> answers;
  std::optional<std::int64_t> input_tokens;
  std::optional<std::int64_t> output_tokens;
};

/// One tensor of stages.safetensors, or what a tap saw of one stage.
struct StageTensor {
  int question = 0;
  StageId stage;
  std::vector<float> values;
};

/// The HTTP status with which the reference's server refuses a request.
inline constexpr int kRefusedHttp = 422;

struct ErrorRecord {
  int http = 0;
  std::string type;
  std::string detail;
};

struct CaseRecord {
  std::string id;
  std::string body;                  ///< the request's bytes
  std::optional<ErrorRecord> error;  ///< set when it was refused
  bool has_questions = false;        ///< false: only the response is known
  std::vector<QuestionRecord> questions;
  std::vector<ImageRecord> images;
  std::optional<ResponseRecord> response;
  std::vector<StageTensor> tensors;
  /// Stages that the golden holds for other questions and not for this one.
  std::vector<std::pair<int, StageId>> lost_tensors;
  std::vector<std::string> unknown_tensors;  ///< names that are no stage of a question
};

}  // namespace jemm
