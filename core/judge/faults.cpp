// The list of faults in data.
#include "judge/faults.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace jemm {
namespace {

constexpr StageId kLayer1{StageKind::kLayer, 1};

std::vector<float>& tensor_of(CaseRecord& record, StageId stage) {
  for (StageTensor& tensor : record.tensors) {
    if (tensor.stage == stage) return tensor.values;
  }
  fail(ErrorKind::kInput, "case {} has no {}", record.id, stage_name(stage));
}

/// The value of the largest magnitude, which is surely not zero.
float& largest(std::vector<float>& values) {
  return *std::max_element(values.begin(), values.end(),
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

/// The most negative value.
float& lowest(std::vector<float>& values) {
  return *std::min_element(values.begin(), values.end());
}

void erase_tensor(CaseRecord& record, StageId stage) {
  const auto found = std::find_if(record.tensors.begin(), record.tensors.end(),
                                  [&](const StageTensor& tensor) { return tensor.stage == stage; });
  record.tensors.erase(found);
}

/// A fault of one tensor of layer 1.
DataFault layer_fault(std::string name, FindingKind kind,
                      std::function<void(std::vector<float>&)> plant) {
  return {std::move(name), kLayer1, kind,
          [plant = std::move(plant)](CaseRecord& record) { plant(tensor_of(record, kLayer1)); }};
}

std::vector<DataFault> tensor_faults() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  using Values = std::vector<float>;
  return {
      layer_fault("sign error in one value", FindingKind::kOverBudget,
                  [](Values& x) { largest(x) = -largest(x); }),
      layer_fault("two negative values, -1 for -5", FindingKind::kOverBudget,
                  [](Values& x) { lowest(x) /= 5; }),
      layer_fault("NaN", FindingKind::kNotFinite, [](Values& x) { x.back() = kNan; }),
      layer_fault("infinity", FindingKind::kNotFinite, [](Values& x) { x.front() = kInfinity; }),
      layer_fault("minus infinity", FindingKind::kNotFinite,
                  [](Values& x) { x.front() = -kInfinity; }),
      layer_fault("zeros", FindingKind::kOverBudget,
                  [](Values& x) { std::fill(x.begin(), x.end(), 0.0f); }),
      layer_fault("a value too few", FindingKind::kDiffers, [](Values& x) { x.pop_back(); }),
      {"missing stage", kLayer1, FindingKind::kMissing,
       [](CaseRecord& record) { erase_tensor(record, kLayer1); }},
      {"extra stage",
       {StageKind::kLayer, 99},
       FindingKind::kExtra,
       [](CaseRecord& record) {
         record.tensors.push_back({0, {StageKind::kLayer, 99}, tensor_of(record, kLayer1)});
       }},
      {"renamed stage", kLayer1, FindingKind::kMissing,
       [](CaseRecord& record) {
         erase_tensor(record, kLayer1);
         record.unknown_tensors.push_back(record.id + "/0/layer.1");
       }},
      {"vision rows of another image",
       {StageKind::kVision},
       FindingKind::kOverBudget,
       [](CaseRecord& record) {
         Values& rows = tensor_of(record, {StageKind::kVision});
         std::reverse(rows.begin(), rows.end());
       }},
  };
}

/// Changes the last digit of a hash.
void spoil(std::string& hash) {
  hash.back() = hash.back() == '0' ? '1' : '0';
}

std::vector<DataFault> exact_faults() {
  const auto fault = [](std::string name, StageKind stage, FindingKind kind, auto plant) {
    return DataFault{std::move(name), {stage}, kind, plant};
  };
  return {
      fault("refused instead of answered", StageKind::kAccept, FindingKind::kDiffers,
            [](CaseRecord& record) {
              record.error = ErrorRecord{kRefusedHttp, "ValueError", "no"};
            }),
      fault("missing question", StageKind::kPrompt, FindingKind::kMissing,
            [](CaseRecord& record) { record.questions.pop_back(); }),
      fault("extra question", StageKind::kPrompt, FindingKind::kExtra,
            [](CaseRecord& record) { record.questions.push_back(record.questions.front()); }),
      fault("renamed question", StageKind::kPrompt, FindingKind::kUnmatched,
            [](CaseRecord& record) { record.questions.front().id.push_back(' '); }),
      fault("swapped pair of candidates", StageKind::kPrompt, FindingKind::kDiffers,
            [](CaseRecord& record) {
              auto& ids = record.questions.front().candidates;
              std::swap(ids[0], ids[1]);
            }),
      fault("a space too many in the prompt", StageKind::kPrompt, FindingKind::kDiffers,
            [](CaseRecord& record) { record.questions.front().prompt->push_back(' '); }),
      fault("one token off by one", StageKind::kTokens, FindingKind::kDiffers,
            [](CaseRecord& record) { ++record.questions.front().token_ids->back(); }),
      fault("other pixels", StageKind::kImageRgb, FindingKind::kDiffers,
            [](CaseRecord& record) { spoil(record.images.front().rgb_sha256); }),
      fault("rows and columns of the grid exchanged", StageKind::kImageGrid, FindingKind::kDiffers,
            [](CaseRecord& record) {
              auto& grid = record.images.front().grid_thw;
              std::swap(grid[1], grid[2]);
            }),
      fault("other patch values", StageKind::kImagePixels, FindingKind::kDiffers,
            [](CaseRecord& record) { spoil(record.images.front().pixel_values_sha256); }),
      fault("other positions", StageKind::kPositions, FindingKind::kDiffers,
            [](CaseRecord& record) { spoil(*record.questions.front().position_ids_sha256); }),
  };
}

std::vector<DataFault> answer_faults() {
  const auto fault = [](std::string name, StageKind stage, FindingKind kind, auto plant) {
    return DataFault{std::move(name), {stage}, kind, plant};
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      fault("logits of two candidates swapped", StageKind::kLogits, FindingKind::kOverBudget,
            [](CaseRecord& record) {
              auto& logits = *record.questions.front().logits;
              std::swap(logits[0], logits[1]);
            }),
      fault("infinite logit", StageKind::kLogits, FindingKind::kNotFinite,
            [](CaseRecord& record) { record.questions.front().logits->front() = -kInfinity; }),
      fault("missing logits", StageKind::kLogits, FindingKind::kMissing,
            [](CaseRecord& record) { record.questions.front().logits.reset(); }),
      fault("probabilities of two candidates swapped", StageKind::kProbabilities,
            FindingKind::kOverBudget,
            [](CaseRecord& record) {
              auto& p = record.response->answers.front().probabilities;
              std::swap(p[0].second, p[1].second);
            }),
      fault("candidates of an answer in another order", StageKind::kProbabilities,
            FindingKind::kDiffers,
            [](CaseRecord& record) {
              auto& p = record.response->answers.front().probabilities;
              std::swap(p[0], p[1]);
            }),
      fault("NaN probability", StageKind::kProbabilities, FindingKind::kNotFinite,
            [](CaseRecord& record) {
              record.response->answers.front().probabilities[0].second =
                  std::numeric_limits<double>::quiet_NaN();
            }),
      fault("renamed answer", StageKind::kProbabilities, FindingKind::kMissing,
            [](CaseRecord& record) { record.response->answers.front().question_id += "x"; }),
      fault("extra answer", StageKind::kProbabilities, FindingKind::kExtra,
            [](CaseRecord& record) {
              record.response->answers.push_back(record.response->answers.front());
              record.response->answers.back().question_id += "x";
            }),
      fault("no response", StageKind::kProbabilities, FindingKind::kMissing,
            [](CaseRecord& record) { record.response.reset(); }),
      fault("a choice that is not the winner", StageKind::kDecision, FindingKind::kDiffers,
            [](CaseRecord& record) {
              record.response->answers.front().texts.back().second = "another";
            }),
      fault("missing field", StageKind::kDecision, FindingKind::kDiffers,
            [](CaseRecord& record) { record.response->answers.front().fields.pop_back(); }),
      fault("confidence of another answer", StageKind::kDecision, FindingKind::kDiffers,
            [](CaseRecord& record) {
              record.response->answers.front().numbers.front().second += 0.01;
            }),
      fault("a token too many in the usage", StageKind::kUsage, FindingKind::kDiffers,
            [](CaseRecord& record) { ++*record.response->input_tokens; }),
  };
}

}  // namespace

const std::vector<DataFault>& data_faults() {
  static const std::vector<DataFault> kFaults = [] {
    std::vector<DataFault> all = exact_faults();
    for (auto list : {tensor_faults(), answer_faults()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }();
  return kFaults;
}

}  // namespace jemm
