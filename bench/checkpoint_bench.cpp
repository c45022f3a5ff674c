// How fast an export loads: opened and read in blocks with its large files trusted, and opened with
// every file hashed.
//
//   checkpoint_bench EXPORT [ROUNDS]   a line of JSON a round, seconds and GB/s
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

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
  open_checkpoint({files, files, files}, trust)->fingerprint();
  return seconds_since(start);
}

/// Calls read(path of a weight file) for all of them, several at a time; returns the seconds.
template <typename Read>
double time_weights(const std::string& directory, const Read& read) {
  const Clock::time_point start = Clock::now();
  const ExportFiles files(directory);
  const auto& outputs = files.manifest().outputs;
  in_threads(outputs.size(), std::thread::hardware_concurrency(), [&](std::size_t i) {
    if (outputs[i].name.ends_with(".safetensors")) read(directory + "/" + outputs[i].name);
  });
  return seconds_since(start);
}

/// Into blocks in memory, read ahead, as a copy to a device would take them.
double read_blocks(const std::string& directory, std::atomic<std::uint64_t>& n_bytes) {
  return time_weights(directory, [&n_bytes](const std::string& path) {
    const BlockFile file(path);
    for_each_range(file, block_ranges(0, file.size()),
                   [&](std::size_t, std::span<const std::byte> block) { n_bytes += block.size(); });
  });
}

/// Copied block by block out of a mapping, as engines see tensors.
double copy_mapped(const std::string& directory) {
  return time_weights(directory, [](const std::string& path) {
    const Blob blob = map_file(path);
    std::vector<std::byte> block(std::min(kBlockBytes, blob.bytes.size()));
    for (const FileRange& range : block_ranges(0, blob.bytes.size())) {
      std::memcpy(block.data(), blob.bytes.data() + range.offset, range.size);
    }
  });
}

int run(const std::string& directory, int n_rounds) {
  for (int i = 0; i < n_rounds; ++i) {
    std::atomic<std::uint64_t> bytes = 0;
    const double trusted_s = open_export(directory, Trust::kSizeAndTime);
    const double read_s = read_blocks(directory, bytes);
    const double mapped_s = copy_mapped(directory);
    const double hashed_s = open_export(directory, Trust::kHash);
    const double gigabytes = static_cast<double>(bytes.load()) / 1e9;
    std::cout << fmt::format(
        R"({{"gigabytes":{:.3f},"open_trusted_s":{:.4f},"read_s":{:.3f},"load_trusted_gb_s":{:.2f},)"
        R"("mapped_gb_s":{:.2f},"open_hashed_s":{:.3f},"hashed_gb_s":{:.2f}}})"
        "\n",
        gigabytes, trusted_s, read_s, gigabytes / (trusted_s + read_s), gigabytes / mapped_s,
        hashed_s, gigabytes / hashed_s);
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
