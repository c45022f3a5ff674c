// What `jemm bench` has answered: requests that it makes, or those of files.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "bench_prompts.h"
#include "bench_subject.h"

namespace jemm::cli {

/// Requests in memory, and what the report says of them. What only answering tells (refusals,
/// questions, a file's tokens) is not yet there.
struct BenchWorkload {
  Workload facts;
  std::vector<BenchRequest> requests;
};

/// One request a size. Throws as make_body does.
std::vector<BenchWorkload> make_sweep(const Encoder& encoder, const std::vector<PromptSize>& sizes);

/// All requests of the files as one workload; none when there are none. Throws what Inputs throws,
/// and Error(kUsage) for more than 1 GiB.
std::vector<BenchWorkload> read_workload(const std::vector<std::string>& inputs);

}  // namespace jemm::cli
