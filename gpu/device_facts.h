// Whether a device can be used, from what the driver says of it.
#pragma once

#include <string_view>

#include <cuda_runtime_api.h>

#include "gpu/cuda_engine.h"

namespace jemm::gpu {

struct DeviceFacts {
  int device = 0;                    ///< that is asked for
  int driver = 0;                    ///< newest CUDA it runs, 1000 major + 10 minor; 0: no driver
  cudaError_t status = cudaSuccess;  ///< of counting the devices
  int n_devices = 0;
  int major = 0, minor = 0;  ///< compute capability
};

/// Whether machine code for `architectures` ("80;90a;100-real", as CMake lists them) runs on a
/// compute capability. Code with a letter runs on that capability alone, "-real" on later minors of
/// the same major, "-virtual" and plain numbers on all later ones.
bool runs_on(std::string_view architectures, int major, int minor);

CudaPresence presence_of(const DeviceFacts& facts, std::string_view architectures);

}  // namespace jemm::gpu
