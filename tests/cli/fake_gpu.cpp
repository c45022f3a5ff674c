// A driver and its management library with two GPUs that are always in the same states. Built as
// libcuda.so.1 and as libnvidia-ml.so.1: a program takes from each what it asks for.
#include <cstdio>

extern "C" {

struct FakeProcess {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct FakeMemory {
  unsigned long long total, free, used;
};

int cuInit(unsigned) {
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = 40 + index;
  return index < 2 ? 0 : 101;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<unsigned>(size), "Fake GPU %d", device);
  return 0;
}
int cuDeviceGetPCIBusId(char* address, int size, int device) {
  std::snprintf(address, static_cast<unsigned>(size), "0000:1%c:00.0", 'B' + device - 40);
  return 0;
}

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, const void** device) {
  static const int kDevices[2] = {0, 1};
  const int index = address[6] - 'B';
  if (address[5] != '1' || index < 0 || index > 1) return 6;
  *device = &kDevices[index];
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  std::snprintf(version, size, "580.1");
  return 0;
}
int nvmlDeviceGetClockInfo(const void* device, int clock, unsigned* mhz) {
  const auto index = static_cast<unsigned>(*static_cast<const int*>(device));
  *mhz = (clock == 1 ? 1500 : 2600) + 100 * index;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(const void*, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
int nvmlDeviceGetTemperature(const void*, int, unsigned* celsius) {
  *celsius = 41;
  return 0;
}
int nvmlDeviceGetPowerUsage(const void*, unsigned* milliwatts) {
  *milliwatts = 123'500;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(const void*, unsigned long long* reasons) {
  *reasons = 0x24;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(const void*, unsigned* n, FakeProcess* processes) {
  if (*n < 2) return 7;
  *n = 2;
  processes[0].pid = processes[1].pid = 1;
  return 0;
}
int nvmlDeviceGetMemoryInfo(const void*, FakeMemory* memory) {
  *memory = {.total = 100, .free = 58, .used = 42};
  return 0;
}

}  // extern "C"
