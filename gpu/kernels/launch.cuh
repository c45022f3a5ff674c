// Launches that overlap the end of the kernel before them in the stream (programmatic dependent
// launch): blocks begin as soon as all of its blocks have ended or said so, instead of when its
// writes have reached memory and the device is empty.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <cuda_runtime.h>

#include "gpu/cuda.h"
#include "gpu/kernels/kernels.h"

namespace jemm::gpu {

/// Until all work before this kernel in its stream has ended and its writes are visible. Stands in
/// every kernel that launch() launches, before it reads what other kernels or copies write and
/// before it writes anything; weights, which nothing writes, may be read earlier. Some thread of
/// each kernel has to come here, or the next kernel would not wait for what this one overlaps.
__device__ inline void wait_for_work_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Asks for memory to be brought into the second-level cache; the blocks of a kernel of threads in
/// x share it, and each thread asks for few pieces far apart. Before wait_for_work_before(), as
/// weights are: then it runs beside the end of the kernel before.
__device__ inline void read_ahead(const ReadAhead& ahead) {
#if __CUDA_ARCH__ >= 900
  constexpr std::int64_t kPiece = 4096;
  const std::int64_t n_blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
  const auto* data = static_cast<const char*>(ahead.data);
  for (std::int64_t at = (threadIdx.x * n_blocks + block) * kPiece; at < ahead.n_bytes;
       at += blockDim.x * n_blocks * kPiece) {
    asm volatile(
        "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(data + at)),
        "r"(static_cast<std::uint32_t>(min(kPiece, ahead.n_bytes - at))));
  }
#endif
}

/// Whether wait_for_work_before() waits, in this device's code: if it was compiled for an older
/// architecture and translated for a newer device, it does not. `kernel`: any.
inline bool can_overlap(const void* kernel) {
  static PerDevice<bool> known;
  return known.get(current_device(), [kernel] {
    cudaFuncAttributes attributes{};
    cuda_check(cudaFuncGetAttributes(&attributes, kernel), "asking for a kernel");
    return attributes.ptxVersion >= 90;
  });
}

struct LaunchShape {
  dim3 grid;
  unsigned n_threads = 0;     // of a block
  std::size_t n_shared = 0;   // bytes, dynamic
  unsigned cluster_size = 1;  // blocks, neighbours along y
};

/// Kernels launched so call wait_for_work_before(). `name` is for errors.
template <typename... Parameters>
void launch(std::string_view name, void (*kernel)(Parameters...), const LaunchShape& shape,
            StreamHandle stream, const std::type_identity_t<Parameters>&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.n_threads);
  config.dynamicSmemBytes = shape.n_shared;
  config.stream = stream;
  config.attrs = attributes;
  if (can_overlap(reinterpret_cast<const void*>(kernel))) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster_size > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {1, shape.cluster_size, 1};
  }
  cuda_check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

}  // namespace jemm::gpu
