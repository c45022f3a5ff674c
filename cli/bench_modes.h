// The settings that `jemm bench --compare` sets side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model.h"
#include "reuse.h"

namespace jemm::cli {

inline constexpr std::size_t kMostBatchTokens = std::size_t{1} << 20;

/// A name and everything that is set under it.
struct Mode {
  std::string name;  ///< "precision=bf16"; empty when nothing is compared
  ModelOptions model;
  EngineOptions engine;
  ReuseOptions passes;
};

/// "KEY=A,B,...": `base` with each value in turn; `base` alone when `compare` is empty. Throws
/// Error(kUsage) for an unknown key or value, fewer than two values, or one that comes twice.
std::vector<Mode> make_modes(const Mode& base, const std::string& compare);

/// "model, device, ...": the keys, for help and messages.
std::string mode_keys();

/// What times depend on beside the weights: "cpu, float32, 2 threads, passes of 2048 rows".
std::string mode_setup(const Mode& mode);

/// The number of the CUDA device that the mode runs on; none on the CPU.
std::optional<int> cuda_device(const Mode& mode);

/// Whether two modes can share one engine.
bool share_engine(const Mode& a, const Mode& b);

/// Throws Error(kUsage) for two modes that are the same on this machine, as deterministic=off and
/// on are on the CPU. `weights`: what tells those of each mode apart; their fingerprints, or before
/// they are open the modes' --model.
void check_modes_differ(const std::vector<Mode>& modes, const std::vector<std::string>& weights);

/// The key of "KEY=A,B"; the text itself without a "=".
std::string compared_key(const std::string& compare);

}  // namespace jemm::cli
