// Passes on the engine's thread: the next one is prepared meanwhile, and nothing depends on when an
// engine is through.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <random>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "evaluate/counting_engine.h"
#include "evaluate/evaluator.h"

namespace jemm {
namespace {

using Permits = std::counting_semaphore<1'000'000>;
constexpr std::ptrdiff_t kEnough = 100'000;

/// Fails a test that would otherwise wait for ever.
void take_one(Permits& permits) {
  if (!permits.try_acquire_for(std::chrono::seconds(60))) throw std::runtime_error("stuck");
}

/// Every forward begins by telling so and waits for its permit. A question's logits tell how many
/// rows its prompt has.
class GatedEngine : public CountingEngine {
 public:
  GatedEngine() : CountingEngine(64) {}

  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images,
                                    StageTimes& times) override {
    n_seen += static_cast<int>(images.size());
    for (const ImagePatches& image : images) sum += image.values.front() + image.values.back();
    return CountingEngine::vision(images, times);
  }

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr> images,
                                   StageTimes& times, Tap* tap) override {
    begun.release();
    take_one(permits);
    threads.insert(std::this_thread::get_id());
    const int number = static_cast<int>(passes.size()) + 1;
    passes.push_back(forest.n_rows());
    if (delay) delay();
    ++n_through;
    for (const VisionRowsPtr& image : images) sum += static_cast<double>(image->n_rows());
    if (number == faulty_pass) fail(ErrorKind::kDevice, "pass {} is faulty", number);
    if (number == strange_pass) throw std::out_of_range("strange");
    if (forest.n_rows() > most_rows) throw OutOfMemory("too many rows");
    std::vector<LabelLogits> results = CountingEngine::forward(forest, images, times, tap);
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i][0] =
          static_cast<float>(forest.positions[static_cast<std::size_t>(forest.read_rows[i])][0]) /
          100;
    }
    return results;
  }

  int faulty_pass = 0, strange_pass = 0;
  std::int64_t most_rows = 1 << 30;
  std::function<void()> delay;
  Permits begun{0}, permits{0};
  std::atomic<std::uint64_t> n_through = 0;
  // Of the passes, in their order; to be read when none is under way.
  std::vector<std::int64_t> passes;
  std::set<std::thread::id> threads;
  int n_seen = 0;
  double sum = 0;
};

struct Run {
  explicit Run(const EvaluatorOptions& options = {.batch_tokens = 1})
      : evaluator(std::make_unique<Evaluator>(
            encoder, engine,
            DecisionConfig{.temperature = 1, .mm_temperature = 2, .threshold = 0.5}, options,
            [this](RequestResult&& result) {
              if (static_cast<int>(results.size()) == refused_result) {
                fail(ErrorKind::kIo, "no room for the line");
              }
              results.push_back(std::move(result));
            })) {}

  void submit(int n_words, const std::vector<std::string>& images = {}) {
    nlohmann::json body{{"state", state(n_words)},
                        {"questions", {{"q", {{"criteria", {{"a", "a"}, {"b", "b"}}}}}}}};
    if (!images.empty()) body["images"] = images;
    evaluator->submit(body.dump());
  }
  static std::string state(int n_words) {
    std::string text;
    for (int i = 0; i < n_words; ++i) text += "word ";
    return text;
  }
  /// Their lengths rise, so that their results tell which they are.
  void check_in_order(std::size_t n) const {
    REQUIRE(results.size() == n);
    for (std::size_t i = 1; i < n; ++i) {
      CHECK(results[i].input_tokens > results[i - 1].input_tokens);
      CHECK(results[i].questions.at(0).answer.probabilities.at(0) >
            results[i - 1].questions.at(0).answer.probabilities.at(0));
    }
  }

  Encoder encoder{*open_directory(std::string(JEMM_SOURCE_DIR) + "/fixtures/tiny-a/base")};
  GatedEngine engine;
  std::vector<RequestResult> results;
  int refused_result = -1;
  std::unique_ptr<Evaluator> evaluator;
};

// 1 x 1 PNG files.
const std::string kBlack =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmC"
    "C";
