// Row-major matrices for a column-major library: y^T = W x^T.
#include "gpu/blas_lt.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "gpu/kernels/fill.h"

namespace jemm::gpu {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;  // more than the H200's cache

void blas_check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string message = fmt::format("{}: {}", what, cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw Error(ErrorKind::kDevice, message);
}

cudaDataType_t data_type(Element element) {
  return element == Element::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// Row-major [rows, cols] is column-major [cols, rows].
Owned<cublasLtMatrixLayout_t> layout(Element element, std::int64_t cols, std::int64_t rows) {
  cublasLtMatrixLayout_t handle = nullptr;
  blas_check(
      cublasLtMatrixLayoutCreate(&handle, data_type(element), static_cast<std::uint64_t>(cols),
                                 static_cast<std::uint64_t>(rows), cols),
      "describing a matrix");
  return Owned<cublasLtMatrixLayout_t>(handle);
}

template <typename Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  blas_check(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
             "describing a product");
}

template <typename Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  blas_check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
             "describing a preference");
}

}  // namespace

Described::Described(const Product& p, std::int64_t rows) : product(p), n_rows(rows) {
  cublasLtMatmulDesc_t raw = nullptr;
  blas_check(cublasLtMatmulDescCreate(&raw, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "describing a product");
  desc.reset(raw);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (p.has_bias) {
    set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(raw, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(p.out));
  }
  w = layout(p.in, p.n_in, p.n_out);
  x = layout(p.in, p.n_in, rows);
  y = layout(p.out, p.n_out, rows);
}

bool is_whole(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t n_parts = 0, scheme = 0;
  const auto read = [&](cublasLtMatmulAlgoConfigAttributes_t attribute, std::uint32_t& to) {
    std::size_t n_written = 0;
    return cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &to, sizeof to,
                                                &n_written) == CUBLAS_STATUS_SUCCESS;
  };
  return read(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, n_parts) && n_parts <= 1 &&
         read(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme) &&
         scheme == CUBLASLT_REDUCTION_SCHEME_NONE;
}

BlasLt::BlasLt() : workspace_(kWorkspaceBytes, "the workspace of products") {
  blas_check(cublasLtCreate(&handle_), "starting cuBLASLt");
  cuda_check(cudaMemset(workspace_.data(), 0, workspace_.size()), "clearing device memory");
}
BlasLt::~BlasLt() {
  cublasLtDestroy(handle_);
}

std::vector<cublasLtMatmulAlgo_t> BlasLt::proposals(const Described& described, Sums sums,
                                                    int n) const {
  cublasLtMatmulPreference_t raw = nullptr;
  blas_check(cublasLtMatmulPreferenceCreate(&raw), "describing a preference");
  const Owned<cublasLtMatmulPreference_t> preference(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  // Never in place: that adds the parts of a split sum in the order in which they finish.
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      sums == Sums::kWhole ? std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE}
                           : std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(n));
  int n_found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, described.desc.get(), described.w.get(), described.x.get(), described.y.get(),
      described.y.get(), raw, n, results.data(), &n_found);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < n_found; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  if (status != CUBLAS_STATUS_SUCCESS || algorithms.empty()) {
    const Product& p = described.product;
    fail(ErrorKind::kDevice, "cuBLASLt has no algorithm for [{}, {}] times [{}, {}]: {}",
         described.n_rows, p.n_in, p.n_in, p.n_out, cublasLtGetStatusString(status));
  }
  return algorithms;
}

bool BlasLt::accepts(const Described& described, const cublasLtMatmulAlgo_t& algorithm) const {
  cublasLtMatmulHeuristicResult_t result{};
  return cublasLtMatmulAlgoCheck(handle_, described.desc.get(), described.w.get(),
                                 described.x.get(), described.y.get(), described.y.get(),
                                 &algorithm, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= kWorkspaceBytes;
}

void BlasLt::run(const Described& described, const cublasLtMatmulAlgo_t& algorithm,
                 const Operands& operands, const Stream& stream) const {
  const Product& p = described.product;
  if (p.has_bias) {
    set(described.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  }
  const float alpha = 1, beta = 0;
  const cublasStatus_t status = cublasLtMatmul(
      handle_, described.desc.get(), &alpha, operands.w, described.w.get(), operands.x,
      described.x.get(), &beta, operands.y, described.y.get(), operands.y, described.y.get(),
      &algorithm, workspace_.data(), kWorkspaceBytes, stream.get());
  if (status != CUBLAS_STATUS_SUCCESS) {
    blas_check(status, fmt::format("product of [{}, {}] with [{}, {}]", described.n_rows, p.n_in,
                                   p.n_in, p.n_out));
  }
}

void BlasLt::flush_cache(const Stream& stream) const {
  read_through(workspace_.data(), static_cast<std::int64_t>(workspace_.size()), stream.get());
}

}  // namespace jemm::gpu
