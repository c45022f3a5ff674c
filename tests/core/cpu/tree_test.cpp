// A row's result depends on its chain alone: trees, batches, orders, threads.
#include <doctest/doctest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "core/cpu/small_checkpoint.h"
#include "core/cpu/support.h"
#include "engine/stages.h"

namespace jemm {
namespace {

using test::logits_alone;
using test::some_tokens;
using Tokens = std::vector<std::int32_t>;

std::array<std::int32_t, 32> small_labels() {
  std::array<std::int32_t, 32> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(37 * i + 5);
  return ids;
}

std::unique_ptr<Engine> small_engine(int n_threads = 1) {
  return make_cpu_engine(std::make_shared<test::SmallCheckpoint>(), small_labels(), n_threads);
}

bool same_bits(const LabelLogits& a, const LabelLogits& b) {
  return std::memcmp(a.data(), b.data(), sizeof a) == 0;
}

// Largest difference as a share of the largest logit.
double distance(const LabelLogits& a, const LabelLogits& b) {
  float difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return static_cast<double>(difference / size);
}

// The prompt cut at the given rows (ascending, repeats allowed) into a chain of segments.
std::int32_t add_chain(Forest& forest, const Tokens& tokens, const std::vector<std::size_t>& cuts) {
  std::int32_t segment = -1;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : tokens.size();
    segment = forest.add(segment, std::span(tokens).subspan(begin, end - begin));
    begin = end;
  }
  return segment;
}

constexpr double kRounding = 2e-5;

void check_cuts(Engine& engine, const Tokens& tokens, const std::vector<std::size_t>& cuts,
                const LabelLogits& whole, double& worst) {
  Forest forest;
  forest.read_last_row(add_chain(forest, tokens, cuts));
  const LabelLogits got = test::forward(engine, forest).front();
  worst = std::max(worst, distance(got, whole));
  CHECK(distance(got, whole) <= kRounding);
  if (std::all_of(cuts.begin(), cuts.end(), [](std::size_t c) { return c % 64 == 0; })) {
    CHECK(same_bits(got, whole));
  }
}

TEST_CASE("a prompt cut in two at any row gives the same logits") {
  const auto engine = small_engine();
  double worst = 0;
  for (const std::int64_t n : {1, 2, 5, 64, 65, 130, 200}) {
    const Tokens tokens = some_tokens(n, static_cast<std::uint32_t>(n));
    const LabelLogits whole = logits_alone(*engine, tokens);
    for (std::size_t cut = 0; cut <= tokens.size(); ++cut) {
      check_cuts(*engine, tokens, {cut}, whole, worst);
    }
  }
  MESSAGE("largest difference, as a share of the largest logit: " << worst);
}

TEST_CASE("a prompt cut in three at any rows gives the same logits") {
  const auto engine = small_engine();
  double worst = 0;
  for (const std::int64_t n : {4, 131, 200}) {
    const Tokens tokens = some_tokens(n, static_cast<std::uint32_t>(n) + 1);
    const LabelLogits whole = logits_alone(*engine, tokens);
    const std::size_t step = n < 10 ? 1 : 13;
    for (std::size_t a = 0; a <= tokens.size(); a += step) {
      for (const std::size_t b :
           {a, a + 1, a + 3, a + 64, (a + tokens.size()) / 2, tokens.size()}) {
        if (b >= a && b <= tokens.size()) check_cuts(*engine, tokens, {a, b}, whole, worst);
      }
    }
    if (n > 128) check_cuts(*engine, tokens, {0, 64, 64, 128, 128}, whole, worst);
  }
}

TEST_CASE("a prompt cut into single rows gives the same logits") {
  const auto engine = small_engine();
  const Tokens tokens = some_tokens(80, 3);
  std::vector<std::size_t> cuts(79);
  for (std::size_t i = 0; i < cuts.size(); ++i) cuts[i] = i + 1;
  double worst = 0;
  check_cuts(*engine, tokens, cuts, logits_alone(*engine, tokens), worst);
}

TEST_CASE("every row count is the same alone and beside others") {
  const auto engine = small_engine();
  std::vector<Tokens> prompts;
  std::vector<LabelLogits> alone;
  for (std::int64_t n = 1; n <= 300; ++n) {
    prompts.push_back(some_tokens(n, static_cast<std::uint32_t>(1000 + n)));
    alone.push_back(logits_alone(*engine, prompts.back()));
  }
  // All of them in one pass, and seven at a time in the opposite order.
  Forest all;
  for (const Tokens& prompt : prompts) all.read_last_row(all.add(-1, prompt));
  const auto together = test::forward(*engine, all);
  for (std::size_t i = 0; i < prompts.size(); ++i) CHECK(same_bits(together[i], alone[i]));
  for (std::size_t end = prompts.size(); end > 0; end -= std::min<std::size_t>(end, 7)) {
    Forest backward;
    for (std::size_t i = end; i > 0 && i + 7 > end; --i) {
      backward.read_last_row(backward.add(-1, prompts[i - 1]));
    }
    const auto group = test::forward(*engine, backward);
    for (std::size_t i = 0; i < group.size(); ++i) CHECK(same_bits(group[i], alone[end - 1 - i]));
  }
}

TEST_CASE("branches leave their parent's state alone") {
  const auto engine = small_engine();
  for (const std::int64_t n_shared : {1, 3, 64, 70, 128, 150}) {
    const Tokens shared = some_tokens(n_shared, 11), s1 = some_tokens(9, 12),
                 s2 = some_tokens(70, 13);
    const auto branches = [&](const std::vector<const Tokens*>& leaves) {
      Forest forest;
      const auto root = forest.add(-1, shared);
      for (const Tokens* leaf : leaves) forest.read_last_row(forest.add(root, *leaf));
      return test::forward(*engine, forest);
    };
    const auto a = branches({&s1, &s2, &s1, &s1});
    const auto b = branches({&s2, &s1});
    CHECK(same_bits(a[0], a[2]));
    CHECK(same_bits(a[0], a[3]));
    CHECK(same_bits(a[0], b[1]));
    CHECK(same_bits(a[1], b[0]));
    Tokens whole = shared;
    whole.insert(whole.end(), s1.begin(), s1.end());
    const LabelLogits unshared = logits_alone(*engine, whole);
    CHECK(distance(a[0], unshared) <= kRounding);
    if (n_shared % 64 == 0) CHECK(same_bits(a[0], unshared));
  }
}

TEST_CASE("a tree of three levels equals its paths, in any order of its branches") {
  const auto engine = small_engine();
  const Tokens root = some_tokens(64, 21), a = some_tokens(64, 22), b = some_tokens(128, 23);
  const std::vector<Tokens> leaves{some_tokens(1, 24), some_tokens(30, 25), some_tokens(90, 26)};
  Forest forest;
  const auto r = forest.add(-1, root);
  const auto node_a = forest.add(r, a), node_b = forest.add(r, b);
  const auto empty = forest.add(node_b, Tokens{});
  std::vector<Tokens> paths;
  for (std::size_t i = leaves.size(); i-- > 0;) {
    forest.read_last_row(forest.add(empty, leaves[i]));
    forest.read_last_row(forest.add(node_a, leaves[i]));
    for (const Tokens* middle : {&b, &a}) {
      Tokens path = root;
      path.insert(path.end(), middle->begin(), middle->end());
      path.insert(path.end(), leaves[i].begin(), leaves[i].end());
      paths.push_back(path);
    }
  }
  forest.read_last_row(r);
  paths.push_back(root);
  forest.read_last_row(empty);
  paths.push_back(root);
  paths.back().insert(paths.back().end(), b.begin(), b.end());
  const auto results = test::forward(*engine, forest);
  REQUIRE(results.size() == paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    CHECK(same_bits(results[i], logits_alone(*engine, paths[i])));
  }
}

TEST_CASE("nothing stays from an earlier pass, even one that failed") {
  const auto engine = small_engine(2);
  const Tokens a = some_tokens(300, 31), b = some_tokens(8, 32);
  const LabelLogits fresh = logits_alone(*engine, b);
  logits_alone(*engine, a);
  CHECK(same_bits(logits_alone(*engine, b), fresh));
  Forest bad;
  bad.read_last_row(bad.add(-1, Tokens{1, 2, 1200}));
  CHECK_THROWS_AS(test::forward(*engine, bad), Error);
  bad.token_ids[2] = -1;
  CHECK_THROWS_AS(test::forward(*engine, bad), Error);
  CHECK(same_bits(logits_alone(*engine, b), fresh));
}

TEST_CASE("one thread and several give the same bits") {
  const auto one = small_engine(1), two = small_engine(2), five = small_engine(5);
  CHECK(one->fingerprint() == five->fingerprint());
  Forest forest;
  const auto root = forest.add(-1, some_tokens(200, 41));
  for (std::int64_t n = 0; n < 40; n += 3) {
    forest.read_last_row(forest.add(root, some_tokens(n, static_cast<std::uint32_t>(n))));
  }
  const auto a = test::forward(*one, forest), b = test::forward(*two, forest),
             c = test::forward(*five, forest);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(same_bits(a[i], b[i]));
    CHECK(same_bits(a[i], c[i]));
  }
}

