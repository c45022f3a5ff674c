// The CUDA engine against the CPU engine and the pinned reference, and what it promises of itself.
#include "gpu/cuda_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "checkpoint/registry.h"
#include "core/cpu/small_checkpoint.h"
#include "core/cpu/support.h"
#include "engine/stages.h"
#include "gpu/forests.h"
#include "gpu/loader.h"
#include "gpu/support.h"

namespace jemm {
namespace {

class StageTap : public Tap {
 public:
  void observe(std::string_view stage, std::int64_t row, std::span<const float> values) override {
    order.emplace_back(stage, row);
    stages[order.back()].assign(values.begin(), values.end());
  }
  std::vector<std::pair<std::string, std::int64_t>> order;
  std::map<std::pair<std::string, std::int64_t>, std::vector<float>> stages;
};

std::array<std::int32_t, 32> small_labels() {
  std::array<std::int32_t, 32> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(37 * i + 5);
  return ids;
}

// The ends of all chains, and the first of them once more.
Forest with_reads(Forest forest) {
  for (std::size_t i = 0; i < forest.segments.size(); ++i) {
    const Segment& s = forest.segments[i];
    if (s.n_before + s.n_rows > 0) forest.read_last_row(static_cast<std::int32_t>(i));
  }
  forest.read_rows.push_back(forest.read_rows.front());
  return forest;
}

double rms_ratio(const std::vector<float>& x, const std::vector<float>& reference) {
  return test::rms_ratio(x, std::vector<double>(reference.begin(), reference.end()));
}

// Stage by stage, so that what fails first is what is wrong.
void compare(Engine& cuda, Engine& cpu, const Forest& forest, double budget) {
  StageTap tap, expected_tap;
  const auto got = test::forward(cuda, forest, &tap);
  const auto expected = test::forward(cpu, forest, &expected_tap);
  CHECK(tap.order == expected_tap.order);
  std::map<std::string, double> worst;
  for (const auto& [key, values] : expected_tap.stages) {
    worst[key.first] = std::max(worst[key.first], rms_ratio(tap.stages.at(key), values));
  }
  double logits = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    logits = std::max(logits, rms_ratio({got[i].begin(), got[i].end()},
                                        {expected[i].begin(), expected[i].end()}));
  }
  std::string report = "logits " + std::to_string(logits);
  for (const auto& [stage, ratio] : worst) {
    report += ", " + stage + " " + std::to_string(ratio);
    CHECK_MESSAGE(ratio <= budget, stage);
  }
  MESSAGE(report);
  CHECK(logits <= budget);
  // Watching changes nothing.
  CHECK(test::forward(cuda, forest) == got);
}

TEST_CASE("the CUDA engine agrees with the CPU engine") {
  if (!test::has_device()) return;
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  const auto cpu = make_cpu_engine(checkpoint, small_labels(), 2);
  const auto fp32 = make_cuda_engine(checkpoint, small_labels(), {.precision = Precision::kFp32});
  const auto bf16 = make_cuda_engine(checkpoint, small_labels(), {.precision = Precision::kBf16});
  for (const auto& [name, forest] : test::odd_forests()) {
    CAPTURE(name);
    const Forest reading = with_reads(forest);
    compare(*fp32, *cpu, reading, 2e-5);
    compare(*bf16, *cpu, reading, 0.1);
  }
}

TEST_CASE("without an adapter") {
  if (!test::has_device()) return;
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  checkpoint->remove_lora();
  checkpoint->set_dtype(DType::kF32);
  const auto cpu = make_cpu_engine(checkpoint, small_labels(), 2);
  const auto fp32 = make_cuda_engine(checkpoint, small_labels(), {.precision = Precision::kFp32});
  compare(*fp32, *cpu, with_reads(test::forest_of({{-1, 70}, {0, 3}})), 2e-5);
}

TEST_CASE("in deterministic mode a row depends on its chain alone") {
  if (!test::has_device()) return;
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  for (const Precision precision : {Precision::kBf16, Precision::kFp32}) {
    const auto engine = make_cuda_engine(checkpoint, small_labels(),
                                         {.precision = precision, .deterministic = true});
    const auto tokens = test::meaningless_tokens(150, 9);
    const LabelLogits alone = test::logits_alone(*engine, tokens);
    Forest forest;
    forest.add(-1, test::meaningless_tokens(33, 4));
    const std::int32_t root = forest.add(-1, std::span(tokens).first(64));
    forest.add(root, test::meaningless_tokens(700, 5));
    forest.read_last_row(forest.add(root, std::span(tokens).subspan(64)));
    CHECK(test::forward(*engine, forest).front() == alone);
    for (int i = 0; i < 10; ++i) CHECK(test::logits_alone(*engine, tokens) == alone);
  }
}

TEST_CASE("a pass that comes again gives the same bits, as a graph or not") {
  if (!test::has_device()) return;
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  const auto forests = test::odd_forests();
  for (const bool deterministic : {false, true}) {
    const auto plain = make_cuda_engine(checkpoint, small_labels(),
                                        {.deterministic = deterministic, .graphs = false});
    const auto graphs = make_cuda_engine(checkpoint, small_labels(),
                                         {.deterministic = deterministic, .graphs = true});
    std::vector<std::vector<LabelLogits>> expected;
    // Short ones first, so that buffers grow under the graphs.
    for (int round = 0; round < 4; ++round) {
      for (std::size_t i = 0; i < forests.size(); ++i) {
        CAPTURE(forests[i].name);
        Forest forest = with_reads(forests[i].forest);
        if (round == 0) expected.push_back(test::forward(*plain, forest));
        if (deterministic) CHECK(test::forward(*graphs, forest) == expected[i]);
        const auto first = test::forward(*graphs, forest);
        CHECK(test::forward(*graphs, forest) == first);
        // The same launches with other tokens.
        const std::vector<std::int32_t> tokens = forest.token_ids;
        for (std::int32_t& id : forest.token_ids) id = (id + 1) % 1200;
        CHECK(test::forward(*graphs, forest) != first);
        forest.token_ids = tokens;
        StageTap tap;
        StageTimes times;
        CHECK(graphs->forward(forest, {}, times, &tap) == first);
        CHECK_FALSE(tap.stages.empty());
      }
    }
  }
}

TEST_CASE("a pass too large for the memory leaves room for others") {
  if (!test::has_device()) return;
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  const auto engine = make_cuda_engine(checkpoint, small_labels(), {.deterministic = true});
  Forest small = test::forest_of({{-1, 70}}), large = test::forest_of({{-1, 300'000}});
  small.read_last_row(0);
  large.read_last_row(0);
  const auto expected = test::forward(*engine, small);
  const test::HeldMemory held(96);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(test::forward(*engine, large), OutOfMemory);
    CHECK(test::forward(*engine, small) == expected);
  }
}

TEST_CASE("unusable forests and devices are refused") {
  if (!test::has_device()) return;
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  const auto engine = make_cuda_engine(checkpoint, small_labels());
  Forest forest = test::forest_of({{-1, 3}});
  CHECK(test::forward(*engine, forest).empty());
  forest.read_last_row(0);
  forest.token_ids[1] = 1200;
  CHECK_THROWS_AS(test::forward(*engine, forest), Error);
  CHECK_FALSE(cuda_presence(1000).usable);
  CHECK_THROWS_AS(make_cuda_engine(checkpoint, small_labels(), {.device = 1000}), Error);
}

TEST_CASE("weights arrive as they are, from files and from the formula") {
  if (!test::has_device()) return;
  const auto check = [](const Checkpoint& checkpoint) {
    gpu::Loader loader(checkpoint);
    const TensorRegistry registry(checkpoint.config());
    for (const TensorInfo& info : registry.tensors()) {
      const std::vector<float> expected = loader.floats(info.name);
      gpu::DeviceArray<float> device(std::ssize(expected));
      CHECK(loader.tensor(info.name, device.data()) == std::ssize(expected));
      std::vector<float> got(expected.size());
      gpu::copy_to_host(got.data(), device.data(), got.size() * sizeof(float), loader.stream());
      loader.finish();
      CHECK_MESSAGE(test::same_bits(got, expected), info.name);
    }
  };
  check(*test::open_fixture("tiny-a"));
  check(*open_synthetic(test::fixture_files("tiny-a"), 1));
  check(*open_synthetic(test::fixture_files("tiny-a"), 77));
}

TEST_CASE("without a device the engine says so") {
  int n = 0;
  if (cudaGetDeviceCount(&n) == cudaSuccess && n > 0) return;
  CHECK_FALSE(cuda_presence().usable);
  CHECK_FALSE(cuda_presence().reason.empty());
  CHECK_THROWS_AS(make_cuda_engine(std::make_shared<test::SmallCheckpoint>(), small_labels()),
                  Error);
}

}  // namespace
}  // namespace jemm
