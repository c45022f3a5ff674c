#include "gpu_monitor.h"

#include <array>
#include <map>
#include <string>

#include "shared_library.h"

namespace jemm::cli {
namespace {

using Device = struct NvmlDevice*;

// As in nvml.h, of which no more than this is needed.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuTemperature = 0;
constexpr unsigned kMostProcesses = 64;

/// The PCI address of a CUDA device, by which both libraries name it; empty when there is none.
std::string pci_address(int device, std::string& name) {
  const SharedLibrary cuda("libcuda.so.1");
  int (*init)(unsigned) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*get_name)(char*, int, int) = nullptr;
  int (*get_address)(char*, int, int) = nullptr;
  if (!cuda.find(init, "cuInit") || !cuda.find(get, "cuDeviceGet") ||
      !cuda.find(get_name, "cuDeviceGetName") || !cuda.find(get_address, "cuDeviceGetPCIBusId")) {
    return "";
  }
  int handle = 0;
  std::array<char, 128> text{};
  constexpr int kSize = static_cast<int>(text.size()) - 1;
  if (init(0) != 0 || get(&handle, device) != 0) return "";
  if (get_name(text.data(), kSize, handle) == 0) name = text.data();
  text.fill('\0');
  return get_address(text.data(), kSize, handle) == 0 ? text.data() : "";
}

}  // namespace

/// The library's functions and the device. Each function returns 0 when it has worked.
struct GpuMonitor::Nvml {
  SharedLibrary library{"libnvidia-ml.so.1"};
  Device device = nullptr;
  int (*init)() = nullptr;
  int (*find_device)(const char*, Device*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*max_clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;

  bool find_all() {
    return library.find(init, "nvmlInit_v2") &&
           library.find(find_device, "nvmlDeviceGetHandleByPciBusId_v2") &&
           library.find(driver_version, "nvmlSystemGetDriverVersion") &&
           library.find(clock, "nvmlDeviceGetClockInfo") &&
           library.find(max_clock, "nvmlDeviceGetMaxClockInfo") &&
           library.find(temperature, "nvmlDeviceGetTemperature") &&
           library.find(power, "nvmlDeviceGetPowerUsage") &&
           library.find(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
           library.find(processes, "nvmlDeviceGetComputeRunningProcesses_v3") &&
           library.find(memory, "nvmlDeviceGetMemoryInfo");
  }

  unsigned long long used_bytes() const {
    MemoryInfo info{};
    return memory(device, &info) == 0 ? info.used : 0;
  }
};

GpuMonitor::GpuMonitor(int device) {
  const std::string address = pci_address(device, facts_.name);
  auto nvml = std::make_unique<Nvml>();
  if (address.empty()) {
    facts_.unwatched = "the driver does not name the device";
  } else if (!nvml->library.is_open()) {
    facts_.unwatched = "no libnvidia-ml.so.1";
  } else if (!nvml->find_all()) {
    facts_.unwatched = "libnvidia-ml.so.1 lacks entry points";
  } else if (nvml->init() != 0 || nvml->find_device(address.c_str(), &nvml->device) != 0) {
    facts_.unwatched = "NVML does not know the device";
  } else {
    nvml_ = std::move(nvml);
    std::array<char, 128> driver{};
    if (nvml_->driver_version(driver.data(), driver.size() - 1) == 0) facts_.driver = driver.data();
    nvml_->max_clock(nvml_->device, kSmClock, &facts_.max_sm_mhz);
    std::array<ProcessInfo, kMostProcesses> processes{};
    unsigned n_processes = kMostProcesses;
    if (nvml_->processes(nvml_->device, &n_processes, processes.data()) == 0) {
      facts_.n_other_processes = n_processes;
    }
    facts_.other_bytes = nvml_->used_bytes();
  }
}

GpuMonitor::~GpuMonitor() = default;

std::optional<GpuState> GpuMonitor::read() const {
  if (nvml_ == nullptr) return std::nullopt;
  GpuState state;
  unsigned milliwatts = 0;
  unsigned long long reasons = 0;
  nvml_->clock(nvml_->device, kSmClock, &state.sm_mhz);
  nvml_->clock(nvml_->device, kMemoryClock, &state.memory_mhz);
  nvml_->temperature(nvml_->device, kGpuTemperature, &state.celsius);
  if (nvml_->power(nvml_->device, &milliwatts) == 0) state.watts = milliwatts / 1000.0;
  state.used_bytes = nvml_->used_bytes();
  if (nvml_->throttle_reasons(nvml_->device, &reasons) == 0) state.throttle_reasons = reasons;
  return state;
}

GpuMonitors::GpuMonitors(const std::vector<std::optional<int>>& devices) {
  std::map<int, std::shared_ptr<const GpuMonitor>> known;
  for (const std::optional<int>& device : devices) {
    std::shared_ptr<const GpuMonitor>& monitor = monitors_.emplace_back();
    if (!device) continue;
    std::shared_ptr<const GpuMonitor>& one = known[*device];
    if (one == nullptr) one = std::make_shared<GpuMonitor>(*device);
    monitor = one;
  }
}

std::optional<GpuFacts> GpuMonitors::first_facts() const {
  for (const auto& monitor : monitors_) {
    if (monitor != nullptr) return monitor->facts();
  }
  return std::nullopt;
}

std::optional<GpuState> GpuMonitors::read(std::size_t mode) const {
  return monitors_[mode] == nullptr ? std::nullopt : monitors_[mode]->read();
}

}  // namespace jemm::cli
