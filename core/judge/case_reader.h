// One line of cases.jsonl to a case, every field checked.
#pragma once

#include <string>
#include <string_view>

#include "judge/record.h"

namespace jemm {

/// Reads a case. Throws Error(kInput), beginning with `where`, for invalid JSON, a field of another
/// type, and a case without id, status or request.
CaseRecord read_case(std::string_view line, const std::string& where);

/// Only the id, without a look at the rest. Throws likewise.
std::string read_case_id(std::string_view line, const std::string& where);

/// A response as the reference's server and `jemm decide` write it. Throws likewise.
ResponseRecord read_response(std::string_view json, const std::string& where);

}  // namespace jemm
