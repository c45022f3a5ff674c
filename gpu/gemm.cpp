// cuBLASLt's descriptors, and a plan for every product and number of rows.
#include "gpu/gemm.h"

#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include <cublasLt.h>
#include <fmt/format.h>

#include "base/error.h"

namespace jemm::gpu {
namespace {

void blas_check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::kDevice, "{}: {}", what, cublasLtGetStatusString(status));
}

cudaDataType_t data_type(Element element) {
  return element == Element::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// Owners of cuBLASLt's descriptors.
struct DescriptorDeleter {
  void operator()(cublasLtMatmulDesc_t d) const { cublasLtMatmulDescDestroy(d); }
  void operator()(cublasLtMatrixLayout_t d) const { cublasLtMatrixLayoutDestroy(d); }
  void operator()(cublasLtMatmulPreference_t d) const { cublasLtMatmulPreferenceDestroy(d); }
};
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, DescriptorDeleter>;

// Row-major [rows, cols] is column-major [cols, rows].
Owned<cublasLtMatrixLayout_t> layout(Element element, std::int64_t cols, std::int64_t rows,
                                     std::int64_t stride) {
  cublasLtMatrixLayout_t handle = nullptr;
  blas_check(
      cublasLtMatrixLayoutCreate(&handle, data_type(element), static_cast<std::uint64_t>(cols),
                                 static_cast<std::uint64_t>(rows), stride),
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

struct Plan {
  Owned<cublasLtMatmulDesc_t> desc;
  Owned<cublasLtMatrixLayout_t> w, x, y;
  cublasLtMatmulAlgo_t algo{};
};

Plan describe(const Product& product, std::int64_t n_rows) {
  Plan plan;
  cublasLtMatmulDesc_t desc = nullptr;
  blas_check(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "describing a product");
  plan.desc.reset(desc);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (product.has_bias) {
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(product.out));
  }
  const std::int64_t x_stride = product.x_stride != 0 ? product.x_stride : product.n_in;
  const std::int64_t y_stride = product.y_stride != 0 ? product.y_stride : product.n_out;
  plan.w = layout(product.in, product.n_in, product.n_out, product.n_in);
  plan.x = layout(product.in, product.n_in, n_rows, x_stride);
  plan.y = layout(product.out, product.n_out, n_rows, y_stride);
  return plan;
}

// Rows that stand for all others where one algorithm serves any number of them.
constexpr std::int64_t kTypicalRows = 512;

}  // namespace

struct Gemms::Impl {
  static constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

  explicit Impl(GemmMode m) : mode(m), workspace(kWorkspaceBytes, "the workspace of products") {
    blas_check(cublasLtCreate(&handle), "starting cuBLASLt");
  }
  ~Impl() { cublasLtDestroy(handle); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  cublasLtMatmulAlgo_t choose(const Product& product, const Plan& plan) const {
    cublasLtMatmulPreference_t raw = nullptr;
    blas_check(cublasLtMatmulPreferenceCreate(&raw), "describing a preference");
    const Owned<cublasLtMatmulPreference_t> preference(raw);
    set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    // Never in place: that adds the parts of a split sum in the order in which they finish.
    const std::uint32_t schemes = mode == GemmMode::kDeterministic
                                      ? std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE}
                                      : std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE};
    set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    cublasLtMatmulHeuristicResult_t result{};
    int n_found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, plan.desc.get(), plan.w.get(), plan.x.get(),
                                       plan.y.get(), plan.y.get(), raw, 1, &result, &n_found);
    if (status != CUBLAS_STATUS_SUCCESS || n_found == 0) {
      fail(ErrorKind::kDevice, "cuBLASLt has no algorithm for [rows, {}] times [{}, {}]: {}",
           product.n_in, product.n_in, product.n_out, cublasLtGetStatusString(status));
    }
    return result.algo;
  }

  const Plan& plan_of(const Product& product, std::int64_t n_rows) {
    const auto [at, is_new] = plans.try_emplace({product, n_rows});
    if (is_new) {
      try {
        at->second = describe(product, n_rows);
        at->second.algo = mode == GemmMode::kDeterministic
                              ? choose(product, describe(product, kTypicalRows))
                              : choose(product, at->second);
      } catch (...) {
        plans.erase(at);
        throw;
      }
    }
    return at->second;
  }

  GemmMode mode;
  cublasLtHandle_t handle = nullptr;
  DeviceBytes workspace;
  std::map<std::pair<Product, std::int64_t>, Plan> plans;
};

Gemms::Gemms(GemmMode mode) : impl_(std::make_unique<Impl>(mode)) {}
Gemms::~Gemms() = default;

void Gemms::run(const Product& product, std::int64_t n_rows, const void* x, const void* w,
                const void* bias, void* y, const Stream& stream) {
  if (n_rows == 0) return;
  const Plan& plan = impl_->plan_of(product, n_rows);
  if (product.has_bias) set(plan.desc.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float alpha = 1, beta = product.accumulates ? 1 : 0;
  blas_check(cublasLtMatmul(impl_->handle, plan.desc.get(), &alpha, w, plan.w.get(), x,
                            plan.x.get(), &beta, y, plan.y.get(), y, plan.y.get(), &plan.algo,
                            impl_->workspace.data(), Impl::kWorkspaceBytes, stream.get()),
             fmt::format("product of [{}, {}] with [{}, {}]", n_rows, product.n_in, product.n_in,
                         product.n_out));
}

std::size_t Gemms::n_plans() const {
  return impl_->plans.size();
}

std::string Gemms::library() {
  const std::size_t v = cublasLtGetVersion();
  return fmt::format("cublasLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

}  // namespace jemm::gpu
