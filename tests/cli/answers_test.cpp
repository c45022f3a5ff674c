// jemm parity --answers: what decide wrote, judged without an engine.
#include <doctest/doctest.h>

#include <functional>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

const std::string kSource = JEMM_SOURCE_DIR;
const std::string kGolden = kSource + "/golden/demo-fp32-cpu";

/// A golden's requests for decide.
std::string requests(const std::string& golden) {
  std::string lines;
  for (const Json& line : parse_lines(read_text(golden + "/cases.jsonl"))) {
    lines += Json{{"id", line["id"]}, {"raw", line["raw"]}}.dump() + "\n";
  }
  return lines;
}

Finished judge(const std::string& golden, const std::string& answers,
               std::vector<std::string> more = {"--preset", "fp32-trained"}) {
  more.insert(more.begin(),
              {"parity", "--golden", golden, "--answers", answers, "--progress", "none"});
  return run_jemm(more);
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("answers of every reuse mode pass, and no change to them does") {
  ScratchDir scratch;
  std::string text;
  for (const char* mode : {"off", "request", "file"}) {
    CAPTURE(mode);
    const Finished run = run_jemm({"decide", "--progress", "none", "--prefix-reuse", mode,
                                   scratch.write("requests.jsonl", requests(kGolden))});
    REQUIRE(run.code == 0);
    text = run.out;
    const Finished judged = judge(kGolden, scratch.write("answers.jsonl", text));
    CHECK(judged.code == 0);
    CHECK(says(judged.out, "PASS"));
    CHECK(says(judged.out, "probability.max"));
  }

  struct Change {
    const char* what;
    std::function<void(std::vector<Json>&)> change;
    int code;
    const char* said;
  };
  const auto probabilities = [](Json& line) -> Json& {
    return line["answers"].front()["probabilities"];
  };
  const std::vector<Change> changes = {
      {"a probability", [&](auto& lines) { probabilities(lines[3]).front() = 0.5; }, 1, "DRIFT"},
      {"no answer", [](auto& lines) { lines[3]["answers"].clear(); }, 1, "the answer is not there"},
      {"no line", [](auto& lines) { lines.pop_back(); }, 1, "the case is not there"},
      {"a refusal",
       [](auto& lines) {
         lines[3] =
             Json{{"id", lines[3]["id"]}, {"error", {{"error", "ValueError"}, {"detail", "no"}}}};
       },
       1, "FAIL"},
      {"other bytes",
       [](auto& lines) { lines[3]["jemm"]["request_sha256"] = std::string(64, '0'); }, 3,
       "answers other bytes"},
      {"two of one id", [](auto& lines) { lines.push_back(lines[3]); }, 3, "more than one line"},
      {"a foreign id", [](auto& lines) { lines[3]["id"] = "nobody"; }, 3, "has no case nobody"},
      {"a number for an id", [](auto& lines) { lines[3]["id"] = 7; }, 3, "has no case 7"},
      {"no id", [](auto& lines) { lines[3].erase("id"); }, 3, "has no id"},
      {"no answers", [](auto& lines) { lines[3].erase("answers"); }, 3, "has no answers"},
  };
  for (const Change& change : changes) {
    CAPTURE(change.what);
    std::vector<Json> lines = parse_lines(text);
    change.change(lines);
    std::string changed;
    for (const Json& line : lines) changed += line.dump() + "\n";
    const Finished judged = judge(kGolden, scratch.write("changed.jsonl", changed));
    CHECK(judged.code == change.code);
    CAPTURE(judged.out);
    CAPTURE(judged.err);
    CHECK(says(judged.out + judged.err, change.said));
  }
  const std::string broken = scratch.write("broken.jsonl", text + "{\"id\":\"x\",\n");
  CHECK(judge(kGolden, broken).code == 3);
}

TEST_CASE("ids that are numbers are those that a golden keeps as text") {
  ScratchDir scratch;
  std::string lines;
  for (const int id : {5, 7}) {
    lines += Json{{"id", id}, {"request", Json::parse(body(id))}}.dump() + "\n";
  }
  const std::string input = scratch.write("requests.jsonl", lines);
  const std::string golden = scratch.file("golden");
  REQUIRE(run_jemm({"record", "--progress", "none", "--out", golden, input}).code == 0);
  const std::string answers = run_jemm({"decide", "--progress", "none", input}).out;
  CHECK(judge(golden, scratch.write("answers.jsonl", answers)).code == 0);
  Json twice = parse_lines(answers)[0];
  twice["id"] = "5";
  const Finished judged =
      judge(golden, scratch.write("twice.jsonl", answers + twice.dump() + "\n"));
  CHECK(judged.code == 3);
  CHECK(says(judged.err, "the id 5 stands for more than one line"));
}

TEST_CASE("refusals are judged, what answers do not hold cannot be asked for") {
  ScratchDir scratch;
  const std::string golden = kSource + "/golden/text-fp32-cpu";
  const Finished run =
      run_jemm({"decide", "--progress", "none", "--model",
                kSource + "/fixtures/tiny-a/base+" + kSource + "/fixtures/tiny-a/adapter",
                scratch.write("requests.jsonl", requests(golden))});
  const std::string answers = scratch.write("answers.jsonl", run.out);
  CHECK(judge(golden, answers, {"--preset", "fp32"}).code == 0);
  const Finished layers = judge(golden, answers, {"--stages", "layer"});
  CHECK(layers.code == 2);
  CHECK(says(layers.err, "accept,probabilities,decision,usage"));
  CHECK(judge(golden, answers, {"--model", "x"}).code == 2);
  CHECK(judge(golden, answers, {"--against", golden}).code == 2);
  CHECK(judge(golden, scratch.file("missing.jsonl")).code == 3);
}

}  // namespace jemm::test
