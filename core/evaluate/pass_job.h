// A prepared pass: what an engine is asked and what it has said. Whoever runs it needs nothing
// else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/timings.h"
#include "evaluate/images.h"
#include "evaluate/prompt_rows.h"

namespace jemm {

/// A question of a pass.
struct PassQuestion {
  PromptRows rows;
  std::int64_t n_computed = 0;  ///< rows of the pass that no earlier question of it has needed
  bool is_audited = false;

  // Once the pass is through:
  StageTimes times = {};                      ///< its share
  LabelLogits logits = {};                    ///< unless it is too large
  std::optional<LabelLogits> alone = {};      ///< once more, alone and whole, for an audit
  std::optional<std::string> too_large = {};  ///< the engine's words
};

/// Does not move while it is run.
struct PassJob {
  PackedPass packed;
  std::vector<PassQuestion> questions;  ///< by read

  // Once the pass is through:
  std::vector<EncodedImagePtr> looked_at;  ///< had no rows and now have them
  std::exception_ptr error;                ///< what the engine threw, except OutOfMemory
};

/// Computes the pass, rows of its images first where they have none. When it is too large for the
/// engine its questions are computed one by one. Throws nothing.
void run_pass(Engine& engine, PassJob& job) noexcept;

/// Who bears a time, and how much of it compared with the others.
using TimeShares = std::vector<std::pair<StageTimes*, std::size_t>>;
void share_time(const StageTimes& times, const TimeShares& shares);

}  // namespace jemm
