// The evaluator in every mode of reuse: the same answers in the same order, and what it says of
// them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "evaluate/counting_engine.h"
#include "evaluate/evaluator.h"

namespace jemm {
namespace {

/// Logits are a hash of all that the read row's chain holds: right only when every row of it is.
class HashEngine : public CountingEngine {
 public:
  HashEngine() : CountingEngine(64) {}

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr> images,
                                   StageTimes& times, Tap* tap) override {
    if (forest.n_rows() > most_rows) throw OutOfMemory("too many rows");
    CountingEngine::forward(forest, images, times, tap);
    times[Stage::kText] += 1;
    passes.push_back(forest.n_rows());
    const std::set<std::int64_t> read(forest.read_rows.begin(), forest.read_rows.end());
    largest_shared = std::max(largest_shared, read.size() > 1 ? forest.n_rows() : 0);
    std::vector<std::uint64_t> hash_after(static_cast<std::size_t>(forest.n_rows()));
    for (const Segment& segment : forest.segments) {
      std::uint64_t hash = segment.parent < 0 ? 1 : hash_of_end(forest, segment.parent, hash_after);
      for (std::int64_t row = segment.row_begin; row < segment.row_begin + segment.n_rows; ++row) {
        const auto i = static_cast<std::size_t>(row);
        for (const std::int32_t x : {forest.token_ids[i], forest.positions[i][0],
                                     forest.positions[i][1], forest.positions[i][2]}) {
          hash = (hash ^ static_cast<std::uint64_t>(x)) * 0x9E3779B97F4A7C15ULL;
          hash ^= hash >> 29;
        }
        hash_after[i] = hash;
      }
    }
    std::vector<LabelLogits> results;
    for (const std::int64_t row : forest.read_rows) {
      std::mt19937 random(static_cast<std::uint32_t>(hash_after[static_cast<std::size_t>(row)]));
      LabelLogits logits;
      for (float& x : logits) x = static_cast<float>(random() % 1000) / 200;
      if (lies_about_trees && forest.segments.size() > 1) logits[0] += error;
      results.push_back(logits);
    }
    return results;
  }

  std::int64_t most_rows = 1 << 30;
  bool lies_about_trees = false;
  float error = 0.25F;
  std::vector<std::int64_t> passes;
  std::int64_t largest_shared = 0;  ///< rows of a pass for more than one distinct question

 private:
  static std::uint64_t hash_of_end(const Forest& forest, std::int32_t segment,
                                   const std::vector<std::uint64_t>& hash_after) {
    const Segment& s = forest.segments[static_cast<std::size_t>(segment)];
    return hash_after[static_cast<std::size_t>(s.row_begin + s.n_rows - 1)];
  }
};

struct Run {
  explicit Run(PrefixReuse reuse, EvaluatorOptions options = {})
      : encoder(*open_directory(std::string(JEMM_SOURCE_DIR) + "/fixtures/tiny-a/base")),
        evaluator(encoder, engine, {.temperature = 1, .mm_temperature = 2, .threshold = 0.5},
                  with(std::move(options), reuse),
                  [this](RequestResult&& result) { results.push_back(std::move(result)); }) {}

  static EvaluatorOptions with(EvaluatorOptions options, PrefixReuse reuse) {
    options.reuse = reuse;
    return options;
  }

  void all(const std::vector<std::string>& bodies, Audit audit = Audit::kNo) {
    for (const std::string& body : bodies) evaluator.submit(body, {}, audit);
    evaluator.flush();
    CHECK(evaluator.in_flight() == 0);
  }

  Encoder encoder;
  HashEngine engine;
  std::vector<RequestResult> results;
  Evaluator evaluator;
};

std::string words(std::mt19937& random, std::uint64_t n) {
  std::string text;
  for (std::uint64_t i = 0; i < n; ++i) text += "word" + std::to_string(random() % 50) + " ";
  return text;
}

std::string body_of(const std::string& state, const std::vector<std::string>& instructions) {
  nlohmann::ordered_json questions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    // Names that sort the other way round.
    questions["q" + std::to_string(1000 - i)] = {
        {"instructions", instructions[i]}, {"criteria", {{"a", "x"}, {"b", "y"}, {"c", "z"}}}};
  }
  return nlohmann::ordered_json{{"state", state}, {"questions", questions}}.dump();
}

