// The parts of jemm bench apart: modes, prompts of exact lengths, the clock around an engine.
#include <doctest/doctest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "bench/report.h"
#include "bench_modes.h"
#include "bench_prompts.h"
#include "bench_subject.h"

namespace jemm::cli {
namespace {

std::vector<Mode> modes(const std::string& compare) {
  return make_modes({}, compare);
}

/// The tokens of every prompt of a body.
std::vector<std::size_t> prompt_lengths(const Encoder& encoder, const std::string& body) {
  ImageCache cache(0);
  StageTimes times;
  EncodedRequest request = encoder.open(body, {}, ImageHashes::kSkip, cache, times);
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < request.request.question_count(); ++i) {
    lengths.push_back(encoder.encode(request, i, times).token_ids.size());
  }
  return lengths;
}

/// Takes known times and, in its n-th pass, gives another answer.
class FakeEngine : public Engine {
 public:
  explicit FakeEngine(std::string& order, char name, double text_ms)
      : order_(order), name_(name), text_ms_(text_ms) {}

  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches>, StageTimes&) override {
    return {};
  }

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr>,
                                   StageTimes& times, Tap*) override {
    order_ += name_;
    if (static_cast<int>(forest.token_ids.size()) > most_rows) throw OutOfMemory("too many rows");
    {
      const StageTimer timer(times[Stage::kText]);
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(text_ms_));
    }
    LabelLogits logits{};
    logits[0] = ++n_passes_ == faulty_pass ? -9.0F : 1.0F;
    return std::vector<LabelLogits>(forest.read_rows.size(), logits);
  }

  const std::string& fingerprint() const override { return fingerprint_; }

  int faulty_pass = -1;
  int most_rows = 1'000'000;

 private:
  std::string& order_;
  std::string fingerprint_ = "fake";
  char name_;
  double text_ms_;
  int n_passes_ = 0;
};

struct Pair {
  const Encoder encoder = open_encoder(open_embedded_model(), {});
  const DecisionConfig decision{.temperature = 1, .mm_temperature = 1, .threshold = 0.5};
  const std::vector<BenchRequest> requests = {
      {.id = "1",
       .body = make_body(encoder, {.n_tokens = 120, .n_questions = 2}),
       .image_files = {},
       .error = {}}};
  std::string order;
  FakeEngine a{order, 'A', 30}, b{order, 'B', 10};

  Result measure_both() {
    RequestSubject first(encoder, a, decision, {}, requests);
    RequestSubject second(encoder, b, decision, {}, requests);
    Subject* const subjects[] = {&first, &second};
    Result result{.workload = {},
                  .modes = {},
                  .operations = {0, 0},
                  .floor_ms = {std::nullopt, std::nullopt}};
    result.modes = measure(subjects, {.seconds = 0, .n_runs = 4, .n_warm_up = 0},
                           {.now_s = [] { return 0.0; },
                            .stop = [] { return false; },
                            .after_run = [](std::size_t, RunKind, RunSample&) {}});
    return result;
  }
};

}  // namespace

