// Time of the CUDA engine's text forward: text_bench DIR fp32|bf16|deterministic TOKENS..., where
// DIR/base and DIR/adapter describe a model whose weights are made by the formula. One question a
// pass; wall clock from the forest to the logits, after three passes to warm up: the first one
// searches for algorithms where the cache has none, the second one is recorded as a graph.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/synthetic.h"
#include "gpu/cuda.h"
#include "gpu/cuda_engine.h"
#include "plan/forest.h"

namespace {

using namespace jemm;
using Clock = std::chrono::steady_clock;

constexpr int kRuns = 7;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double used_gib() {
  std::size_t n_free = 0, n_total = 0;
  gpu::cuda_check(cudaMemGetInfo(&n_free, &n_total), "asking for the memory");
  return static_cast<double>(n_total - n_free) / (1024.0 * 1024.0 * 1024.0);
}

void time_forward(Engine& engine, std::int64_t n_tokens, std::int64_t vocabulary) {
  Forest forest;
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < n_tokens; ++i) {
    tokens.push_back(static_cast<std::int32_t>(synthetic_mix(static_cast<std::uint32_t>(i)) %
                                               std::min<std::int64_t>(vocabulary, 248000)));
  }
  forest.read_last_row(forest.add(-1, tokens));
  std::vector<double> times;
  float logit = 0;
  double first_ms = 0;
  for (int run = 0; run < kRuns + 3; ++run) {
    StageTimes stages;
    const Clock::time_point start = Clock::now();
    logit = engine.forward(forest, {}, stages).front()[0];
    const double ms = ms_since(start);
    if (run == 0) first_ms = ms;
    if (run >= 3) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  std::printf("%6lld tokens %9.2f ms (%.2f to %.2f), the first %.1f, %.2f GiB, logit %.6f\n",
              static_cast<long long>(n_tokens), times[times.size() / 2], times.front(),
              times.back(), first_ms, used_gib(), static_cast<double>(logit));
}

void run(int argc, char** argv) {
  if (argc < 4) fail(ErrorKind::kUsage, "text_bench DIR fp32|bf16|deterministic TOKENS...");
  const std::string directory = argv[1];
  const std::shared_ptr<const Checkpoint> checkpoint = open_synthetic(
      {open_directory(directory + "/base"), open_directory(directory + "/adapter")}, 1);
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < 32; ++i) labels.push_back(32 + i);
  const Clock::time_point start = Clock::now();
  const auto engine = make_cuda_engine(
      checkpoint, std::span<const std::int32_t, 32>(labels.data(), 32),
      {.precision = std::strcmp(argv[2], "fp32") == 0 ? Precision::kFp32 : Precision::kBf16,
       .deterministic = std::strcmp(argv[2], "deterministic") == 0});
  std::printf("%s\nloaded in %.1f s, %.2f GiB in use\n", engine->fingerprint().c_str(),
              ms_since(start) / 1000, used_gib());
  for (int i = 3; i < argc; ++i) {
    time_forward(*engine, std::atoll(argv[i]), checkpoint->config().text.vocab_size);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "text_bench: %s\n", error.what());
    return 1;
  }
}
