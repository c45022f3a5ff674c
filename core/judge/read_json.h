// JSON of a file that the judge reads.
#pragma once

#include <string>

#include "base/error.h"

namespace jemm {

/// Calls `read`; what it finds wrong with the JSON itself is an unusable file here, no request.
template <typename Read>
auto read_json(const std::string& where, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRequest) throw;
    fail(ErrorKind::kInput, "{}: {}", where, error.what());
  }
}

}  // namespace jemm