const std::string kWhite =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/"
    "AAX+Av4N70a4AAAAAElFTkSuQmCC";

TEST_CASE("a pass is prepared and waits for the engine while another is computed") {
  Run run;
  run.submit(1);
  run.submit(2);  // fills the first pass
  take_one(run.engine.begun);
  run.submit(3);  // fills the second
  CHECK(run.evaluator->summary().n_passes == 2);
  CHECK(run.engine.n_through == 0);
  CHECK(run.results.empty());
  run.engine.permits.release();
  run.submit(4);  // the third takes the second's place, so the first is through
  CHECK(run.evaluator->summary().n_passes == 3);
  run.check_in_order(1);
  CHECK(run.evaluator->in_flight() == 3);
  run.engine.permits.release(kEnough);
  run.evaluator->flush();
  run.check_in_order(4);
  CHECK(run.engine.threads.size() == 1);
  CHECK_FALSE(run.engine.threads.contains(std::this_thread::get_id()));
}

TEST_CASE("a request that is alone is computed where it is waited for") {
  Run run;
  run.engine.delay = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  run.engine.permits.release(kEnough);
  for (int i = 1; i <= 3; ++i) {
    run.submit(i);
    run.evaluator->flush();
    run.check_in_order(static_cast<std::size_t>(i));
  }
  CHECK(run.engine.threads == std::set{std::this_thread::get_id()});
  CHECK(run.evaluator->waited_ms() >= 15);
}

int n_broken = 0;
/// Files that are no images, each another one.
std::vector<std::string> broken_images(int n) {
  std::vector<std::string> images;
  for (int i = 0; i < n; ++i) {
    const int number = 1000 + n_broken++;
    images.push_back(fmt::format("{}", number));  // 4 letters of base64
  }
  return images;
}

TEST_CASE("an image that the engine is looking at is not decoded or looked at again") {
  Run run;
  run.submit(1, {kBlack});
  run.submit(2, {kBlack, kWhite});
  for (int i = 0; i < 2; ++i) run.submit(3, broken_images(4));  // the line is full
  take_one(run.engine.begun);
  run.submit(4, {kWhite, kBlack});
  run.engine.permits.release(kEnough);
  run.submit(5, {kWhite});
  run.evaluator->flush();
  REQUIRE(run.results.size() == 6);
  for (const std::size_t i : {0, 1, 4, 5}) CHECK_FALSE(run.results[i].error);
  for (const std::size_t i : {2, 3}) CHECK(run.results[i].error);
  CHECK(run.engine.n_seen == 2);
}

TEST_CASE("requests wait in line for new images, and are answered in their order") {
  Run run;
  run.engine.permits.release(kEnough);
  run.submit(1, {kBlack});
  run.submit(40);
  run.submit(50);
  run.submit(2, {kWhite, kBlack});
  run.evaluator->refuse(Error::request("ValueError", "bad"));
  CHECK(run.evaluator->summary().n_plans == 0);
  CHECK(run.evaluator->in_flight() == 5);
  run.evaluator->flush();
  REQUIRE(run.results.size() == 5);
  for (std::size_t i = 0; i < 4; ++i) CHECK_FALSE(run.results[i].error);
  CHECK(run.results[4].error);
  CHECK(run.results[1].input_tokens < run.results[2].input_tokens);
  CHECK(run.results[3].input_tokens > run.results[0].input_tokens);
  CHECK(run.evaluator->images_ms() > 0);
}

TEST_CASE("the line is bounded in images and in requests") {
  Run run({.batch_tokens = 1, .max_in_flight = 20});
  run.engine.permits.release(kEnough);
  for (int i = 0; i < 50; ++i) {
    run.submit(1, broken_images(1));
    CHECK(run.evaluator->in_flight() <= 8);
  }
  run.evaluator->flush();
  run.submit(1, {kBlack});
  for (int i = 0; i < 100; ++i) {
    run.evaluator->refuse(Error::request("ValueError", "bad"));
    CHECK(run.evaluator->in_flight() <= 20 + 32);
  }
  run.evaluator->flush();
  CHECK(run.results.size() == 151);
}

