// Images through the evaluator: each is looked at once, whoever shows it; what a question costs.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "evaluate/evaluator.h"

namespace jemm {
namespace {

class FakeRows : public VisionRows {
 public:
  explicit FakeRows(std::int64_t n) : n_(n) {}
  std::int64_t n_rows() const override { return n_; }
  std::size_t size_bytes() const override { return 1000; }

 private:
  std::int64_t n_;
};

/// Counts the images that it is shown; every question's logits are 0, 1, 2, ...
class FakeEngine : public Engine {
 public:
  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images,
                                    StageTimes& times) override {
    times[Stage::kVision] += 30;
    std::vector<VisionRowsPtr> rows;
    for (const ImagePatches& image : images) {
      ++n_seen;
      CHECK(image.values.size() ==
            static_cast<std::size_t>(image.grid_thw[1] * image.grid_thw[2]) * Patches::kRowValues);
      rows.push_back(std::make_shared<FakeRows>(image.grid_thw[1] * image.grid_thw[2] / 4));
    }
    return rows;
  }

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr> images,
                                   StageTimes&, Tap*) override {
    check_forest(forest);
    if (forest.n_rows() > most_rows) throw OutOfMemory("too many rows");
    for (const ImageRows& rows : forest.image_rows) {
      const auto begin = static_cast<std::size_t>(rows.row_begin);
      const auto end = begin + static_cast<std::size_t>(rows.n_rows);
      CHECK(images[static_cast<std::size_t>(rows.image)]->n_rows() == rows.n_rows);
      for (std::size_t row = begin; row < end; ++row) CHECK(forest.token_ids[row] == kImageToken);
      CHECK(forest.token_ids[begin - 1] != kImageToken);
      CHECK(forest.token_ids[end] != kImageToken);
      n_image_rows += rows.n_rows;
    }
    LabelLogits logits;
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i);
    return std::vector<LabelLogits>(forest.read_rows.size(), logits);
  }

  const std::string& fingerprint() const override { return fingerprint_; }

  static constexpr std::int32_t kImageToken = 1412;  // of tiny-a
  std::int64_t most_rows = 1 << 20;
  int n_seen = 0;
  std::int64_t n_image_rows = 0;

 private:
  std::string fingerprint_ = "fake";
};

const std::string kSource = JEMM_SOURCE_DIR;

/// The body of a case of the image golden.
std::string golden_body(const std::string& id) {
  std::ifstream cases(kSource + "/golden/image-fp32-cpu/cases.jsonl");
  for (std::string line; std::getline(cases, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.at("id") == id) return record.at("raw");
  }
  FAIL("no case " << id);
  return {};
}

/// Image i of a body in plain base64.
std::string image_of(const std::string& body, std::size_t i) {
  const std::string image = nlohmann::json::parse(body).at("images").at(i);
  return image.substr(image.find(',') + 1);
}

std::string small_body(const std::vector<std::string>& images) {
  nlohmann::json body{{"state", "x"},
                      {"questions", {{"q", {{"criteria", {{"a", "a"}, {"b", "b"}}}}}}}};
  if (!images.empty()) body["images"] = images;
  return body.dump();
}

struct Run {
  explicit Run(const EvaluatorOptions& options = {})
      : encoder(*open_directory(kSource + "/fixtures/tiny-a/base")),
        evaluator(encoder, engine, {.temperature = 1, .mm_temperature = 2, .threshold = 0.5},
                  options,
                  [this](RequestResult&& result) { results.push_back(std::move(result)); }) {}

  Encoder encoder;
  FakeEngine engine;
  std::vector<RequestResult> results;
  Evaluator evaluator;
};

const std::string kFourImages = "s12-00099";  // and three questions

TEST_CASE("an image is looked at once a request, however many passes its questions take") {
  Run run({.batch_tokens = 1});
  run.evaluator.submit(golden_body(kFourImages));
  run.evaluator.flush();
  REQUIRE(run.results.size() == 1);
  REQUIRE_FALSE(run.results[0].error);
  CHECK(run.results[0].questions.size() == 3);
  CHECK(run.engine.n_seen == 4);
  CHECK(run.engine.n_image_rows == 3 * (36 * 8 + 2 * 160 + 16 * 16 + 4 * 116) / 4);
}

TEST_CASE("an image is looked at once a run, in one pass or in several, named again or twice") {
  Run run;
  const std::string body = golden_body(kFourImages);
  run.evaluator.submit(body);
  run.evaluator.submit(body);
  run.evaluator.flush();
  run.evaluator.submit(body);
  run.evaluator.submit(small_body({image_of(body, 1), image_of(body, 1)}));
  run.evaluator.submit(small_body({"data:image/png;base64," + image_of(body, 2)}));
  run.evaluator.flush();
  REQUIRE(run.results.size() == 5);
  for (const RequestResult& result : run.results) CHECK_FALSE(result.error);
  CHECK(run.results[3].input_tokens > 2 * 80);
  CHECK(run.engine.n_seen == 4);
}

TEST_CASE("a cache without room: once a pass, and a request keeps its own") {
  Run run({.image_cache_bytes = 2999});  // two images
  const std::string body = golden_body(kFourImages);
  run.evaluator.submit(body);
  run.evaluator.submit(body);
  run.evaluator.flush();
  CHECK(run.engine.n_seen == 4);
  run.evaluator.submit(body);
  run.evaluator.flush();
  CHECK(run.engine.n_seen == 6);
}

