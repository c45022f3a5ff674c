// cuBLASLt's descriptors and calls, checked. Knows products, no weights and no choices.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include <cublasLt.h>

#include "gpu/cuda.h"
#include "gpu/gemm.h"

namespace jemm::gpu {

struct BlasLtDeleter {
  void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayout_t d) const { cublasLtMatrixLayoutDestroy(d); }
  void operator()(cublasLtMatmulPreference_t d) const { cublasLtMatmulPreferenceDestroy(d); }
};
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, BlasLtDeleter>;

/// A product with a number of rows, as the library describes it.
struct Described {
  Described(const Product& product, std::int64_t n_rows);

  Product product;
  std::int64_t n_rows;
  Owned<cublasLtMatmulDesc_t> desc;
  Owned<cublasLtMatrixLayout_t> w, x, y;
};

struct Operands {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* bias = nullptr;
  void* y = nullptr;
};

/// How the sum of an output may be computed.
enum class Sums {
  kWhole,  ///< by one block
  kSplit,  ///< or in parts, which are added in a fixed order
};

/// Whether an algorithm, of which nothing else need be known, splits no sum.
bool is_whole(const cublasLtMatmulAlgo_t& algorithm);

class BlasLt {
 public:
  BlasLt();
  ~BlasLt();
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;

  /// What the library proposes, at most n, the likely fastest first. Throws Error(kDevice) when it
  /// has none.
  std::vector<cublasLtMatmulAlgo_t> proposals(const Described& described, Sums sums, int n) const;
  bool accepts(const Described& described, const cublasLtMatmulAlgo_t& algorithm) const;
  void run(const Described& described, const cublasLtMatmulAlgo_t& algorithm,
           const Operands& operands, const Stream& stream) const;

  /// Reads the whole workspace, so that the cache holds little else.
  void flush_cache(const Stream& stream) const;

 private:
  cublasLtHandle_t handle_ = nullptr;
  DeviceBytes workspace_;
};

}  // namespace jemm::gpu
