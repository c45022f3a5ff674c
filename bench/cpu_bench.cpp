// Times the CPU engine: for every prompt length read from standard input, one forward, and a line
// with its seconds and the first label's logit. bench/cpu_reference.py drives it.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "cpu/cpu_engine.h"

namespace {

// Token i of every prompt; the other side of the comparison uses the same.
std::int32_t token(std::int64_t i) {
  return static_cast<std::int32_t>((i * 7919 + 13) % 2000);
}

void serve(const std::string& directory, int n_threads) {
  const std::shared_ptr<const jemm::Checkpoint> checkpoint = jemm::open_synthetic(
      {jemm::open_directory(directory + "/base"), jemm::open_directory(directory + "/adapter")}, 1);
  std::array<std::int32_t, 32> labels{};
  std::iota(labels.begin(), labels.end(), 0);
  const auto engine = jemm::make_cpu_engine(checkpoint, labels, n_threads);
  std::cout << "ready " << engine->fingerprint() << std::endl;
  for (std::int64_t length = 0; std::cin >> length;) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < length; ++i) tokens.push_back(token(i));
    jemm::Forest forest;
    forest.read_last_row(forest.add(-1, tokens));
    jemm::StageTimes times;
    const auto start = std::chrono::steady_clock::now();
    const auto logits = engine->forward(forest, {}, times);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << seconds.count() << ' ' << logits.front()[0] << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: cpu_bench DIR_WITH_base_AND_adapter THREADS < LENGTHS\n";
    return 2;
  }
  try {
    serve(argv[1], std::atoi(argv[2]));
  } catch (const jemm::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
