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

/// Element i = value(u), u = mix(lo32(i) ^ mix(s + hi32(i))) / 2^32, rounded to float, then to T.
template <typename T, typename Value>
Blob fill(std::size_t count, std::uint32_t s, const Value& value) {
  const std::shared_ptr<T[]> values = std::make_shared_for_overwrite<T[]>(count);
  T* const out = values.get();
  in_parallel(count, [out, s, &value](std::size_t begin, std::size_t end) {
    while (begin < end) {
      const std::uint32_t high = static_cast<std::uint32_t>(begin >> 32);
      const std::size_t stop = std::min(end, (begin | 0xffffffffU) + 1);
      const std::uint32_t lead = synthetic_mix(s + high);
      for (std::size_t i = begin; i < stop; ++i) {
        const double u = synthetic_mix(static_cast<std::uint32_t>(i) ^ lead) * 0x1p-32;
        const auto rounded = static_cast<float>(value(u));
        if constexpr (std::is_same_v<T, float>) {
          out[i] = rounded;
        } else {
          out[i] = float_to_bf16(rounded);
        }
      }
      begin = stop;
    }
  });
  return {std::as_bytes(std::span<const T>(out, count)), values};
}

/// The tensor of value(u) = centre + (2u - 1) * width.
template <typename T>
Tensor affine(DType dtype, const Shape& shape, std::uint32_t s, double centre, double width) {
  const auto value = [centre, width](double u) { return centre + (2 * u - 1) * width; };
  return {dtype, shape, fill<T>(static_cast<std::size_t>(element_count(shape)), s, value)};
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

Tensor synthetic_tensor(const TensorInfo& info, std::uint32_t seed) {
  const SyntheticFormula formula = synthetic_formula(info, seed);
  const std::uint32_t s = formula.name_hash;
  const auto count = static_cast<std::size_t>(element_count(info.shape));
  switch (formula.kind) {
    case SyntheticFormula::Kind::kSpread:
      return affine<std::uint16_t>(DType::kBf16, info.shape, s, formula.centre, formula.width);
    case SyntheticFormula::Kind::kLogDecay: {
      const auto value = [](double u) { return std::log(0.01 + u * 15.99); };
      return {DType::kBf16, info.shape, fill<std::uint16_t>(count, s, value)};
    }
    case SyntheticFormula::Kind::kTimeBias: {
      const auto value = [](double u) { return 5 * u - 4; };
      return {DType::kBf16, info.shape, fill<std::uint16_t>(count, s, value)};
    }
  }
  fail(ErrorKind::kInput, "no formula for tensor {}", info.name);
}

Tensor synthetic_lora(const AdapterTarget& target, std::string_view suffix, std::uint32_t seed) {
  const std::string name = fmt::format("{}{}{}", kAdapterPrefix, target.module(), suffix);
  const std::uint32_t s = fnv1a(name) ^ seed;
  const bool is_a = suffix == kLoraA;
  const Shape shape = is_a ? target.a_shape() : target.b_shape();
  return affine<float>(DType::kF32, shape, s, 0, is_a ? fan_in_width(shape) : 0.02);
}

}  // namespace jemm
