#include "gpu/floor.h"

#include "gpu/cuda.h"
#include "gpu/gemm_search.h"

namespace jemm {

double text_floor_ms(int device, const TextConfig& config, std::int64_t n_rows) {
  gpu::cuda_check(cudaSetDevice(device), "choosing the device");
  const gpu::Stream stream;
  return gpu::floor_ms(config, n_rows, stream);
}

}  // namespace jemm
