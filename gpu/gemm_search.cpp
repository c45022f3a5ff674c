// A round over all proposals, then more rounds over the best of them.
#include "gpu/gemm_search.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include <cuda_bf16.h>

#include "base/error.h"
#include "gpu/kernels/fill.h"

namespace jemm::gpu {
namespace {

constexpr int kProposals = 48;
constexpr std::size_t kFinalists = 6;
constexpr int kFinalRounds = 4;
constexpr std::chrono::seconds kPatience(5);  // no further proposal is tried after that
constexpr double kNever = std::numeric_limits<double>::infinity();

class Stopwatch {
 public:
  explicit Stopwatch(const Stream& stream) : stream_(stream) {}

  /// The cache holds nothing of the operands.
  double cold_ms(const BlasLt& blas, const Trial& trial, const cublasLtMatmulAlgo_t& algorithm) {
    blas.flush_cache(stream_);
    start_.record(stream_);
    blas.run(*trial.described, algorithm, trial.operands, stream_);
    end_.record(stream_);
    end_.wait();
    return end_.milliseconds_since(start_);
  }

 private:
  const Stream& stream_;
  Event start_{Event::Timing::kMeasured}, end_{Event::Timing::kMeasured};
};

void measure(const BlasLt& blas, std::span<const Trial> trials, Candidate& candidate,
             Stopwatch& stopwatch) {
  for (std::size_t i = 0; i < trials.size(); ++i) {
    candidate.ms[i] =
        std::min(candidate.ms[i], stopwatch.cold_ms(blas, trials[i], candidate.algorithm));
  }
}

std::vector<Candidate> candidates_for(const BlasLt& blas, std::span<const Trial> trials,
                                      Sums sums) {
  std::vector<Candidate> candidates;
  for (const Trial& trial : trials) {
    for (const auto& algorithm : blas.proposals(*trial.described, sums, kProposals)) {
      const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const auto& c) {
        return std::memcmp(&c.algorithm, &algorithm, sizeof algorithm) == 0;
      });
      const bool fits = std::all_of(trials.begin(), trials.end(), [&](const Trial& t) {
        return blas.accepts(*t.described, algorithm);
      });
      if (!known && fits) {
        candidates.push_back({algorithm, std::vector<double>(trials.size(), kNever)});
      }
    }
  }
  if (candidates.empty()) {
    const Product& p = trials.front().described->product;
    fail(ErrorKind::kDevice, "cuBLASLt has no algorithm for all numbers of rows times [{}, {}]",
         p.n_in, p.n_out);
  }
  return candidates;
}

// Values like a norm's output: zeros are multiplied faster.
DeviceArray<__nv_bfloat16> some_values(std::int64_t n, std::uint32_t seed, const Stream& stream) {
  DeviceArray<__nv_bfloat16> values(n, "a search for algorithms");
  fill_by_formula({.name_hash = seed, .centre = 0, .width = 1}, n, values.data(), stream.get());
  return values;
}

// Groups of layers that read the same input, and how many of each.
std::map<Product, std::int64_t> text_products(const TextConfig& c) {
  std::map<Product, std::int64_t> products;
  const std::int64_t queries = c.n_heads * c.head_dim, keys = c.n_kv_heads * c.head_dim;
  for (const LayerType type : c.layer_types) {
    const bool full = type == LayerType::kFullAttention;
    const std::int64_t in =
        full ? 2 * queries + 2 * keys : c.conv_dim() + c.value_dim() + 2 * c.n_value_heads;
    ++products[{.n_out = in, .n_in = c.hidden_size}];
    ++products[{.n_out = c.hidden_size, .n_in = full ? queries : c.value_dim()}];
    ++products[{.n_out = 2 * c.intermediate_size, .n_in = c.hidden_size}];
    ++products[{.n_out = c.hidden_size, .n_in = c.intermediate_size}];
  }
  return products;
}

}  // namespace

void rank(std::vector<Candidate>& candidates) {
  std::erase_if(candidates, [](const Candidate& c) {
    return !std::all_of(c.ms.begin(), c.ms.end(), [](double ms) { return ms < kNever; });
  });
  if (candidates.empty()) return;
  constexpr double kShortest = 1e-6;  // ms; the clock's steps are longer
  std::vector<double> best(candidates.front().ms.size(), kNever);
  for (const Candidate& c : candidates) {
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], c.ms[i]);
  }
  const auto score = [&](const Candidate& c) {
    double sum = 0;
    for (std::size_t i = 0; i < best.size(); ++i) sum += c.ms[i] / std::max(best[i], kShortest);
    return sum;
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&score](const auto& a, const auto& b) { return score(a) < score(b); });
}

cublasLtMatmulAlgo_t find_fastest(const BlasLt& blas, std::span<const Trial> trials, Sums sums,
                                  const Stream& stream) {
  std::vector<Candidate> candidates = candidates_for(blas, trials, sums);
  Stopwatch stopwatch(stream);
  const auto start = std::chrono::steady_clock::now();
  std::size_t n_tried = 0;
  for (Candidate& candidate : candidates) {
    if (n_tried > 0 && std::chrono::steady_clock::now() - start > kPatience) break;
    ++n_tried;
    try {
      for (const Trial& trial : trials) {  // brings the kernel to the device
        blas.run(*trial.described, candidate.algorithm, trial.operands, stream);
      }
      measure(blas, trials, candidate, stopwatch);
    } catch (const Error&) {  // proposed, but refused: it is never the fastest
    }
  }
  rank(candidates);
  if (candidates.empty()) {
    stream.synchronize("a search for algorithms");  // says so when the device is lost
    fail(ErrorKind::kDevice, "cuBLASLt refuses all that it proposes");
  }
  candidates.resize(std::min(candidates.size(), kFinalists));
  for (int round = 0; round < kFinalRounds; ++round) {
    for (Candidate& candidate : candidates) measure(blas, trials, candidate, stopwatch);
  }
  rank(candidates);
  return candidates.front().algorithm;
}

double floor_ms(const TextConfig& config, std::int64_t n_rows, const Stream& stream) {
  constexpr std::int64_t kRotated = std::int64_t{1} << 27;  // weights, several times the cache
  constexpr int kInARow = 24;
  const BlasLt blas;
  const Event start(Event::Timing::kMeasured), end(Event::Timing::kMeasured);
  double sum = 0;
  for (const auto& [product, count] : text_products(config)) {
    const std::int64_t size = product.n_out * product.n_in;
    const std::int64_t n_weights = 1 + kRotated / size;
    const auto x = some_values(n_rows * product.n_in, 1, stream);
    const auto w = some_values(n_weights * size, 2, stream);
    const auto y = some_values(n_rows * product.n_out, 3, stream);
    const Described described(product, n_rows);
    const Trial trial{&described, {.x = x.data(), .w = w.data(), .y = y.data()}};
    const auto algorithm = find_fastest(blas, {&trial, 1}, Sums::kSplit, stream);
    double best = kNever;
    for (int round = 0; round < kFinalRounds; ++round) {
      start.record(stream);
      for (int i = 0; i < kInARow; ++i) {
        const Operands operands{.x = x.data(), .w = w.data() + i % n_weights * size, .y = y.data()};
        blas.run(described, algorithm, operands, stream);
      }
      end.record(stream);
      end.wait();
      best = std::min(best, end.milliseconds_since(start) / kInARow);
    }
    sum += static_cast<double>(count) * best;
  }
  return sum;
}

}  // namespace jemm::gpu