TEST_CASE("a broken file has in each refusal the number that it has there") {
  Run run;
  const std::string broken = broken_images(1).front();
  run.submit(1, {broken});
  run.submit(1, {kBlack, broken});
  run.submit(1, {kBlack, kWhite, "data:x,", broken});
  run.submit(1, {broken, kBlack});
  run.evaluator->flush();
  REQUIRE(run.results.size() == 4);
  const char* const expected[] = {"image 0 could not be decoded", "image 1 could not be decoded",
                                  "image 2 is not a base64 data URL",
                                  "image 0 could not be decoded"};
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(run.results[i].error);
    CHECK(run.results[i].error->what() == std::string(expected[i]));
  }
}

TEST_CASE("a stop gives up what is in line") {
  bool stopped = false;
  Run run({.batch_tokens = 1, .stop = [&] { return stopped; }});
  run.engine.permits.release(kEnough);
  run.submit(1);
  run.submit(2, {kBlack});
  run.submit(3);
  stopped = true;
  run.evaluator->flush();
  CHECK(run.results.empty());
  CHECK(run.engine.passes.empty());
}

TEST_CASE("an error of the engine comes when all before it are answered") {
  for (const int faulty : {1, 3, 6}) {
    CAPTURE(faulty);
    Run run;
    run.engine.faulty_pass = faulty;
    run.engine.permits.release(kEnough);
    const std::string words = fmt::format("pass {} is faulty", faulty);
    const auto all = [&] {
      for (int i = 1; i <= 6; ++i) run.submit(i);
      run.evaluator->flush();
    };
    CHECK_THROWS_WITH_AS(all(), words.c_str(), Error);
    run.check_in_order(static_cast<std::size_t>(faulty - 1));
    CHECK(run.evaluator->in_flight() > 0);
    // What was already waiting is let through; nothing more is computed.
    run.evaluator->flush();
    run.check_in_order(static_cast<std::size_t>(faulty - 1));
    CHECK(run.engine.passes.size() <= static_cast<std::size_t>(faulty + 2));
  }
}

TEST_CASE("errors of the engine keep their type") {
  Run run;
  run.engine.strange_pass = 2;
  run.engine.permits.release(kEnough);
  run.submit(1);
  run.submit(2);
  CHECK_THROWS_AS(run.evaluator->flush(), std::out_of_range);
  run.check_in_order(1);
}

TEST_CASE("a pass too large for the engine fails alone among others in flight") {
  Run whole;
  whole.engine.permits.release(kEnough);
  whole.submit(3);
  whole.evaluator->flush();
  Run run({.batch_tokens = 150});
  run.engine.most_rows = static_cast<std::int64_t>(whole.results[0].input_tokens) + 1;
  run.engine.permits.release(kEnough);
  for (const int n_words : {1, 3, 9, 2, 1, 9, 3, 2}) run.submit(n_words);
  run.evaluator->flush();
  REQUIRE(run.results.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(run.results[i].error.has_value() == (i == 2 || i == 5));
    if (run.results[i].error) CHECK(run.results[i].error->type() == "OutOfMemoryError");
  }
  CHECK(run.results[6].questions[0].answer.probabilities ==
        whole.results[0].questions[0].answer.probabilities);
}

TEST_CASE("an evaluator may go while passes are in flight") {
  Run run;
  for (int i = 1; i <= 3; ++i) run.submit(i);
  take_one(run.engine.begun);
  const std::future<void> opening =
      std::async(std::launch::async, [&] { run.engine.permits.release(kEnough); });
  run.evaluator.reset();
  CHECK(run.engine.n_through >= 1);
  CHECK(run.engine.n_through <= 2);
  CHECK(run.results.empty());
}

