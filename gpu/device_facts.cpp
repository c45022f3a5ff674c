// The reasons why a device cannot be used, in the order in which they show.
#include "gpu/device_facts.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "gpu/kernels/kernels.h"
#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {
namespace {

constexpr int kOldestMajor = 8;  // the kernels use BF16 matrix instructions

bool one_runs_on(std::string_view architecture, int major, int minor) {
  int number = 0;
  const auto read =
      std::from_chars(architecture.data(), architecture.data() + architecture.size(), number);
  const std::string_view suffix =
      architecture.substr(static_cast<std::size_t>(read.ptr - architecture.data()));
  const int own_major = number / 10, own_minor = number % 10;
  if (suffix.starts_with('a')) return major == own_major && minor == own_minor;
  if (suffix == "-real" || suffix.starts_with('f')) return major == own_major && minor >= own_minor;
  return 10 * major + minor >= number;
}

}  // namespace

bool runs_on(std::string_view architectures, int major, int minor) {
  while (!architectures.empty()) {
    const std::size_t end = std::min(architectures.find(' '), architectures.size());
    if (one_runs_on(architectures.substr(0, end), major, minor)) return true;
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
  }
  return false;
}

CudaPresence presence_of(const DeviceFacts& facts, std::string_view architectures) {
  if (facts.driver == 0) return {false, "no CUDA driver on this machine"};
  if (facts.status == cudaErrorInsufficientDriver) {
    return {false, fmt::format("the driver is for CUDA {}.{}, older than this build's {}.{}",
                               facts.driver / 1000, facts.driver % 1000 / 10, CUDART_VERSION / 1000,
                               CUDART_VERSION % 1000 / 10)};
  }
  if (facts.status != cudaSuccess && facts.status != cudaErrorNoDevice) {
    return {false, cudaGetErrorString(facts.status)};
  }
  if (facts.n_devices == 0) return {false, "no CUDA device on this machine"};
  if (facts.device < 0 || facts.device >= facts.n_devices) {
    return {false, fmt::format("this machine has CUDA devices 0 to {}", facts.n_devices - 1)};
  }
  if (facts.major < kOldestMajor) {
    return {false, fmt::format("compute capability {}.{} is below {}.0", facts.major, facts.minor,
                               kOldestMajor)};
  }
  if (!runs_on(architectures, facts.major, facts.minor)) {
    return {false, fmt::format("compute capability {}.{}, and this build has code for {} alone: "
                               "configure with -DCMAKE_CUDA_ARCHITECTURES={}{}",
                               facts.major, facts.minor, architectures, facts.major, facts.minor)};
  }
  return {true, {}};
}

void check_shared_memory(const DeviceFacts& facts, const TextConfig& config, Precision precision) {
  const bool is_bf16 = precision == Precision::kBf16;
  const std::size_t element_bytes = is_bf16 ? 2 : 4;
  const auto check = [&](std::size_t n_bytes, std::string_view kernel, std::int64_t width) {
    if (n_bytes <= facts.shared_bytes) return;
    fail(ErrorKind::kDevice,
         "CUDA device {}: {} with heads of {} in {} needs {} bytes of shared memory a block, and "
         "compute capability {}.{} has {}: use another device{}",
         facts.device, kernel, width, is_bf16 ? "bf16" : "fp32", n_bytes, facts.major, facts.minor,
         facts.shared_bytes, is_bf16 ? "" : " or --precision bf16");
  };
  check(delta_shared_bytes(element_bytes), "the delta rule",
        std::max(config.key_head_dim, config.value_head_dim));
  check(attention_shared_bytes(element_bytes, static_cast<std::int32_t>(config.head_dim)),
        "attention", config.head_dim);
}
// So the vision tower needs no check of its own.
static_assert(kMaxVisionSharedBytes <= delta_shared_bytes(2) &&
              kMaxVisionSharedBytes <= delta_shared_bytes(4));

std::string device_identity(const cudaDeviceProp& properties, bool deterministic) {
  const std::string capability = fmt::format("sm_{}{}", properties.major, properties.minor);
  if (!deterministic) return capability;
  return fmt::format("{} {} with {} multiprocessors", capability, properties.name,
                     properties.multiProcessorCount);
}

}  // namespace jemm::gpu
