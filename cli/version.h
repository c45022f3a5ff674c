// What this build is made of.
#pragma once

#include <string>

namespace jemm::cli {

/// Program, build kind, CUDA and library versions, one a line.
std::string version_text();
/// "jemm 0.1.0".
std::string program_version();
/// "Release, GNU 12.2.0, CUDA".
std::string build_kind();

}  // namespace jemm::cli
