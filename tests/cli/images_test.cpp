// Images through the program: in bodies and as files beside the request.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

namespace fs = std::filesystem;

/// Images of the demonstration golden, in base64.
std::vector<std::string> golden_images() {
  std::vector<std::string> images;
  for (const Json& golden :
       parse_lines(read_text(JEMM_SOURCE_DIR "/golden/demo-fp32-cpu/cases.jsonl"))) {
    if (!golden.contains("images")) continue;
    const Json body = Json::parse(golden["raw"].get<std::string>());
    for (const Json& image : body["images"]) {
      const auto text = image.get<std::string>();
      images.push_back(text.substr(text.find(',') + 1));
    }
    if (images.size() >= 4) break;
  }
  REQUIRE(images.size() >= 4);
  return images;
}

std::string body_with(const std::vector<std::string>& images) {
  Json parsed = Json::parse(body(1));
  if (!images.empty()) parsed["images"] = images;
  return parsed.dump();
}

std::string line_with(const std::string& request, const Json& image_files) {
  return Json{{"request", Json::parse(request)}, {"image_files", image_files}}.dump() + "\n";
}

}  // namespace

TEST_CASE("image files are the body's images") {
  const std::vector<std::string> images = golden_images();
  const ScratchDir scratch;
  scratch.write("pictures/a", from_base64(images[0]));
  const std::string b = scratch.write("b.png", from_base64(images[1]));
  const std::string lines =
      body_with({images[0], images[1]}) + "\n" +                  //
      line_with(body_with({}), {"pictures/a", b}) +               //
      line_with(body_with({images[0]}), {"pictures/../b.png"}) +  //
      Json{{"raw", body_with({})}, {"image_files", {"pictures/a", "b.png"}}}.dump() + "\n" +
      R"({"image_files":["./pictures/a","b.png"],)" + body_with({}).substr(1) + "\n" +
      line_with(body_with({images[0], images[1]}), Json::array());
  const std::string input = scratch.write("in.jsonl", lines);

  const Finished decided = run_jemm({"decide", input});
  CHECK(decided.code == 0);
  const std::vector<Json> answers = results(decided.out);
  const std::vector<Json> encoded = parse_lines(
      run_jemm({"encode", "--model", JEMM_SOURCE_DIR "/fixtures/demo/base", input}).out);
  REQUIRE(answers.size() == 6);
  REQUIRE(encoded.size() == 6);
  REQUIRE(encoded[0]["images"].size() == 2);
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(answers[i]["answers"] == answers[0]["answers"]);
    CHECK(answers[i]["usage"] == answers[0]["usage"]);
    CHECK(encoded[i]["images"] == encoded[0]["images"]);
    CHECK(encoded[i]["questions"] == encoded[0]["questions"]);
  }
  CHECK(answers[0]["usage"]["input_tokens"] > 128);

  SUBCASE("below the working directory for standard input") {
    const std::string near = fs::relative(b).string();
    const std::vector<Json> from_stdin =
        results(run_jemm({"decide"}, line_with(body_with({images[0]}), {near})).out);
    CHECK(from_stdin.at(0)["answers"] == answers[0]["answers"]);
  }
  SUBCASE("below the directory for a directory's files") {
    scratch.write("d/x.json", line_with(body_with({images[0]}), {"../b.png"}));
    CHECK(results(run_jemm({"decide", scratch.file("d")}).out).at(0)["answers"] ==
          answers[0]["answers"]);
  }
}

TEST_CASE("the request's hash covers its image files") {
  const std::vector<std::string> images = golden_images();
  const ScratchDir scratch;
  const std::string input = scratch.write(
      "in.jsonl", line_with(body_with({}), {"a", "b"}) + line_with(body_with({}), {"b", "a"}) +
                      line_with(body_with({}), {"a"}) + body_with({}) + "\n");
  const auto hashes = [&](const std::string& a, const std::string& b) {
    scratch.write("a", from_base64(a));
    scratch.write("b", from_base64(b));
    std::vector<std::string> found;
    for (const Json& line : results(run_jemm({"decide", input}).out)) {
      found.push_back(line["jemm"]["request_sha256"]);
    }
    REQUIRE(found.size() == 4);
    return found;
  };
  const std::vector<std::string> first = hashes(images[0], images[1]),
                                 second = hashes(images[1], images[0]);
  CHECK(hashes(images[0], images[1]) == first);
  CHECK(first[0] != first[1]);
  CHECK(first[0] != first[2]);
  CHECK(first[0] == second[1]);
  CHECK(first[1] == second[0]);
  CHECK(first[2] != second[2]);
  CHECK(first[3] == second[3]);
}

