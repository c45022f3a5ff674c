// The style sheet of report.html.
#pragma once

#include <string_view>

namespace jemm {

/// Rules for light, dark and paper; no URL.
std::string_view html_style();

}  // namespace jemm
