// cuBLASLt, loaded when the first CUDA engine is made: a program that answers on the CPU neither
// needs the library nor carries its 200 MB. Each function forwards to the library's own.
#include <cublasLt.h>
#include <dlfcn.h>

#include "base/error.h"

namespace jemm {
namespace {

void* open_library() {
  constexpr const char* kName = "libcublasLt.so.13";
  void* library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  // The toolkit that this was built with.
  if (library == nullptr) library = ::dlopen(JEMM_CUBLASLT_PATH, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorKind::kDevice, "cannot load {}, which the CUDA engine needs: {}", kName, ::dlerror());
  }
  return library;
}

template <typename Function>
Function* find(const char* name) {
  static void* const library = open_library();
  void* function = ::dlsym(library, name);
  if (function == nullptr) fail(ErrorKind::kDevice, "libcublasLt.so.13 has no {}", name);
  return reinterpret_cast<Function*>(function);
}

}  // namespace
}  // namespace jemm

// Same names, same types: the compiler holds them against the header.
#define JEMM_FORWARD(name, parameters, arguments)                               \
  cublasStatus_t name parameters {                                              \
    static auto* const function = jemm::find<cublasStatus_t parameters>(#name); \
    return function arguments;                                                  \
  }

extern "C" {

JEMM_FORWARD(cublasLtCreate, (cublasLtHandle_t * handle), (handle))
JEMM_FORWARD(cublasLtDestroy, (cublasLtHandle_t handle), (handle))
JEMM_FORWARD(cublasLtMatmul,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
              cublasLtMatrixLayout_t a_desc, const void* b, cublasLtMatrixLayout_t b_desc,
              const void* beta, const void* c, cublasLtMatrixLayout_t c_desc, void* d,
              cublasLtMatrixLayout_t d_desc, const cublasLtMatmulAlgo_t* algo, void* workspace,
              size_t workspace_bytes, cudaStream_t stream),
             (handle, desc, alpha, a, a_desc, b, b_desc, beta, c, c_desc, d, d_desc, algo,
              workspace, workspace_bytes, stream))
JEMM_FORWARD(cublasLtMatmulAlgoCheck,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
              const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result),
             (handle, desc, a, b, c, d, algo, result))
JEMM_FORWARD(cublasLtMatmulAlgoConfigGetAttribute,
             (const cublasLtMatmulAlgo_t* algo, cublasLtMatmulAlgoConfigAttributes_t attribute,
              void* value, size_t size, size_t* n_written),
             (algo, attribute, value, size, n_written))
JEMM_FORWARD(cublasLtMatmulAlgoGetHeuristic,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
              cublasLtMatmulPreference_t preference, int n_wanted,
              cublasLtMatmulHeuristicResult_t results[], int* n_found),
             (handle, desc, a, b, c, d, preference, n_wanted, results, n_found))
JEMM_FORWARD(cublasLtMatmulDescCreate,
             (cublasLtMatmulDesc_t * desc, cublasComputeType_t compute, cudaDataType_t scale),
             (desc, compute, scale))
JEMM_FORWARD(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc), (desc))
JEMM_FORWARD(cublasLtMatmulDescSetAttribute,
             (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
              const void* value, size_t size),
             (desc, attribute, value, size))
JEMM_FORWARD(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference),
             (preference))
JEMM_FORWARD(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference), (preference))
JEMM_FORWARD(cublasLtMatmulPreferenceSetAttribute,
             (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
              const void* value, size_t size),
             (preference, attribute, value, size))
JEMM_FORWARD(cublasLtMatrixLayoutCreate,
             (cublasLtMatrixLayout_t * layout, cudaDataType type, uint64_t rows, uint64_t cols,
              int64_t stride),
             (layout, type, rows, cols, stride))
JEMM_FORWARD(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), (layout))
JEMM_FORWARD(cublasLtMatrixLayoutSetAttribute,
             (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
              const void* value, size_t size),
             (layout, attribute, value, size))

const char* cublasLtGetStatusString(cublasStatus_t status) {
  static auto* const function = jemm::find<const char*(cublasStatus_t)>("cublasLtGetStatusString");
  return function(status);
}

size_t cublasLtGetVersion() {
  static auto* const function = jemm::find<size_t()>("cublasLtGetVersion");
  return function();
}

}  // extern "C"