TEST_CASE("an image file that cannot be had fails its own line alone, by name") {
  const ScratchDir scratch;
  scratch.write("text", "no image");
  scratch.write("empty", "");
  fs::resize_file(scratch.write("large", ""), 16'000'001);
  fs::resize_file(scratch.write("zeros", ""), 16'000'000);
  REQUIRE(::mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  struct Case {
    Json files;
    std::string error, detail;
  };
  const std::string at = "image file " + scratch.file("");
  const std::string no_paths = "image_files must be a list of paths";
  const std::string too_many = "images must be a list of at most 4 base64 strings";
  const std::string undecodable = "image 0 could not be decoded";
  const std::vector<Case> cases{
      {{"absent.png"}, "OSError", at + "absent.png: No such file or directory"},
      {{"."}, "OSError", at + ".: not a regular file"},
      {{"fifo"}, "OSError", at + "fifo: not a regular file"},
      {{"/dev/zero"}, "OSError", "image file /dev/zero: not a regular file"},
      {{"large"}, "OSError", at + "large: over 16000000 bytes"},
      {{"zeros"}, "ValueError", undecodable},
      {{"text"}, "ValueError", undecodable},
      {{"empty"}, "ValueError", undecodable},
      {{"text", "absent.png"}, "OSError", at + "absent.png: No such file or directory"},
      {{"text", "text", "text", "text", "text"}, "ValueError", too_many},
      {"text", "ValueError", no_paths},
      {nullptr, "ValueError", no_paths},
      {{"text", 1}, "ValueError", no_paths},
      {{""}, "ValueError", no_paths},
      {{std::string("text\0x", 6)}, "ValueError", no_paths},
  };
  std::string lines = body(0) + "\n";
  for (const Case& c : cases) lines += line_with(body(1), c.files);
  lines += body(2) + "\n";
  const std::string input = scratch.write("in.jsonl", lines);

  const Finished decided = run_jemm({"decide", input});
  CHECK(decided.code == 3);
  const std::vector<Json> ours = results(decided.out);
  const std::vector<Json> encoded = parse_lines(
      run_jemm({"encode", "--model", JEMM_SOURCE_DIR "/fixtures/demo/base", input}).out);
  REQUIRE(ours.size() == cases.size() + 2);
  REQUIRE(encoded.size() == ours.size());
  CHECK(ours.front().contains("answers"));
  CHECK(ours.back().contains("answers"));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].files);
    CHECK(ours[i + 1]["error"] == Json{{"error", cases[i].error}, {"detail", cases[i].detail}});
    CHECK(encoded[i + 1]["error"] == ours[i + 1]["error"]);
  }
}

TEST_CASE("answers about images: alone, batched, with equal images, in any order") {
  const std::vector<std::string> images = golden_images();
  const std::vector<std::string> requests{
      body_with({images[0]}), body(5), body_with({images[1], images[2], images[0]}),
      body_with({images[0]}), body_with({images[3], images[3]})};
  std::string lines, reversed;
  for (const std::string& request : requests) {
    lines += request + "\n";
    reversed.insert(0, request + "\n");
  }
  const std::vector<Json> batched = results(run_jemm({"decide"}, lines).out);
  std::vector<Json> backwards =
      results(run_jemm({"decide", "--batch-tokens", "1", "--threads", "1"}, reversed).out);
  std::reverse(backwards.begin(), backwards.end());
  REQUIRE(batched.size() == requests.size());
  REQUIRE(backwards.size() == requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<Json> alone = results(run_jemm({"decide"}, requests[i] + "\n").out);
    CHECK(batched[i]["answers"] == alone.at(0)["answers"]);
    CHECK(backwards[i]["answers"] == alone.at(0)["answers"]);
    CHECK(batched[i]["usage"] == alone.at(0)["usage"]);
  }
}

TEST_CASE("stage times of a request with images are kept apart and add up") {
  const std::vector<std::string> images = golden_images();
  const Json line =
      parse_lines(run_jemm({"decide"}, body_with({images[0], images[1]}) + "\n").out).at(0);
  const Json& times = line["jemm"]["timings_ms"];
  double sum = 0;
  for (const auto& [stage, value] : times.items()) {
    if (stage != "total") sum += value.get<double>();
  }
  const double total = times["total"].get<double>();
  CHECK(std::abs(sum - total) <= 0.02 * total + 0.05);
  for (const char* stage : {"image.decode", "image.preprocess", "vision", "text"}) {
    CHECK(times[stage].get<double>() > 0);
  }
}

}  // namespace jemm::test
