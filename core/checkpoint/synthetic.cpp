// Fills tensors by the formula, in parallel.
#include "checkpoint/synthetic.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "base/error.h"

namespace jemm {
namespace {

std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 0x811c9dc5U;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193U;
  return hash;
}

/// Calls work(begin, end) for parts of [0, count) at the same time; small counts in one part.
template <typename Work>
void in_parallel(std::size_t count, const Work& work) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  const std::size_t n_parts =
      std::clamp<std::size_t>(count / kPart, 1, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> parts;
  for (std::size_t i = 1; i < n_parts; ++i) {
    parts.push_back(std::async(std::launch::async, [&work, i, count, n_parts] {
      work(count / n_parts * i, i + 1 == n_parts ? count : count / n_parts * (i + 1));
    }));
  }
  work(0, n_parts == 1 ? count : count / n_parts);
  for (std::future<void>& part : parts) part.get();
}

/// out[i] = value(u) of element begin + i, u = mix(lo32 ^ mix(s + hi32)) / 2^32, rounded to float,
/// then to T.
template <typename T, typename Value>
void fill(std::span<T> out, std::uint64_t first, std::uint32_t s, const Value& value) {
  in_parallel(out.size(), [out, first, s, &value](std::size_t from, std::size_t to) {
    std::uint64_t begin = first + from;
    const std::uint64_t end = first + to;
    while (begin < end) {
      const std::uint32_t high = static_cast<std::uint32_t>(begin >> 32);
      const std::uint64_t stop = std::min(end, (begin | 0xffffffffU) + 1);
      const std::uint32_t lead = synthetic_mix(s + high);
      for (std::uint64_t i = begin; i < stop; ++i) {
        const double u = synthetic_mix(static_cast<std::uint32_t>(i) ^ lead) * 0x1p-32;
        const auto rounded = static_cast<float>(value(u));
        if constexpr (std::is_same_v<T, float>) {
          out[static_cast<std::size_t>(i - first)] = rounded;
        } else {
          out[static_cast<std::size_t>(i - first)] = float_to_bf16(rounded);
        }
      }
      begin = stop;
    }
  });
}

/// A tensor whose values fill_all(span) makes.
template <typename T, typename FillAll>
Tensor filled(DType dtype, const Shape& shape, const FillAll& fill_all) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  const std::shared_ptr<T[]> values = std::make_shared_for_overwrite<T[]>(count);
  fill_all(std::span<T>(values.get(), count));
  return {dtype, shape, {std::as_bytes(std::span<const T>(values.get(), count)), values}};
}

/// value(u) = centre + (2u - 1) * width.
auto affine(double centre, double width) {
  return [centre, width](double u) { return centre + (2 * u - 1) * width; };
}

double fan_in_width(const Shape& shape) {
  const std::int64_t fan_in = element_count(Shape(shape.begin() + 1, shape.end()));
  return std::sqrt(3.0 / static_cast<double>(fan_in));
}

}  // namespace

SyntheticFormula synthetic_formula(const TensorInfo& info, std::uint32_t seed) {
  const std::uint32_t s = fnv1a(info.name) ^ seed;
  const auto spread = [s](double centre, double width) {
    return SyntheticFormula{SyntheticFormula::Kind::kSpread, s, centre, width};
  };
  switch (info.role) {
    case TensorRole::kLinear:
      return spread(0, fan_in_width(info.shape));
    case TensorRole::kHead:
      return spread(0, 2 * fan_in_width(info.shape));
    case TensorRole::kEmbedding:
      return spread(0, std::sqrt(3.0));
    case TensorRole::kPositionEmbedding:
      return spread(0, 0.5);
    case TensorRole::kOffsetNorm:
      return spread(0, 0.1);
    case TensorRole::kGatedNorm:
    case TensorRole::kLayerNorm:
      return spread(1, 0.1);
    case TensorRole::kBias:
      return spread(0, 0.05);
    case TensorRole::kConvolution:
      return spread(0, std::sqrt(3.0 / 4));
    case TensorRole::kLogDecay:
      return {SyntheticFormula::Kind::kLogDecay, s};
    case TensorRole::kTimeBias:
      return {SyntheticFormula::Kind::kTimeBias, s};
  }
  fail(ErrorKind::kInput, "no formula for tensor {}", info.name);
}

void synthetic_elements(const TensorInfo& info, std::uint32_t seed, std::uint64_t begin,
                        std::span<std::byte> out) {
  const SyntheticFormula formula = synthetic_formula(info, seed);
  const std::span values(reinterpret_cast<std::uint16_t*>(out.data()), out.size() / 2);
  const auto by = [&](const auto& value) { fill(values, begin, formula.name_hash, value); };
  switch (formula.kind) {
    case SyntheticFormula::Kind::kSpread:
      return by(affine(formula.centre, formula.width));
    case SyntheticFormula::Kind::kLogDecay:
      return by([](double u) { return std::log(0.01 + u * 15.99); });
    case SyntheticFormula::Kind::kTimeBias:
      return by([](double u) { return 5 * u - 4; });
  }
}

Tensor synthetic_tensor(const TensorInfo& info, std::uint32_t seed) {
  return filled<std::uint16_t>(DType::kBf16, info.shape, [&](std::span<std::uint16_t> out) {
    synthetic_elements(info, seed, 0, std::as_writable_bytes(out));
  });
}

Tensor synthetic_lora(const AdapterTarget& target, std::string_view suffix, std::uint32_t seed) {
  const std::string name = fmt::format("{}{}{}", kAdapterPrefix, target.module(), suffix);
  const std::uint32_t s = fnv1a(name) ^ seed;
  const bool is_a = suffix == kLoraA;
  const Shape shape = is_a ? target.a_shape() : target.b_shape();
  return filled<float>(DType::kF32, shape, [&](std::span<float> out) {
    fill(out, 0, s, affine(0, is_a ? fan_in_width(shape) : 0.02));
  });
}

}  // namespace jemm
