// Which algorithm of cuBLASLt is fastest, timed with weights out of the cache.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/config.h"
#include "gpu/blas_lt.h"

namespace jemm::gpu {

/// A number of rows to try a product with. x and w hold values, y is overwritten.
struct Trial {
  const Described* described = nullptr;
  Operands operands;
};

/// An algorithm and its least time by trial: infinite where it was refused.
struct Candidate {
  cublasLtMatmulAlgo_t algorithm{};
  std::vector<double> ms;
};
/// Takes out what some trial has no time of, sorts the rest by the sum of its times as multiples of
/// the trials' best.
void rank(std::vector<Candidate>& candidates);

/// Of what the library proposes for any of the trials, all of one weight, and accepts for all of
/// them, that with the least sum over the trials of its time as a multiple of the trial's best.
/// Takes some 0.1 s at the most a trial and GB of weight and rows; waits for the device. Throws
/// Error(kDevice).
cublasLtMatmulAlgo_t find_fastest(const BlasLt& blas, std::span<const Trial> trials, Sums sums,
                                  const Stream& stream);

/// The floor of a text forward of `n_rows` rows in BF16, without an adapter, on this device: the
/// sum over all linear layers, those that read the same input as one product, of the fastest
/// algorithm's time, back to back with weights out of the cache. Searches anew; takes a second or
/// two and some 1 GB of device memory.
double floor_ms(const TextConfig& config, std::int64_t n_rows, const Stream& stream);

}  // namespace jemm::gpu
