// How fast an export loads: opened and read in blocks with its large files trusted, and opened with
// every file hashed.
//
//   checkpoint_bench EXPORT [ROUNDS]   a line of JSON a round, seconds and GB/s
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/blocks.h"
#include "base/error.h"
#include "checkpoint/export_files.h"

namespace jemm {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds to open and check the export, weights untouched.
double open_export(const std::string& directory, Trust trust) {
  const Clock::time_point start = Clock::now();
  const auto files = std::make_shared<const ExportFiles>(directory);
  open_checkpoint({files, files, files}, trust);
  return seconds_since(start);
}

/// Seconds to bring every byte of every weight file into blocks in memory, as a copy to a device
/// would take them.
double read_weights(const std::string& directory, std::uint64_t& bytes) {
  const Clock::time_point start = Clock::now();
  const ExportFiles files(directory);
  const auto& outputs = files.manifest().outputs;
  std::atomic<std::uint64_t> n_bytes = 0;
  in_threads(outputs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    if (!outputs[i].name.ends_with(".safetensors")) return;
    const BlockFile file(directory + "/" + outputs[i].name);
    for_each_range(file, block_ranges(0, file.size()),
                   [&](std::size_t, std::span<const std::byte> block) { n_bytes += block.size(); });
  });
  bytes = n_bytes;
  return seconds_since(start);
}

int run(const std::string& directory, int n_rounds) {
  for (int i = 0; i < n_rounds; ++i) {
    std::uint64_t bytes = 0;
    const double trusted_s = open_export(directory, Trust::kSizeAndTime);
    const double read_s = read_weights(directory, bytes);
    const double hashed_s = open_export(directory, Trust::kHash);
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    std::cout << fmt::format(
        R"({{"gigabytes":{:.3f},"open_trusted_s":{:.4f},"read_s":{:.3f},"load_trusted_gb_s":{:.2f},)"
        R"("open_hashed_s":{:.3f},"hashed_gb_s":{:.2f}}})"
        "\n",
        gigabytes, trusted_s, read_s, gigabytes / (trusted_s + read_s), hashed_s,
        gigabytes / hashed_s);
  }
  return 0;
}

}  // namespace
}  // namespace jemm

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: checkpoint_bench EXPORT [ROUNDS]\n";
    return 2;
  }
  try {
    return jemm::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
