// A plan for every product and number of rows, an algorithm for every product and range of them.
#include "gpu/gemm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <cuda_bf16.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/sha256.h"
#include "gpu/algorithm_cache.h"
#include "gpu/blas_lt.h"
#include "gpu/gemm_search.h"
#include "gpu/kernels/fill.h"

namespace jemm::gpu {
namespace {

// Rows that stand for all others where one algorithm serves any number of them.
constexpr std::int64_t kTypicalRows = 512;
constexpr std::array<std::int64_t, 3> kSettlingRows = {96, 512, 2048};

static_assert(sizeof(AlgorithmBytes) == sizeof(cublasLtMatmulAlgo_t));

// All that the fastest algorithm depends on beside the product.
std::string machine_identity() {
  int driver = 0;
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, current_device()),
             "asking for the device's properties");
  cuda_check(cudaDriverGetVersion(&driver), "asking for the driver");
  return fmt::format("{}, {} multiprocessors, driver {}, {}, jemm {}", properties.name,
                     properties.multiProcessorCount, driver, Gemms::library(), JEMM_VERSION);
}

std::string cache_key(const Product& p, std::string_view rows) {
  return fmt::format("{}x{} {}{}{} {}", p.n_out, p.n_in, static_cast<int>(p.in),
                     static_cast<int>(p.out), p.has_bias ? " bias" : "", rows);
}

struct Plan {
  Described described;
  cublasLtMatmulAlgo_t algorithm{};
};

}  // namespace

std::int64_t row_bucket(std::int64_t n_rows) {
  const std::int64_t step = n_rows <= 128 ? 16 : n_rows <= 512 ? 32 : n_rows <= 2048 ? 128 : 1024;
  return (std::min<std::int64_t>(n_rows, 8192) + step - 1) / step * step;
}

struct Gemms::Impl {
  Impl(GemmMode m, const std::filesystem::path& cache_directory)
      : mode(m),
        cache(cache_directory, cache_directory.empty() ? std::string() : machine_identity()) {}

  const Plan& plan_of(const Product& product, std::int64_t n_rows, const Operands& operands,
                      const Stream& stream) {
    const auto at = plans.find({product, n_rows});
    if (at != plans.end()) return at->second;
    Plan plan{Described(product, n_rows)};
    plan.algorithm = choose(plan.described, operands, stream);
    return plans.emplace(std::pair(product, n_rows), std::move(plan)).first->second;
  }

  cublasLtMatmulAlgo_t choose(const Described& described, const Operands& operands,
                              const Stream& stream) {
    const Product& product = described.product;
    if (mode == GemmMode::kDeterministic) {
      const auto at = settled.find(product);
      if (at != settled.end()) return at->second;
      return blas.proposals(Described(product, kTypicalRows), Sums::kWhole, 1).front();
    }
    if (mode == GemmMode::kFastest && product.in == Element::kBf16) {
      const std::string key = cache_key(product, std::to_string(row_bucket(described.n_rows)));
      const Trial trial{&described, operands};
      const auto algorithm = found(key, {&trial, 1}, Sums::kSplit, stream);
      if (blas.accepts(described, algorithm)) return algorithm;
    }
    return blas.proposals(described, Sums::kSplit, 1).front();
  }

  // From the cache, or by a search.
  cublasLtMatmulAlgo_t found(const std::string& key, std::span<const Trial> trials, Sums sums,
                             const Stream& stream) {
    if (const auto known = cache.find(key)) {
      const auto algorithm = std::bit_cast<cublasLtMatmulAlgo_t>(*known);
      const bool accepted = std::all_of(trials.begin(), trials.end(), [&](const Trial& trial) {
        return blas.accepts(*trial.described, algorithm);
      });
      // What is proposed here is whole; a file may say anything.
      if (accepted && (sums == Sums::kSplit || is_whole(algorithm))) return algorithm;
    }
    const auto algorithm = find_fastest(blas, trials, sums, stream);
    cache.put(key, std::bit_cast<AlgorithmBytes>(algorithm));
    return algorithm;
  }

  void settle(const Product& product, const void* w, const Stream& stream) {
    std::vector<Described> described;
    std::vector<Trial> trials;
    const std::int64_t most = kSettlingRows.back();
    DeviceArray<__nv_bfloat16> x(most * product.n_in);
    const DeviceArray<float> y(most * product.n_out);  // large enough for either type
    fill_by_formula({.name_hash = 1, .centre = 0, .width = 1}, most * product.n_in, x.data(),
                    stream.get());
    for (const std::int64_t n_rows : kSettlingRows) described.emplace_back(product, n_rows);
    for (const Described& d : described) {
      trials.push_back({&d, {.x = x.data(), .w = w, .y = y.data()}});
    }
    settled.emplace(product, found(cache_key(product, "any"), trials, Sums::kWhole, stream));
    stream.synchronize("a search for algorithms");  // before x and y go
  }

  GemmMode mode;
  BlasLt blas;
  AlgorithmCache cache;
  std::map<std::pair<Product, std::int64_t>, Plan> plans;
  std::map<Product, cublasLtMatmulAlgo_t> settled;  // kDeterministic
};

Gemms::Gemms(GemmMode mode, const std::filesystem::path& cache_directory)
    : impl_(std::make_unique<Impl>(mode, cache_directory)) {}
Gemms::~Gemms() = default;

void Gemms::run(const Product& product, std::int64_t n_rows, const void* x, const void* w,
                const void* bias, void* y, const Stream& stream) {
  if (n_rows == 0) return;
  const Operands operands{.x = x, .w = w, .bias = bias, .y = y};
  const Plan& plan = impl_->plan_of(product, n_rows, operands, stream);
  impl_->blas.run(plan.described, plan.algorithm, operands, stream);
}

void Gemms::settle(const Product& product, const void* w, const Stream& stream) {
  if (impl_->mode != GemmMode::kDeterministic || product.in != Element::kBf16 ||
      impl_->settled.contains(product)) {
    return;
  }
  try {
    impl_->settle(product, w, stream);
  } catch (const OutOfMemory&) {  // as without a search
  }
}

std::string Gemms::settled() const {
  if (impl_->settled.empty()) return {};
  Sha256 hash;
  for (const auto& [product, algorithm] : impl_->settled) {
    hash.update(cache_key(product, "any"));
    hash.update(std::as_bytes(std::span(&algorithm, 1)));
  }
  return hash.hex().substr(0, 8);
}

void Gemms::save() {
  impl_->cache.save();
}

std::string Gemms::library() {
  const std::size_t v = cublasLtGetVersion();
  return fmt::format("cublasLt {}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

}  // namespace jemm::gpu
