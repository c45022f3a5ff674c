// Duplicate keys of one dict; used by the JSON reader only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "contract/json.h"

namespace jemm {

/// Gives each key of the dict that ends at the end of `nodes` its last value at its first position
/// and drops the later ones. Sorts: n log n whatever the keys. `text` holds the keys' bytes.
void merge_duplicate_keys(std::vector<JsonNode>& nodes, std::uint32_t dict, std::string_view text);

}  // namespace jemm
