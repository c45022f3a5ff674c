// What parity judges: an engine, a second golden, or answers in a file. And whether it is of the
// same checkpoint, which answers do not tell.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "judge/golden.h"
#include "judge/record.h"
#include "judge/report.h"
#include "judge/stage_id.h"
#include "model.h"
#include "observer.h"

namespace jemm::cli {

class Subject {
 public:
  virtual ~Subject() = default;
  /// The case that corresponds to the reference's; nothing when there is none.
  virtual std::optional<CaseRecord> find(const CaseRecord& reference) = 0;
  /// The same case once more without being watched; nothing when there is no such thing.
  virtual std::optional<CaseRecord> unwatched(const CaseRecord& /*reference*/) { return {}; }
  virtual Side side() const = 0;
  virtual bool is_fp32() const = 0;
  /// The checkpoint's threshold for confidences, if it is known.
  virtual std::optional<double> threshold() const { return {}; }
};

/// Opens a model. Weights and engine are left closed when `stages` do not need them. Throws
/// Error(kInput) when the golden is of another checkpoint.
std::unique_ptr<Subject> open_model_subject(const ModelOptions& options,
                                            const EngineOptions& engine, const Golden& golden,
                                            const StageSet& stages);

/// `other` must outlive the subject. Throws Error(kInput) when the goldens are of different
/// checkpoints.
std::unique_ptr<Subject> open_golden_subject(Golden& other, const Golden& golden);

/// What `jemm decide` wrote about the golden's requests. Throws Error(kInput) for lines that it has
/// not written, two of one id and ids that the golden does not have; find() does for the answer to
/// another request.
std::unique_ptr<Subject> open_answers_subject(const std::string& file, const Golden& golden);
/// The stages that such a file can be judged by.
StageSet answer_stages();

/// Throws Error(kInput) when the goldens are of different checkpoints.
void check_same_checkpoint(const Golden& ours, const Golden& theirs);

/// A golden as a side of a report.
Side golden_side(const Golden& golden);

}  // namespace jemm::cli
