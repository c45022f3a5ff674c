#include "version.h"

#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.h>
#include <openssl/crypto.h>
#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "image/decode.h"
#if defined(JEMM_CUDA)
#include "gpu/cuda_engine.h"
#endif

namespace jemm::cli {

namespace {

std::string cuda_text() {
#if defined(JEMM_CUDA)
  const CudaPresence device = cuda_presence();
  return fmt::format("CUDA built in, {}", device.usable ? "device 0 usable" : device.reason);
#else
  return "CUDA not built in";
#endif
}

}  // namespace

std::string program_version() {
  return "jemm " JEMM_VERSION;
}

std::string build_kind() {
#if defined(JEMM_CUDA)
  return JEMM_BUILD_TYPE ", " JEMM_COMPILER ", CUDA";
#else
  return JEMM_BUILD_TYPE ", " JEMM_COMPILER;
#endif
}

std::string version_text() {
  const dnnl_version_t* dnnl = dnnl_version();
  return fmt::format(
      "jemm {}\nbuild {}, {}\n{}\noneDNN {}.{}.{}\n{}\nnlohmann/json {}.{}.{}\nfmt "
      "{}\nCLI11 {}\n{}",
      JEMM_VERSION, JEMM_BUILD_TYPE, JEMM_COMPILER, cuda_text(), dnnl->major, dnnl->minor,
      dnnl->patch, OpenSSL_version(OPENSSL_VERSION), NLOHMANN_JSON_VERSION_MAJOR,
      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, FMT_VERSION, CLI11_VERSION,
      image_library_versions());
}

}  // namespace jemm::cli
