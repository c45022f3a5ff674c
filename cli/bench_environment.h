// What a measurement runs on, for its report.
#pragma once

#include "bench/report.h"

namespace jemm::cli {

/// Program, processor, its clock's governor, load average now (load_before). No GPU.
Environment capture_environment();
/// The load average of the last minute; 0 where it is unknown.
double load_average();

}  // namespace jemm::cli
