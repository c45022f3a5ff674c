// A report whose every number is known, to render and to compare.
#pragma once

#include "bench/report.h"

namespace jemm::testing {

/// One workload in two modes of 12 samples each: `a` takes 20 ms, `b` 10 ms; nothing is doubtful.
BenchReport sample_report();

}  // namespace jemm::testing