class CountingTap : public Tap {
 public:
  void observe(std::string_view stage, std::int64_t row, std::span<const float> values) override {
    seen.push_back(std::string(stage) + " " + std::to_string(row) + " " +
                   std::to_string(values.size()));
  }
  std::vector<std::string> seen;
};

TEST_CASE("watching shows every stage once and changes nothing") {
  const auto engine = small_engine();
  Forest forest;
  const auto root = forest.add(-1, some_tokens(20, 51));
  forest.read_last_row(forest.add(root, some_tokens(5, 52)));
  forest.read_last_row(root);
  CountingTap tap;
  const auto watched = test::forward(*engine, forest, &tap),
             unwatched = test::forward(*engine, forest);
  CHECK(same_bits(watched[0], unwatched[0]));
  CHECK(same_bits(watched[1], unwatched[1]));
  std::vector<std::string> expected;
  for (const char* stage : {"layer.00", "layer.01", "layer.02", "layer.03", "final_norm"}) {
    expected.push_back(std::string(stage) + " 24 24");
    expected.push_back(std::string(stage) + " 19 24");
  }
  CHECK(tap.seen == expected);
}

TEST_CASE("a model that ends in a delta-rule layer reads the same rows") {
  ModelConfig config = test::small_config();
  config.text.layer_types.pop_back();
  const auto engine =
      make_cpu_engine(std::make_shared<test::SmallCheckpoint>(config), small_labels(), 1);
  const Tokens tokens = some_tokens(150, 61);
  Forest forest;
  const auto root = forest.add(-1, std::span(tokens).first(128));
  forest.read_last_row(forest.add(root, std::span(tokens).subspan(128)));
  forest.read_last_row(root);
  const auto both = test::forward(*engine, forest);
  CHECK(same_bits(both[0], logits_alone(*engine, tokens)));
  CHECK(same_bits(both[1], logits_alone(*engine, Tokens(tokens.begin(), tokens.begin() + 128))));
}

