// A request through encoder and engine, with everything that a golden holds about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "engine/engine.h"
#include "evaluate/encoder.h"
#include "judge/record.h"
#include "judge/stage_id.h"

namespace jemm::cli {

/// How a run may differ from the one that users get: for the self-test, and to compare a run that
/// is split or watched with one that is not.
struct RunVariation {
  double temperature_factor = 1;
  /// Rows of the first segment; the rest hangs from it. A multiple of 64; 0: no split. Questions
  /// with images, and those that are no longer, stay whole.
  std::int64_t split_rows = 0;
  std::int32_t position_shift = 0;  ///< of the rows behind the split
  bool every_stage = false;         ///< tap all stages, not only those of the reference
};

/// What is encoded, as a golden records it. `pixels`: whether their values are hashed.
ImageRecord image_record(const EncodedImage& image, ImageHashes pixels);
QuestionRecord question_record(const EncodedQuestion& encoded);

/// Answers one request after the other and keeps nothing.
class Observer {
 public:
  /// What answering takes; `engine` null: only what needs no weights. All must outlive the object.
  struct Model {
    const Encoder& encoder;
    Engine* engine = nullptr;
    DecisionConfig decision;
  };
  explicit Observer(const Model& model) : model_(model) {}

  /// The case that the reference's became here: of the stages asked for, and the tensors that the
  /// reference has. Refusals become the record's error. Throws Error(kDevice) of the engine.
  CaseRecord observe(const CaseRecord& reference, const StageSet& stages,
                     const RunVariation& variation = {}) const;

 private:
  Model model_;
};

}  // namespace jemm::cli
