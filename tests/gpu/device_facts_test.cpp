// Which devices are refused, and why; no device is needed.
#include "gpu/device_facts.h"

#include <doctest/doctest.h>

#include <cstdio>
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
  CHECK(runs_on("80-real 90a 100f", 10, 3));
  CHECK_FALSE(runs_on("80-real 90a 100f", 12, 0));
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

TEST_CASE("a device without the shared memory that a model needs is refused by name") {
  const auto refusal = [](std::size_t shared_bytes, Precision precision, std::int64_t head_dim) {
    DeviceFacts facts = kHopper;
    facts.shared_bytes = shared_bytes;
    TextConfig config{};
    config.head_dim = head_dim;
    config.key_head_dim = config.value_head_dim = 128;
    try {
      check_shared_memory(facts, config, precision);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
      return std::string(error.what());
    }
    return std::string();
  };
  constexpr std::size_t kSm80 = 166912, kSm86 = 101376, kSm90 = 232448;
  for (const Precision precision : {Precision::kBf16, Precision::kFp32}) {
    CHECK(refusal(kSm90, precision, 256).empty());
    CHECK(refusal(kSm80, precision, 128).empty());
    CHECK(refusal(kSm86, precision, 32).find("the delta rule with heads of 128") !=
          std::string::npos);
  }
  CHECK(refusal(kSm80, Precision::kBf16, 256).empty());
  CHECK(refusal(kSm80, Precision::kFp32, 256) ==
        "CUDA device 0: attention with heads of 256 in fp32 needs 221696 bytes of shared memory a "
        "block, and compute capability 9.0 has 166912: use another device or --precision bf16");
  CHECK(refusal(142368, Precision::kBf16, 256).empty());
  CHECK(refusal(142367, Precision::kBf16, 256) ==
        "CUDA device 0: the delta rule with heads of 128 in bf16 needs 142368 bytes of shared "
        "memory a block, and compute capability 9.0 has 142367: use another device");
}

TEST_CASE("the card is named where last bits are promised") {
  cudaDeviceProp card{};
  std::snprintf(card.name, sizeof card.name, "A card");
  card.major = 9;
  card.multiProcessorCount = 132;
  CHECK(device_identity(card, false) == "sm_90");
  CHECK(device_identity(card, true) == "sm_90 A card with 132 multiprocessors");
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
      CHECK((dynamic_cast<const OutOfMemory*>(&error) != nullptr) ==
            (status == cudaErrorMemoryAllocation));
    }
  }
}

}  // namespace jemm::gpu
