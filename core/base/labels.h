// The letters that stand for a question's candidates.
#pragma once

#include <string_view>

namespace jemm {

/// Label of candidate i, in order.
inline constexpr std::string_view kLabels = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345";

}  // namespace jemm