TEST_CASE("a request with images is calibrated with their temperature") {
  Run run;
  run.evaluator.submit(small_body({image_of(golden_body(kFourImages), 0)}));
  run.evaluator.submit(small_body({}));
  run.evaluator.flush();
  const auto second = [&](std::size_t i) {
    return run.results.at(i).questions.at(0).answer.probabilities[1];
  };
  CHECK(second(0) == doctest::Approx(1 / (1 + std::exp(-0.5))).epsilon(1e-12));
  CHECK(second(1) == doctest::Approx(1 / (1 + std::exp(-1.0))).epsilon(1e-12));
}

TEST_CASE("what is too large for the engine's memory fails alone") {
  Run run;
  run.evaluator.submit(small_body({}));
  run.evaluator.flush();
  const auto n_rows = static_cast<std::int64_t>(run.results.at(0).input_tokens);
  const std::string large = nlohmann::json{{"state", std::string(200, 'y')},
                                           {"questions", {{"q", {{"criteria", {{"a", "a"}, {"b", "b"}}}}}}}}
                                .dump();
  run.engine.most_rows = n_rows + 10;
  for (const std::string& body : {small_body({}), large, small_body({}), small_body({})}) {
    run.evaluator.submit(body);
  }
  run.evaluator.flush();
  REQUIRE(run.results.size() == 5);
  for (const std::size_t i : {1, 3, 4}) {
    CHECK_FALSE(run.results[i].error);
    CHECK(run.results[i].questions.size() == 1);
  }
  REQUIRE(run.results[2].error);
  CHECK(run.results[2].error->kind() == ErrorKind::kRequest);
  CHECK(run.results[2].error->type() == "OutOfMemoryError");
  CHECK(run.results[2].questions.empty());
}

TEST_CASE("the time of images is borne by the requests that show them") {
  Run run;
  run.evaluator.submit(golden_body(kFourImages));
  run.evaluator.submit(small_body({}));
  run.evaluator.flush();
  const StageTimes &with = run.results.at(0).times, &without = run.results.at(1).times;
  CHECK(with[Stage::kVision] == doctest::Approx(30));
  CHECK(with[Stage::kImageDecode] > 0);
  CHECK(with[Stage::kImagePreprocess] > 0);
  CHECK(without[Stage::kVision] == 0);
  CHECK(without[Stage::kImagePreprocess] == 0);
}

std::string refusal(Run& run, const std::string& body, std::vector<std::string> files = {}) {
  run.evaluator.submit(body, std::move(files));
  run.evaluator.flush();
  return run.results.back().error ? run.results.back().error->what() : "answered";
}

TEST_CASE("the first image in order that is wrong words the refusal") {
  Run run;
  const std::string good = image_of(golden_body(kFourImages), 0), broken = "AAAA", envelope = "?";
  CHECK(refusal(run, small_body({good, broken, envelope})) == "image 1 could not be decoded");
  CHECK(refusal(run, small_body({good, envelope, broken})) == "image 1 could not be decoded");
  CHECK(refusal(run, small_body({good, "data:x,", broken})) == "image 1 is not a base64 data URL");
  CHECK(refusal(run, small_body({good, "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
                                 broken})) == "image 1 is not PNG, JPEG or WebP");
  CHECK(refusal(run, small_body({broken, broken})) == "image 0 could not be decoded");
  CHECK(refusal(run, small_body({good})) == "answered");
  CHECK(run.engine.n_seen == 1);
}

TEST_CASE("files count behind the body's own images") {
  Run run;
  const std::string good = image_of(golden_body(kFourImages), 0);
  const std::string too_many = "images must be a list of at most 4 base64 strings";
  CHECK(refusal(run, small_body({good, good}), {"x", "x", "x"}) == too_many);
  CHECK(refusal(run, small_body({good, good}), {"x"}) == "image 2 could not be decoded");
  CHECK(refusal(run, small_body({}), {"x", "y", "z", "0"}) == "image 0 could not be decoded");
  CHECK(refusal(run, R"({"images":"no","questions":{}})", {"x"}) == too_many);
}

}  // namespace

TEST_CASE("the cache finds what anyone holds and holds what fits") {
  ImageCache cache(2500);
  const auto add = [&](const std::string& name) {
    const auto image = std::make_shared<EncodedImage>();
    image->file_sha256 = name;
    cache.add(image);
    return image;
  };
  {
    const EncodedImagePtr held = add("a");
    CHECK(cache.find("a") == held);
    CHECK(cache.find("b") == nullptr);
  }
  CHECK(cache.find("a") == nullptr);
  for (int i = 0; i < 1000; ++i) {
    const EncodedImagePtr image = add(std::to_string(i));
    image->rows = std::make_shared<FakeRows>(1);
    cache.keep(image);
  }
  CHECK(cache.kept_bytes() == 2000);
  CHECK(cache.find("999") != nullptr);
  CHECK(cache.find("998") != nullptr);
  CHECK(cache.find("997") == nullptr);
}

}  // namespace jemm
