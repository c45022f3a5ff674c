// What the machine has: processor, memory, clock, graphics driver. Asks, never changes.
#pragma once

#include <nlohmann/json.hpp>

namespace jemm::cli {

/// {"model", "threads", "features": [those that the engine or hashing uses]}.
nlohmann::ordered_json cpu_facts();
/// {"total_bytes", "available_bytes"}; a limit of the process's control group counts.
nlohmann::ordered_json memory_facts();
/// {"resolution_ns", "cpu_mhz": [lowest, highest]}; what is unknown is left out.
nlohmann::ordered_json clock_facts();
/// {"engine": "not built in", "driver": version or why not, "devices": [{"name", "bytes"}]}. The
/// driver's library is opened at run time when it is there.
nlohmann::ordered_json gpu_facts();

}  // namespace jemm::cli
