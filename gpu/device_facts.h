// Whether a device can be used, and for which models, from what the driver says of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

#include "checkpoint/config.h"
#include "gpu/cuda_engine.h"

namespace jemm::gpu {

struct DeviceFacts {
  int device = 0;                    ///< that is asked for
  int driver = 0;                    ///< newest CUDA it runs, 1000 major + 10 minor; 0: no driver
  cudaError_t status = cudaSuccess;  ///< of counting the devices
  int n_devices = 0;
  int major = 0, minor = 0;      ///< compute capability
  std::size_t shared_bytes = 0;  ///< shared memory that a block can have
};

/// Whether machine code for `architectures` ("80 90a 100-real", named as CMake does) runs on a
/// compute capability. Code with a letter runs on that capability alone, "-real" on later minors of
/// the same major, "-virtual" and plain numbers on all later ones.
bool runs_on(std::string_view architectures, int major, int minor);

CudaPresence presence_of(const DeviceFacts& facts, std::string_view architectures);

/// Throws Error(kDevice) naming the kernel where a block of the model's kernels needs more shared
/// memory than the device has.
void check_shared_memory(const DeviceFacts& facts, const TextConfig& config, Precision precision);

/// What an engine's bits depend on of its device, for the fingerprint: the capability alone, since
/// last bits are promised in deterministic mode only; there the card as well, for which the library
/// proposes algorithms.
std::string device_identity(const cudaDeviceProp& properties, bool deterministic);

}  // namespace jemm::gpu
