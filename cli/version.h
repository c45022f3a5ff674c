// What this build is made of.
#pragma once

#include <string>

namespace jemm::cli {

/// Program, build kind, CUDA and library versions, one a line.
std::string version_text();

}  // namespace jemm::cli
