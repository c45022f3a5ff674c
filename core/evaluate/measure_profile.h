// The cost profile of an engine, by timing it.
#pragma once

#include "engine/engine.h"
#include "plan/cost_profile.h"

namespace jemm {

/// Times passes of 64, 128, 256, ... rows up to `max_rows`, then a pass cut into trees and into
/// levels. Each pass runs once unmeasured and once measured; larger ones are left
/// out when `budget_ms` is used up, so that the whole takes little more than twice as long. Tokens
/// are ids 0 to 31, which every vocabulary has.
CostProfile measure_profile(Engine& engine, std::int64_t max_rows, double budget_ms = 500);

}  // namespace jemm
