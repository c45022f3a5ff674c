#include "bench_environment.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include <fmt/chrono.h>

#include "base/files.h"
#include "base/sha256.h"
#include "machine.h"
#include "version.h"

namespace jemm::cli {

Environment capture_environment() {
  const nlohmann::ordered_json cpu = cpu_facts();
  Environment environment{
      .date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
      .version = program_version(),
      .build = build_kind(),
      .program_sha256 = sha256_hex(map_file("/proc/self/exe").bytes),
      .cpu = cpu["model"].get<std::string>(),
      .n_processors = cpu["threads"].get<unsigned>(),
      .governor = {},
      .load_before = load_average(),
      .load_after = 0,
      .gpu = {}};
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> environment.governor;
  return environment;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace jemm::cli
