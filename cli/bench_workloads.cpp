#include "bench_workloads.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/sha256.h"
#include "input.h"
#include "signals.h"

namespace jemm::cli {
namespace {

constexpr std::size_t kMostInputBytes = std::size_t{1} << 30;

/// Of every length and every byte, in order.
std::string hash_of(const std::vector<BenchRequest>& requests) {
  Sha256 hash;
  const auto add = [&hash](const std::string& bytes) {
    hash.update(fmt::format("{};", bytes.size()));
    hash.update(bytes);
  };
  for (const BenchRequest& request : requests) {
    add(request.body);
    for (const std::string& image : request.image_files) add(image);
    hash.update(request.error ? "error;" : "end;");
  }
  return hash.hex();
}

BenchRequest to_request(Record&& record) {
  std::vector<std::string> images = take_image_files(record);
  return {.id = std::move(record.id),
          .body = std::move(record.body),
          .image_files = std::move(images),
          .error = std::move(record.error)};
}

std::size_t size_bytes(const BenchRequest& request) {
  std::size_t n = request.body.size();
  for (const std::string& image : request.image_files) n += image.size();
  return n;
}

}  // namespace

std::vector<BenchWorkload> make_sweep(const Encoder& encoder,
                                      const std::vector<PromptSize>& sizes) {
  std::vector<BenchWorkload> workloads;
  for (const PromptSize& size : sizes) {
    BenchWorkload& workload = workloads.emplace_back();
    workload.requests.push_back(
        {.id = "1", .body = make_body(encoder, size), .image_files = {}, .error = {}});
    workload.facts.name = prompt_size_text(size);
    workload.facts.sha256 = hash_of(workload.requests);
    workload.facts.n_tokens = static_cast<std::size_t>(size.n_tokens * size.n_questions);
  }
  return workloads;
}

std::vector<BenchWorkload> read_workload(const std::vector<std::string>& paths) {
  Inputs inputs(paths);
  BenchWorkload workload;
  std::size_t n_bytes = 0;
  Record record;
  while (!interrupted() && inputs.next(record, Wait::kYes) == ReadStatus::kLine) {
    workload.requests.push_back(to_request(std::move(record)));
    n_bytes += size_bytes(workload.requests.back());
    if (n_bytes > kMostInputBytes) {
      fail(ErrorKind::kUsage, "--input: the requests are kept in memory, {} bytes at most",
           kMostInputBytes);
    }
  }
  if (workload.requests.empty()) return {};
  workload.facts.name = std::filesystem::path(paths[0]).filename().string();
  if (paths.size() > 1) workload.facts.name += fmt::format(" and {} more", paths.size() - 1);
  workload.facts.sha256 = hash_of(workload.requests);
  workload.facts.n_requests = workload.requests.size();
  return {std::move(workload)};
}

}  // namespace jemm::cli
