// What a model is and what would be refused of it, as data. Knows no commands.
#pragma once

#include <nlohmann/json.hpp>

#include "model.h"

namespace jemm::cli {

/// Everything that can be said of the model without running it: {"schema": "jemm-inspect/1",
/// "kind", "architecture", "lora", "tokenizer", "labels", ..., "memory", "refusals": [messages]}. A
/// part that cannot be read is left out and its message is among the refusals. Reads and hashes
/// every byte, and looks at every weight, unless `options.trust`.
nlohmann::ordered_json inspect_model(const ModelOptions& options);

}  // namespace jemm::cli
