// Which devices are refused, and why; no device is needed.
#include "gpu/device_facts.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "gpu/cuda.h"

namespace jemm::gpu {
namespace {

const DeviceFacts kHopper{.device = 0, .driver = 13000, .n_devices = 1, .major = 9, .minor = 0};

std::string reason(const DeviceFacts& facts, const std::string& architectures = "90a") {
  const CudaPresence presence = presence_of(facts, architectures);
  CHECK(presence.usable == presence.reason.empty());
  return presence.reason;
}

}  // namespace

TEST_CASE("code runs on the capabilities that it was made for") {
  CHECK(runs_on("90a", 9, 0));
  CHECK_FALSE(runs_on("90a", 10, 0));
  CHECK_FALSE(runs_on("90a", 8, 0));
  CHECK(runs_on("80", 8, 0));
  CHECK(runs_on("80", 12, 1));
  CHECK_FALSE(runs_on("86", 8, 0));
  CHECK(runs_on("80-real", 8, 6));
  CHECK_FALSE(runs_on("80-real", 9, 0));
  CHECK(runs_on("80-real;90a;100f", 10, 3));
  CHECK_FALSE(runs_on("80-real;90a;100f", 12, 0));
  CHECK(runs_on("80-virtual", 12, 0));
  CHECK_FALSE(runs_on("", 9, 0));
}

TEST_CASE("each way of not having a usable device has its reason") {
  CHECK(reason(kHopper).empty());
  CHECK(reason({}) == "no CUDA driver on this machine");
  DeviceFacts facts = kHopper;
  facts.driver = 12040;
  facts.status = cudaErrorInsufficientDriver;
  CHECK(reason(facts).find("the driver is for CUDA 12.4, older than this build's 13.") == 0);
  facts = kHopper;
  facts.status = cudaErrorNoDevice;
  facts.n_devices = 0;
  CHECK(reason(facts) == "no CUDA device on this machine");
  facts.status = cudaErrorDevicesUnavailable;
  CHECK(reason(facts) == cudaGetErrorString(cudaErrorDevicesUnavailable));
  facts = kHopper;
  facts.device = 2;
  CHECK(reason(facts) == "this machine has CUDA devices 0 to 0");
  facts = kHopper;
  facts.major = 7;
  facts.minor = 5;
  CHECK(reason(facts) == "compute capability 7.5 is below 8.0");
  facts.major = 10;
  facts.minor = 0;
  CHECK(reason(facts) ==
        "compute capability 10.0, and this build has code for 90a alone: configure with "
        "-DCMAKE_CUDA_ARCHITECTURES=100");
}

TEST_CASE("a failed call becomes one error that names it") {
  CHECK_NOTHROW(cuda_check(cudaSuccess, "nothing"));
  for (const cudaError_t status : {cudaErrorIllegalAddress, cudaErrorECCUncorrectable,
                                   cudaErrorDevicesUnavailable, cudaErrorMemoryAllocation}) {
    try {
      cuda_check(status, "the text layers");
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
      CHECK(std::string(error.what()).find("the text layers: ") == 0);
      CHECK(std::string(error.what()).find(cudaGetErrorName(status)) != std::string::npos);
    }
  }
}

}  // namespace jemm::gpu
