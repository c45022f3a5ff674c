// Cost profiles: of a device, of a file, as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "checkpoint/config.h"
#include "plan/cost_profile.h"

namespace jemm::cli {

/// Linear in the rows: two operations for each weight of the language model's linear layers, at 100
/// GFLOP/s, which is a guess. What is worth sharing does not depend on the speed.
CostProfile assumed_profile(const ModelConfig& config);

/// {"origin", "points": [[rows, ms], ...], "segment_ms", "level_ms"}
nlohmann::ordered_json profile_json(const CostProfile& profile);
/// The same from a file, or from the report of jemm plan. Throws Error(kInput), naming it.
CostProfile read_profile(const std::string& path);

}  // namespace jemm::cli
