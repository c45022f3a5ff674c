// The tokenizer alone, without requests: how fast it loads and encodes, and what ids it gives.
//
//   tokenizer_bench speed CHECKPOINT TEXTS MEGABYTES [ROUNDS]   times, as JSON
//   tokenizer_bench ids CHECKPOINT [PATTERN] < TEXTS            the ids of each text, a line each
//
// TEXTS is JSON lines, each a string. `speed` encodes the texts in turn until MEGABYTES of UTF-8
// are done, on one thread, a line of JSON a round. bench/tokenizer_reference.py runs it beside the
// reference.
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "tokens/tokenizer.h"

namespace jemm {
namespace {

// Wall time and this thread's own time, in seconds.
struct Stopwatch {
  static double now(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double wall_start = now(CLOCK_MONOTONIC), cpu_start = now(CLOCK_THREAD_CPUTIME_ID);
  double wall_s() const { return now(CLOCK_MONOTONIC) - wall_start; }
  double cpu_s() const { return now(CLOCK_THREAD_CPUTIME_ID) - cpu_start; }
};

std::vector<std::string> read_texts(const std::string& path) {
  const Blob blob = map_file(path);
  std::vector<std::string> texts;
  for (std::string_view rest = blob.text(); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) texts.push_back(nlohmann::json::parse(rest.substr(0, end)).get<std::string>());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return texts;
}

void speed(const std::string& checkpoint, const std::string& path, double megabytes, int rounds) {
  const Stopwatch load;
  const auto tokenizer = load_tokenizer(*open_directory(checkpoint));
  const double load_wall_s = load.wall_s(), load_cpu_s = load.cpu_s();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const long load_peak_kb = usage.ru_maxrss;

  const std::vector<std::string> texts = read_texts(path);
  if (texts.empty()) fail(ErrorKind::kUsage, "{}: no texts", path);
  for (int round = 0; round < rounds; ++round) {
    const Stopwatch encoding;
    std::size_t bytes = 0, n_tokens = 0;
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; static_cast<double>(bytes) < megabytes * 1e6; ++i) {
      const std::string& text = texts[i % texts.size()];
      ids.clear();
      tokenizer->encode(text, ids);
      bytes += text.size();
      n_tokens += ids.size();
    }
    fmt::print("{{\"load_wall_s\": {:.4f}, \"load_cpu_s\": {:.4f}, \"load_peak_mb\": {:.1f}, "
               "\"bytes\": {}, \"tokens\": {}, \"wall_s\": {:.4f}, \"cpu_s\": {:.4f}}}\n",
               load_wall_s, load_cpu_s, static_cast<double>(load_peak_kb) / 1024, bytes, n_tokens,
               encoding.wall_s(), encoding.cpu_s());
  }
}

void print_ids(const std::string& checkpoint, const std::string& pattern) {
  const auto tokenizer = load_tokenizer(*open_directory(checkpoint), {pattern});
  std::vector<std::int32_t> ids;
  for (std::string line; std::getline(std::cin, line);) {
    ids.clear();
    tokenizer->encode(nlohmann::json::parse(line).get<std::string>(), ids);
    fmt::print("{}\n", fmt::join(ids, " "));
  }
}

int run(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() >= 4 && args[0] == "speed") {
    speed(args[1], args[2], std::stod(args[3]), args.size() > 4 ? std::stoi(args[4]) : 1);
  } else if (args.size() >= 2 && args[0] == "ids") {
    print_ids(args[1], args.size() > 2 ? args[2] : "");
  } else {
    fmt::print(stderr, "usage: tokenizer_bench speed CHECKPOINT TEXTS MEGABYTES [ROUNDS]\n"
                       "       tokenizer_bench ids CHECKPOINT [PATTERN] < TEXTS\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace jemm

int main(int argc, char** argv) {
  try {
    return jemm::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
