// What the tests of the CUDA engine share: values, both element types, device memory.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <cuda_bf16.h>

#include "checkpoint/dtype.h"
#include "gpu/cuda.h"

namespace jemm::test {

using bf16 = __nv_bfloat16;

/// False, with a message, when no device is there: the case is over then.
inline bool has_device() {
  int n = 0;
  if (cudaGetDeviceCount(&n) == cudaSuccess && n > 0) return true;
  cudaGetLastError();
  MESSAGE("no CUDA device: skipped");
  return false;
}

/// Takes the device's memory but for some MiB while it lives.
class HeldMemory {
 public:
  explicit HeldMemory(std::size_t left_mib) {
    std::size_t n_free = 0, n_total = 0;
    gpu::cuda_check(cudaMemGetInfo(&n_free, &n_total), "a test");
    held_ = gpu::DeviceBytes(n_free - (left_mib << 20), "a test");
  }

 private:
  gpu::DeviceBytes held_;
};

/// A stored element and its value.
template <typename T>
struct Stored;
template <>
struct Stored<float> {
  using Bits = float;
  static float store(float x) { return x; }
  static float load(float x) { return x; }
  static constexpr double kHalfStep = 0x1p-24;  // relative, at the most
};
template <>
struct Stored<bf16> {
  using Bits = std::uint16_t;
  static std::uint16_t store(float x) { return float_to_bf16(x); }
  static float load(std::uint16_t x) { return bf16_to_float(x); }
  static constexpr double kHalfStep = 0x1p-8;
};

/// x as a stored T reads it back.
template <typename T>
float rounded(float x) {
  return Stored<T>::load(Stored<T>::store(x));
}

template <typename T>
std::vector<float> rounded(std::vector<float> values) {
  for (float& x : values) x = rounded<T>(x);
  return values;
}

inline std::vector<float> uniform(std::int64_t n, std::uint32_t seed, float low, float high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = distribution(random);
  return values;
}

/// An array on the device, between sentinels that a kernel must leave alone.
template <typename T>
class OnDevice {
 public:
  using Bits = typename Stored<T>::Bits;

  OnDevice(const std::vector<float>& values, const gpu::Stream& stream)
      : n_(values.size()), memory_(static_cast<std::int64_t>(n_ + 2 * kGuard)), stream_(stream) {
    std::vector<Bits> stored(n_ + 2 * kGuard, sentinel());
    std::transform(values.begin(), values.end(), stored.begin() + kGuard, Stored<T>::store);
    gpu::copy_to_device(memory_.data(), stored.data(), stored.size() * sizeof(Bits), stream_);
    stream_.synchronize("a test");
  }
  /// n values that no kernel should leave.
  OnDevice(std::int64_t n, const gpu::Stream& stream)
      : OnDevice(std::vector<float>(static_cast<std::size_t>(n), std::nanf("")), stream) {}

  T* data() { return memory_.data() + kGuard; }

  std::vector<float> values() const {
    std::vector<Bits> stored(n_ + 2 * kGuard);
    gpu::copy_to_host(stored.data(), memory_.data(), stored.size() * sizeof(Bits), stream_);
    stream_.synchronize("a test");
    for (std::size_t i = 0; i < kGuard; ++i) {
      const Bits expected = sentinel();
      REQUIRE(std::memcmp(&stored[i], &expected, sizeof expected) == 0);
      REQUIRE(std::memcmp(&stored[n_ + kGuard + i], &expected, sizeof expected) == 0);
    }
    std::vector<float> values(n_);
    std::transform(stored.begin() + kGuard, stored.end() - kGuard, values.begin(), Stored<T>::load);
    return values;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static Bits sentinel() { return Stored<T>::store(-12345.0f); }

  std::size_t n_;
  gpu::DeviceArray<T> memory_;
  const gpu::Stream& stream_;
};

/// An array of plain structures on the device.
template <typename Value>
gpu::DeviceArray<Value> on_device(const std::vector<Value>& values, const gpu::Stream& stream) {
  gpu::DeviceArray<Value> memory(static_cast<std::int64_t>(values.size()));
  gpu::copy_to_device(memory.data(), values.data(), values.size() * sizeof(Value), stream);
  stream.synchronize("a test");
  return memory;
}

/// RMS of the difference over that of the reference; NaN when anything is not a number.
template <typename Value>
double rms_ratio(const std::vector<float>& x, const std::vector<Value>& reference) {
  REQUIRE(x.size() == reference.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<double>(reference[i]);
    difference += std::pow(static_cast<double>(x[i]) - want, 2);
    size += want * want;
  }
  REQUIRE(size > 0);
  return std::sqrt(difference / size);
}

/// The largest |x - reference| / (absolute + relative |reference|); infinite for what is no number.
inline double worst_share(const std::vector<float>& x, const std::vector<double>& reference,
                          double absolute, double relative) {
  REQUIRE(x.size() == reference.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double share = std::abs(static_cast<double>(x[i]) - reference[i]) /
                         (absolute + relative * std::abs(reference[i]));
    if (!(share <= worst)) worst = std::isnan(share) ? HUGE_VAL : share;
  }
  return worst;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline double at(const std::vector<float>& x, std::int64_t i) {
  return static_cast<double>(x[static_cast<std::size_t>(i)]);
}
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// The most that one rounding to T moves a value, as a share of it.
template <typename T>
constexpr double kRounding = sizeof(T) == 2 ? 0x1p-8 : 0x1p-24;

// What a product, norm or gate may differ by: FP32 arithmetic and one rounding to T.
template <typename T>
void close(const std::vector<float>& x, const std::vector<double>& reference, double absolute) {
  CHECK(test::worst_share(x, reference, absolute, 1e-5 + 1.01 * kRounding<T>) <= 1);
}

}  // namespace jemm::test
