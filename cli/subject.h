// What parity judges: an engine, or a second golden. And whether it is of the same checkpoint.
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

/// Throws Error(kInput) when the goldens are of different checkpoints.
void check_same_checkpoint(const Golden& ours, const Golden& theirs);

/// A golden as a side of a report.
Side golden_side(const Golden& golden);

}  // namespace jemm::cli