TEST_CASE("a mode is the common settings with one of them set") {
  CHECK(modes("").size() == 1);
  CHECK(modes("")[0].name.empty());
  const std::vector<Mode> two = modes("deterministic=off,on");
  REQUIRE(two.size() == 2);
  CHECK(two[1].name == "deterministic=on");
  CHECK_FALSE(two[0].engine.deterministic);
  CHECK(two[1].engine.deterministic);
  CHECK(modes("batch-tokens=64,128,256")[2].passes.batch_tokens == 256);
  CHECK(modes("graphs=on,off")[0].engine.graphs);
  CHECK_FALSE(modes("graphs=on,off")[1].engine.graphs);
  CHECK(modes("reuse=off,file")[1].passes.mode == PrefixReuse::kFile);
  CHECK(modes("model=a,b+c")[1].model.model == "b+c");
  CHECK(modes("precision=fp32,bf16")[1].engine.precision == "bf16");
  CHECK(modes("device=cpu,cuda:1")[1].engine.device == "cuda:1");
  for (const char* text : {"=", "model", "model=", "model=a", "model=a,", "threads=0,1",
                           "threads=1,2000", "batch-tokens=1,x", "deterministic=yes,no",
                           "device=cpu,gpu", "precision=fp32,fp16", "Model=a,b", "reuse=off,all"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(modes(text), Error);
  }
}

TEST_CASE("modes that are the same on this machine are refused") {
  Mode cpu;
  cpu.engine.device = "cpu";
  const auto check = [&](const std::string& compare, const std::vector<std::string>& weights) {
    check_modes_differ(make_modes(cpu, compare), weights);
  };
  CHECK_THROWS_AS(check("deterministic=off,on", {"w", "w"}), Error);
  CHECK_THROWS_AS(check("model=a,./a", {"w", "w"}), Error);
  check("threads=1,2", {"w", "w"});
  check("model=a,b", {"w", "v"});
}

TEST_CASE("an engine is shared unless the engine differs") {
  const std::vector<Mode> passes = modes("batch-tokens=64,128");
  CHECK(share_engine(passes[0], passes[1]));
  const std::vector<Mode> threads = modes("threads=1,2");
  CHECK_FALSE(share_engine(threads[0], threads[1]));
}

TEST_CASE("prompts have exactly the tokens asked for, whatever the size") {
  const Encoder encoder = open_encoder(open_embedded_model(), {});
  for (std::int64_t n = 90; n < 160; ++n) {
    CHECK(prompt_lengths(encoder, make_body(encoder, {.n_tokens = n})) ==
          std::vector<std::size_t>{static_cast<std::size_t>(n)});
  }
  CHECK(prompt_lengths(encoder, make_body(encoder, {.n_tokens = 8192}))[0] == 8192);
  const std::string many = make_body(
      encoder, {.n_tokens = 700, .n_questions = 40, .n_candidates = 32, .images = {320, 256, 2}});
  CHECK(prompt_lengths(encoder, many) == std::vector<std::size_t>(40, 700));
  const auto body = nlohmann::json::parse(many);
  CHECK(body["questions"]["q1"]["criteria"].size() == 32);
  CHECK(body["questions"]["q1"]["instructions"] != body["questions"]["q2"]["instructions"]);
  CHECK(body["images"][0] != body["images"][1]);
  CHECK(make_body(encoder, {.n_tokens = 200}) == make_body(encoder, {.n_tokens = 200}));
}

TEST_CASE("engine, stages and total of a run; what was computed") {
  Pair pair;
  RequestSubject subject(pair.encoder, pair.a, pair.decision, {}, pair.requests);
  Outputs outputs;
  const RunSample sample = subject.run(outputs);
  CHECK(sample.engine_ms >= 30);
  CHECK(sample.total_ms > sample.engine_ms);
  CHECK(std::abs(sample.other_ms()) < 0.02 * sample.total_ms);
  CHECK(sample.work.pass_rows == std::vector<std::int64_t>{240});
  CHECK(sample.work.n_read == 2);
  CHECK(subject.n_tokens() == 240);
  CHECK(subject.n_questions() == 2);
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[1].name == "request 1, question q2");
  CHECK(outputs[1].probabilities[0] == doctest::Approx(0.731059));
}

TEST_CASE("what is prepared while the engine computes is overlap") {
  const Pair pair;
  std::string order;
  FakeEngine engine(order, 'A', 60);
  const std::vector<BenchRequest> requests(
      3, {.id = "1",
          .body = make_body(pair.encoder, {.n_tokens = 8000, .n_questions = 64}),
          .image_files = {},
          .error = {}});
  RequestSubject subject(pair.encoder, engine, pair.decision, {.batch_tokens = 64 * 8000},
                         requests);
  Outputs outputs;
  const RunSample sample = subject.run(outputs);
  CHECK(order == "AAA");
  // Two of three requests are read while a pass is computed.
  CHECK(sample.overlap_ms > sample.stages[Stage::kTokenize] / 4);
  CHECK(sample.overlap_ms < sample.engine_ms);
  CHECK(sample.total_ms >= sample.engine_ms);
  CHECK(std::abs(sample.other_ms()) < 0.05 * sample.total_ms);
}

TEST_CASE("a pass for which memory ran out is not counted beside those in its place") {
  Pair pair;
  pair.a.most_rows = 120;
  RequestSubject subject(pair.encoder, pair.a, pair.decision, {}, pair.requests);
  Outputs outputs;
  CHECK(subject.run(outputs).work.pass_rows == std::vector<std::int64_t>{120, 120});
  CHECK(pair.order == "AAA");
  CHECK(subject.n_refused() == 0);
}

TEST_CASE("engines take turns, and a fault in one answer takes the speed-up away") {
  Pair pair;
  const Comparison sound = compare_modes(pair.measure_both(), 1, 0.01);
  CHECK(pair.order == "ABABBAABBA");
  CHECK(sound.is_sound);
  CHECK(sound.total.value > 2);

  Pair faulty;
  faulty.b.faulty_pass = 3;
  const Comparison unsound = compare_modes(faulty.measure_both(), 1, 0.01);
  CHECK_FALSE(unsound.is_sound);
  CHECK(unsound.drift.largest > 0.7);
}

TEST_CASE("refusals and unreadable lines are outputs too") {
  const Pair pair;
  std::string order;
  FakeEngine engine(order, 'A', 0);
  const std::vector<BenchRequest> requests = {
      {.id = "\"a\"", .body = "{}", .image_files = {}, .error = {}},
      {.id = "2", .body = {}, .image_files = {}, .error = Error::request("ValueError", "torn")},
      pair.requests[0]};
  RequestSubject subject(pair.encoder, engine, pair.decision, {}, requests);
  Outputs outputs;
  subject.run(outputs);
  CHECK(subject.n_refused() == 2);
  CHECK(subject.first_refusal() == "request \"a\": ValueError: no questions");
  REQUIRE(outputs.size() == 4);
  CHECK(outputs[1].name == "request 2");
  CHECK(outputs[1].refusal == "ValueError: torn");
}

}  // namespace jemm::cli