TEST_CASE("nothing to read, nothing computed") {
  const auto engine = small_engine();
  CHECK(test::forward(*engine, Forest{}).empty());
  Forest forest;
  forest.add(-1, some_tokens(3, 1));
  CHECK(test::forward(*engine, forest).empty());
}

TEST_CASE("labels outside the vocabulary are refused, a tied head reads the embedding") {
  auto labels = small_labels();
  labels[31] = 1200;
  CHECK_THROWS_AS(make_cpu_engine(std::make_shared<test::SmallCheckpoint>(), labels, 1), Error);

  ModelConfig config = test::small_config();
  config.tied_head = true;
  const auto tied = std::make_shared<test::SmallCheckpoint>(config);
  const auto untied = std::make_shared<test::SmallCheckpoint>();
  const TensorRegistry registry(config);
  for (const TensorInfo& info : registry.tensors()) {
    if (info.name.find("visual") == std::string::npos) {
      untied->values_of(info.name) = tied->values_of(info.name);
    }
  }
  untied->values_of("lm_head.weight") = tied->values_of("model.language_model.embed_tokens.weight");
  untied->remove_lora();
  tied->remove_lora();
  const Tokens tokens = some_tokens(10, 71);
  CHECK(same_bits(logits_alone(*make_cpu_engine(tied, small_labels(), 1), tokens),
                  logits_alone(*make_cpu_engine(untied, small_labels(), 1), tokens)));
}

// An embedding of 200 million rows, 4.8 billion elements, of which two pages exist.
class HugeVocabulary : public test::SmallCheckpoint {
 public:
  static constexpr std::int64_t kRows = 200'000'000, kWidth = 24;
  HugeVocabulary() {
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    const Tensor small = SmallCheckpoint::tensor(kName);
    std::memcpy(static_cast<char*>(memory_) + (kRows - 1) * kWidth * 2,
                small.data.bytes.data() + 5 * kWidth * 2, kWidth * 2);
  }
  ~HugeVocabulary() override { ::munmap(memory_, kBytes); }
  Tensor tensor(std::string_view name) const override {
    if (name != kName) return SmallCheckpoint::tensor(name);
    return {
        DType::kBf16, {kRows, kWidth}, {{static_cast<const std::byte*>(memory_), kBytes}, nullptr}};
  }

 private:
  static constexpr std::string_view kName = "model.language_model.embed_tokens.weight";
  static constexpr std::size_t kBytes = std::size_t{kRows} * kWidth * 2;
  void* memory_ = nullptr;
};

TEST_CASE("rows behind 2^31 elements are found") {
  const auto engine = make_cpu_engine(std::make_shared<HugeVocabulary>(), small_labels(), 1);
  CHECK(same_bits(logits_alone(*engine, Tokens{HugeVocabulary::kRows - 1}),
                  logits_alone(*small_engine(), Tokens{5})));
}

TEST_CASE("not-a-number is not hidden") {
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  checkpoint->values_of("model.language_model.layers.1.self_attn.q_norm.weight")[0] = NAN;
  const auto engine = make_cpu_engine(checkpoint, small_labels(), 1);
  for (const float x : logits_alone(*engine, some_tokens(5, 81))) CHECK(std::isnan(x));
}

}  // namespace
}  // namespace jemm
