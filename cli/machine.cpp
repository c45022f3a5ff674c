#include "machine.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "shared_library.h"

namespace jemm::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The values of the lines "key ... : value" of a file of /proc.
std::vector<std::string> proc_values(const char* file, const std::string& key) {
  std::vector<std::string> values;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const auto name_end = line.find_last_not_of(" \t", colon - 1);
    if (name_end + 1 != key.size()) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    values.push_back(begin == std::string::npos ? "" : line.substr(begin));
  }
  return values;
}

std::uint64_t kibibytes(const std::string& key) {
  const std::vector<std::string> values = proc_values("/proc/meminfo", key);
  std::uint64_t number = 0;
  if (!values.empty()) std::istringstream(values.front()) >> number;
  return number * 1024;
}

/// The number in a file of the control group; the largest number when there is none ("max").
std::uint64_t group_number(const char* file) {
  std::uint64_t number = 0;
  std::ifstream in(file);
  return in >> number ? number : std::numeric_limits<std::uint64_t>::max();
}

/// The driver's entry points, as far as they are there. Signatures as in the CUDA driver interface.
struct Driver {
  SharedLibrary library{"libcuda.so.1"};
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*memory)(std::size_t*, int) = nullptr;

  bool find_all() {
    return library.find(init, "cuInit") && library.find(version, "cuDriverGetVersion") &&
           library.find(count, "cuDeviceGetCount") && library.find(get, "cuDeviceGet") &&
           library.find(name, "cuDeviceGetName") && library.find(memory, "cuDeviceTotalMem_v2");
  }
};

Json device_list(const Driver& driver) {
  Json devices = Json::array();
  int n_devices = 0;
  if (driver.count(&n_devices) != 0) return devices;
  for (int i = 0; i < n_devices; ++i) {
    int device = 0;
    std::array<char, 256> name{};
    std::size_t bytes = 0;
    if (driver.get(&device, i) != 0 ||
        driver.name(name.data(), static_cast<int>(name.size()) - 1, device) != 0 ||
        driver.memory(&bytes, device) != 0) {
      continue;
    }
    devices.push_back({{"name", name.data()}, {"bytes", bytes}});
  }
  return devices;
}

}  // namespace

Json cpu_facts() {
  const std::vector<std::string> models = proc_values("/proc/cpuinfo", "model name");
  const std::vector<std::string> flags = proc_values("/proc/cpuinfo", "flags");
  Json features = Json::array();
  const std::string all = flags.empty() ? "" : " " + flags.front() + " ";
  for (const char* feature :
       {"sse4_2", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "sha_ni"}) {
    if (all.find(fmt::format(" {} ", feature)) != std::string::npos) features.push_back(feature);
  }
  return {{"model", models.empty() ? "unknown" : models.front()},
          {"threads", std::thread::hardware_concurrency()},
          {"features", features}};
}

Json memory_facts() {
  const std::uint64_t limit = group_number("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = group_number("/sys/fs/cgroup/memory.current");
  const std::uint64_t left = limit > used ? limit - used : limit;
  return {{"total_bytes", std::min(kibibytes("MemTotal"), limit)},
          {"available_bytes", std::min(kibibytes("MemAvailable"), left)}};
}

Json clock_facts() {
  Json facts;
  timespec resolution{};
  if (::clock_getres(CLOCK_MONOTONIC, &resolution) == 0) {
    facts["resolution_ns"] = resolution.tv_sec * 1'000'000'000 + resolution.tv_nsec;
  }
  std::vector<double> mhz;
  for (const std::string& value : proc_values("/proc/cpuinfo", "cpu MHz")) {
    mhz.push_back(std::strtod(value.c_str(), nullptr));
  }
  if (!mhz.empty()) {
    const auto [low, high] = std::minmax_element(mhz.begin(), mhz.end());
    facts["cpu_mhz"] = {*low, *high};
  }
  return facts;
}

Json gpu_facts() {
  Json facts = {{"engine", "not built in"}};
  Driver driver;
  if (!driver.library.is_open()) {
    facts["driver"] = "no libcuda.so.1";
  } else if (!driver.find_all()) {
    facts["driver"] = "libcuda.so.1 lacks entry points";
  } else if (const int status = driver.init(0); status != 0) {
    facts["driver"] = fmt::format("cuInit fails with status {}", status);
  } else {
    int version = 0;
    driver.version(&version);
    facts["driver"] = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
    facts["devices"] = device_list(driver);
  }
  return facts;
}

}  // namespace jemm::cli