TEST_CASE("a result that cannot be taken ends the call, with passes in flight") {
  Run run;
  run.refused_result = 2;
  run.engine.permits.release(kEnough);
  const auto all = [&] {
    for (int i = 1; i <= 20; ++i) run.submit(i);
  };
  CHECK_THROWS_WITH_AS(all(), "no room for the line", Error);
  SUBCASE("and the evaluator goes") {
    run.evaluator.reset();
    run.check_in_order(2);
  }
  SUBCASE("and nothing is delivered twice by one that goes on") {
    run.refused_result = -1;
    const std::size_t n_through = run.engine.n_through;
    for (int i = 1; i <= 20; ++i) run.submit(i);
    run.evaluator->flush();
    run.check_in_order(run.results.size());
    CHECK(run.engine.n_through <= n_through + 2);  // those that had been handed over
  }
}

TEST_CASE("refused requests behind passes in flight are bounded too") {
  Run run({.batch_tokens = 1, .max_in_flight = 20});
  run.engine.permits.release(kEnough);
  run.submit(1);
  run.submit(2);
  for (int i = 0; i < 100; ++i) {
    run.evaluator->refuse(Error::request("ValueError", "bad"));
    CHECK(run.evaluator->in_flight() <= 20);
  }
  run.evaluator->flush();
  CHECK(run.results.size() == 102);
}

TEST_CASE("a request refused at a late question, when earlier ones are in flight") {
  Run run;
  nlohmann::ordered_json questions;
  for (const std::string id : {"a", "b", "c", "d"}) {
    questions[id] = {{"criteria", {{"a", "a"}, {"b", "b"}}}};
  }
  questions["d"]["criteria"] = {{"a", "a"}};
  run.engine.permits.release(kEnough);
  run.submit(1);
  run.evaluator->submit(nlohmann::ordered_json{{"state", "x"}, {"questions", questions}}.dump());
  run.submit(2);
  run.evaluator->flush();
  REQUIRE(run.results.size() == 3);
  CHECK_FALSE(run.results[0].error);
  CHECK(run.results[1].error);
  CHECK(run.results[1].questions.empty());
  CHECK_FALSE(run.results[2].error);
}

/// The passes of a mixed input, whatever the engine's pace.
enum class Pace { kSlow, kUneven, kFirst };
std::vector<std::int64_t> passes_of(const EvaluatorOptions& options, Pace pace) {
  Run run(options);
  std::mt19937 random(3);  // of the engine's thread and, when flushing, of this one in its place
  if (pace == Pace::kSlow) {
    run.engine.delay = [] { std::this_thread::sleep_for(std::chrono::microseconds(500)); };
  } else if (pace == Pace::kUneven) {
    run.engine.delay = [&] {
      for (auto n = random() % 200; n > 0; --n) std::this_thread::yield();
    };
  }
  run.engine.permits.release(kEnough);
  for (int i = 0; i < 60; ++i) {
    const int n_words = 1 + i * 7 % 40;
    if (i % 9 == 4) {
      run.evaluator->refuse(Error::request("ValueError", "bad"));
    } else if (i % 5 == 0) {
      run.submit(n_words, {i % 2 == 0 ? kBlack : kWhite});
    } else {
      run.submit(n_words);
    }
    // The engine is through before anything more comes.
    while (pace == Pace::kFirst && run.engine.n_through < run.evaluator->summary().n_passes) {
      std::this_thread::yield();
    }
  }
  run.evaluator->flush();
  CHECK(run.results.size() == 60);
  return run.engine.passes;
}

TEST_CASE("which questions share a pass does not depend on how long anything takes") {
  for (const PrefixReuse reuse : {PrefixReuse::kOff, PrefixReuse::kRequest, PrefixReuse::kFile}) {
    for (const std::size_t max_in_flight : {3, 256}) {
      for (const std::size_t memory : {std::size_t{40'000}, std::size_t{1} << 28}) {
        const EvaluatorOptions options{.batch_tokens = 300,
                                       .max_in_flight = max_in_flight,
                                       .image_cache_bytes = 100,
                                       .reuse = reuse,
                                       .reuse_memory = memory};
        const std::vector<std::int64_t> passes = passes_of(options, Pace::kFirst);
        CHECK(passes.size() > 4);
        CHECK(passes_of(options, Pace::kSlow) == passes);
        CHECK(passes_of(options, Pace::kUneven) == passes);
      }
    }
  }
}

}  // namespace
}  // namespace jemm