std::vector<std::string> random_bodies(int n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> states, instructions, bodies;
  for (int i = 0; i < 5; ++i) states.push_back(words(random, 1U << (2 * i)));
  for (int i = 0; i < 12; ++i) instructions.push_back(words(random, 1 + random() % 30));
  for (int i = 0; i < n; ++i) {
    const auto kind = random() % 12;
    if (kind == 0) {
      bodies.emplace_back("nonsense");
    } else if (kind == 1 && !bodies.empty()) {
      bodies.push_back(bodies[random() % bodies.size()]);
    } else if (kind == 2) {  // fails at its last question
      std::string bad = body_of(states[random() % 5], {"one", "two"});
      bad.replace(bad.rfind("\"c\":\"z\"}"), 8, "\"c\":\"z\"},\"type\":\"nil\"");
      bodies.push_back(bad);
    } else {
      std::vector<std::string> asked;
      for (auto k = 1 + random() % 8; k > 0; --k) {
        asked.push_back(instructions[random() % instructions.size()]);
      }
      bodies.push_back(body_of(states[random() % 5] + (kind > 8 ? words(random, 3) : ""), asked));
    }
  }
  return bodies;
}

void check_same(const std::vector<RequestResult>& a, const std::vector<RequestResult>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].error.has_value() == b[i].error.has_value());
    if (a[i].error) CHECK(std::string(a[i].error->what()) == b[i].error->what());
    REQUIRE(a[i].questions.size() == b[i].questions.size());
    for (std::size_t k = 0; k < a[i].questions.size(); ++k) {
      CHECK(a[i].questions[k].id == b[i].questions[k].id);
      CHECK(a[i].questions[k].answer.probabilities == b[i].questions[k].answer.probabilities);
    }
    CHECK(a[i].input_tokens == b[i].input_tokens);
  }
}

constexpr PrefixReuse kModes[] = {PrefixReuse::kOff, PrefixReuse::kRequest, PrefixReuse::kFile};

