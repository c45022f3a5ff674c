// The names of the stages that every engine shows to a tap, in the order of the forward.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jemm {

inline constexpr std::string_view kVisionStage = "vision";         ///< merged vision rows
inline constexpr std::string_view kFinalNormStage = "final_norm";  ///< after the last norm

/// "layer.00", "layer.01", ...: the hidden state after a layer.
std::string layer_stage(std::int64_t layer);

}  // namespace jemm
