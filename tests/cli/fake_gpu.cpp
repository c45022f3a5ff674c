// A driver and its management library with one GPU that is always in the same state. Built as
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
  return index == 0 ? 0 : 101;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<unsigned>(size), "Fake GPU %d", device);
  return 0;
}
int cuDeviceGetPCIBusId(char* address, int size, int) {
  std::snprintf(address, static_cast<unsigned>(size), "0000:1B:00.0");
  return 0;
}

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, const void** device) {
  static const int kDevice = 0;
  *device = &kDevice;
  return address[5] == '1' && address[6] == 'B' ? 0 : 6;
}
int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  std::snprintf(version, size, "580.1");
  return 0;
}
int nvmlDeviceGetClockInfo(const void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1500 : 2600;
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