TEST_CASE("every mode, budget and memory gives the same answers in input order") {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    const std::vector<std::string> bodies = random_bodies(40, seed);
    Run whole(PrefixReuse::kOff, {.batch_tokens = 1});
    whole.all(bodies);
    for (const PrefixReuse mode : kModes) {
      for (const std::size_t batch_tokens : {1, 300, 2048}) {
        for (const std::size_t memory :
             {std::size_t{1}, std::size_t{20'000}, std::size_t{1} << 28}) {
          Run run(mode, {.batch_tokens = batch_tokens, .reuse_memory = memory, .max_segments = 9});
          run.all(bodies, seed == 1 ? Audit::kYes : Audit::kNo);
          check_same(run.results, whole.results);
          std::int64_t n_computed = 0;
          for (const RequestResult& result : run.results) {
            CHECK(result.rows_computed <= result.input_tokens);
            n_computed += static_cast<std::int64_t>(result.rows_computed);
            if (result.audit) CHECK(result.audit->equal_bits);
          }
          const ReuseSummary& summary = run.evaluator.summary();
          CHECK(summary.rows_computed == n_computed);
          if (mode == PrefixReuse::kOff) CHECK(summary.rows_reused == 0);
          if (mode == PrefixReuse::kFile && batch_tokens == 2048 && memory > 20'000) {
            CHECK(summary.rows_reused > summary.rows_computed / 4);
          }
        }
      }
    }
  }
}

TEST_CASE("no pass is over the budget but for a question that is too long alone") {
  for (const PrefixReuse mode : kModes) {
    Run run(mode, {.batch_tokens = 400});
    run.all(random_bodies(60, 3));
    CHECK(run.engine.largest_shared > 200);
    CHECK(run.engine.largest_shared <= 400);
    CHECK(*std::max_element(run.engine.passes.begin(), run.engine.passes.end()) > 400);
  }
}

TEST_CASE("a request's questions share its state, another request's do not, unless the file does") {
  std::mt19937 random(5);
  const std::string state = words(random, 300);
  const std::vector<std::string> bodies{body_of(state, {"one", "two", "three"}),
                                        body_of(state, {"four", "five"})};
  const auto computed = [&](PrefixReuse mode) {
    Run run(mode);
    run.all(bodies);
    return std::pair(run.results[0].rows_computed, run.results[1].rows_computed);
  };
  const auto [a_off, b_off] = computed(PrefixReuse::kOff);
  const auto [a_request, b_request] = computed(PrefixReuse::kRequest);
  const auto [a_file, b_file] = computed(PrefixReuse::kFile);
  CHECK(a_request < a_off / 2);
  CHECK(b_request < b_off);
  CHECK(a_request - b_request < 200);
  CHECK(a_file + b_file < a_request + 200);
}

TEST_CASE("two images of equal size and other pixels are not the same beginning") {
  // 1 x 1 PNG files, black and white, resized to the same grid.
  const std::string black =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmC"
      "C";
  const std::string white =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/"
      "AAX+Av4N70a4AAAAAElFTkSuQmCC";
  const auto body = [](const std::string& image, const std::string& instructions) {
    auto json = nlohmann::ordered_json::parse(body_of("state", {instructions}));
    json["images"] = {image};
    return json.dump();
  };
  Run run(PrefixReuse::kFile, {.batch_tokens = 4096});
  run.all({body(black, "one"), body(white, "one"), body(black, "two"), body(black, "one")});
  REQUIRE(run.results.size() == 4);
  for (const RequestResult& result : run.results) REQUIRE_FALSE(result.error);
  CHECK(run.results[0].rows_computed + run.results[2].rows_computed + run.results[3].rows_computed <
        run.results[0].input_tokens + run.results[2].input_tokens);
  CHECK(run.results[1].rows_computed == run.results[1].input_tokens);
}

// Bug log 48: one row that is too large for the device kills the run.
TEST_CASE("a tree that is too large for the engine is computed question by question") {
  std::mt19937 random(9);
  const std::string state = words(random, 150);
  const std::vector<std::string> bodies{body_of(state, {"one", "two", "three"}),
                                        body_of(words(random, 400), {"too long"}),
                                        body_of(state, {"four"})};
  Run whole(PrefixReuse::kOff);
  whole.all(bodies);
  Run run(PrefixReuse::kFile);
  run.engine.most_rows = static_cast<std::int64_t>(whole.results[2].input_tokens) + 20;
  run.all(bodies);
  REQUIRE(run.results.size() == 3);
  CHECK(run.results[1].error->type() == "OutOfMemoryError");
  for (const std::size_t i : {0, 2}) {
    REQUIRE_FALSE(run.results[i].error);
    CHECK(run.results[i].rows_computed == run.results[i].input_tokens);
    CHECK(run.results[i].questions[0].answer.probabilities ==
          whole.results[i].questions[0].answer.probabilities);
  }
}

// Bug log 55: a warm prefix cache measured as speed.
TEST_CASE("nothing is kept from flush to flush: the second time costs what the first did") {
  const std::vector<std::string> bodies = random_bodies(20, 4);
  Run run(PrefixReuse::kFile);
  run.all(bodies);
  const std::int64_t first = run.evaluator.summary().rows_computed;
  run.all(bodies);
  CHECK(run.evaluator.summary().rows_computed == 2 * first);
}

TEST_CASE("an audit finds what reuse has changed, and only then") {
  std::mt19937 random(6);
  const std::string state = words(random, 200);
  const std::string body = body_of(state, {"one", "two"});
  Run run(PrefixReuse::kRequest);
  run.engine.lies_about_trees = true;
  run.all({body}, Audit::kYes);
  run.engine.error = 1e-10F;  // too small to move a logit: bits stay equal
  run.all({body}, Audit::kYes);
  run.all({body}, Audit::kNo);
  run.engine.error = NAN;
  run.all({body}, Audit::kYes);
  REQUIRE(run.results.size() == 4);
  REQUIRE(run.results[0].audit);
  CHECK_FALSE(run.results[0].audit->equal_bits);
  CHECK(run.results[0].audit->difference > 0.001);
  CHECK(run.results[0].audit->difference < 0.0625);  // an error of 0.25 moves no p by more
  REQUIRE(run.results[1].audit);
  CHECK_FALSE(run.results[2].audit);
  CHECK(run.results[3].error);
}

TEST_CASE("a stop gives up what waits; what is done and in order is handed over") {
  std::mt19937 random(7);
  std::vector<std::string> bodies;
  for (int i = 0; i < 20; ++i) bodies.push_back(body_of(words(random, 100), {"one"}));
  int n_asked = 0;
  Run run(PrefixReuse::kFile, {.batch_tokens = 500, .stop = [&] { return ++n_asked == 3; }});
  for (const std::string& body : bodies) run.evaluator.submit(body);
  CHECK(run.results.empty());
  run.evaluator.flush();
  CHECK(run.engine.passes.size() == 3);
  CHECK(run.results.size() >= 3);
  CHECK(run.results.size() < 20);
  const std::size_t n_done = run.results.size();
  run.evaluator.submit(bodies[0]);
  run.evaluator.flush();
  CHECK(run.results.size() == n_done);
  CHECK(run.engine.passes.size() == 3);
}

TEST_CASE("a stop in the middle of a request's questions is survived") {
  std::mt19937 random(8);
  std::vector<std::string> many;
  for (int i = 0; i < 40; ++i) many.push_back(words(random, 20));
  Run run(PrefixReuse::kFile,
          {.batch_tokens = 200, .reuse_memory = 8000, .stop = [] { return true; }});
  run.evaluator.submit(body_of("x", many));
  run.evaluator.flush();
  CHECK(run.results.empty());
}

TEST_CASE("what waits is bounded: bad requests behind a waiting one too") {
  Run run(PrefixReuse::kFile, {.reuse_memory = 100'000});
  run.evaluator.submit(body_of("x", {"one"}));
  for (int i = 0; i < 500; ++i) {
    run.evaluator.refuse(Error::request("ValueError", "bad"));
    CHECK(run.evaluator.in_flight() <= 100);
  }
  run.evaluator.flush();
  CHECK(run.results.size() == 501);
}

TEST_CASE("questions whose rows are fewer than they look are not planned again and again") {
  std::mt19937 random(12);
  const std::string one = words(random, 40), other = words(random, 60);
  std::vector<std::string> asked;
  for (int i = 0; i < 4000; ++i) asked.push_back(i % 2 == 0 ? one : other);
  Run run(PrefixReuse::kRequest);
  run.all({body_of("s", asked)});
  CHECK(run.evaluator.summary().n_questions == 4000);
  CHECK(run.engine.passes.size() == 1);
  CHECK(run.evaluator.summary().n_plans <= 12);
}

TEST_CASE("the time of a pass goes with the rows computed and adds up") {
  std::mt19937 random(10);
  Run run(PrefixReuse::kFile);
  run.all({body_of(words(random, 200), {"one", "two"}), body_of("x", {"three"})});
  double text = 0;
  for (const RequestResult& result : run.results) text += result.times[Stage::kText];
  CHECK(text == doctest::Approx(static_cast<double>(run.engine.passes.size())));
}

TEST_CASE("the summary names the largest trees and whose they are") {
  std::mt19937 random(11);
  const std::string state = words(random, 300);
  Run run(PrefixReuse::kFile);
  run.all({"nonsense", body_of(state, {"one", "two"}), body_of(state, {"three"})});
  const ReuseSummary& summary = run.evaluator.summary();
  CHECK(summary.n_questions == 3);
  const ReuseSummary::Fate& shared = summary[PrefixFate::kShared];
  REQUIRE(shared.n == 1);
  CHECK(shared.largest[0].n_requests == 2);
  CHECK(shared.largest[0].first_request == 2);
  CHECK(shared.largest[0].decision.rows_saved == summary.rows_reused);
}

}  // namespace
}  // namespace jemm
