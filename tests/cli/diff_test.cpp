// jemm diff on outputs of decide and on reports.
#include <doctest/doctest.h>

#include <functional>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

std::string answer(const std::string& id, double p) {
  const Json line = {{"id", id},
                     {"model", "JEMM"},
                     {"answers",
                      {{"q",
                        {{"type", "choice"},
                         {"choice", p >= 0.5 ? "yes" : "no"},
                         {"probabilities", {{"yes", p}, {"no", 1 - p}}},
                         {"confidence", std::max(p, 1 - p)}}}}},
                     {"usage", {{"input_tokens", 5}, {"output_tokens", 0}}}};
  return line.dump() + "\n";
}

std::string refusal(const std::string& id) {
  return R"({"id":")" + id +
         R"(","error":{"error":"ValueError","detail":"no questions"},"line":1})" + "\n";
}

struct Pair {
  ScratchDir scratch;
  Finished run(const std::string& a, const std::string& b,
               const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"diff", scratch.write("a.jsonl", a),
                                          scratch.write("b.jsonl", b)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_jemm(arguments);
  }
};

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("answers that only move are no regression") {
  const Pair pair;
  const std::string a = answer("1", 0.9) + answer("2", 0.6);
  const Finished same = pair.run(a, a);
  CHECK(same.code == 0);
  CHECK(says(same.out, "moved: 0 of 2"));
  const Finished moved = pair.run(a, answer("2", 0.55) + answer("1", 0.9));
  CHECK(moved.code == 0);
  CHECK(says(moved.out, "moved: 1 of 2"));
  CHECK(says(moved.out, "largest 0.05 at 2, q"));
}

TEST_CASE("a winner that changes is a regression from the margin on") {
  const Pair pair;
  const Finished near = pair.run(answer("1", 0.505), answer("1", 0.49));
  CHECK(near.code == 0);
  CHECK(says(near.out, "winners that changed: 1"));
  const Finished far = pair.run(answer("1", 0.6), answer("1", 0.49));
  CHECK(far.code == 1);
  CHECK(says(far.out, "worse in B: 1"));
  CHECK(pair.run(answer("1", 0.6), answer("1", 0.49), {"--margin", "0.3"}).code == 0);
}

TEST_CASE("lost answers are regressions, found ones are not") {
  const Pair pair;
  CHECK(pair.run(answer("1", 0.6), refusal("1")).code == 1);
  const Finished better = pair.run(refusal("1"), answer("1", 0.6));
  CHECK(better.code == 0);
  CHECK(says(better.out, "better in B: 1"));
  CHECK(pair.run(answer("1", 0.6) + answer("2", 0.6), answer("1", 0.6)).code == 1);
  CHECK(pair.run(answer("1", 0.6), answer("1", 0.6) + answer("2", 0.6)).code == 0);
}

TEST_CASE("what is not a number, and ids that are not unique") {
  const Pair pair;
  const auto with_nan = [](std::string line) {
    const std::size_t at = line.find("0.9");
    return line.replace(at, 3, "NaN");
  };
  CHECK(pair.run(answer("1", 0.9), with_nan(answer("1", 0.9))).code == 1);
  CHECK(pair.run(with_nan(answer("1", 0.9)), answer("1", 0.9)).code == 0);
  CHECK(pair.run(answer("1", 0.9), answer("1", 0.9) + answer("1", 0.1)).code == 3);
  CHECK(pair.run(answer("1", 0.6), answer("1", 0.4), {"--margin", "nan"}).code == 2);
}

TEST_CASE("nothing in common, unusable and unlike files have their own exit") {
  const Pair pair;
  CHECK(pair.run(answer("1", 0.6), answer("2", 0.6)).code == 5);
  CHECK(pair.run("", "").code == 5);
  CHECK(pair.run("{", answer("1", 0.6)).code == 3);
  CHECK(pair.run(answer("1", 0.6), "{\"id\":\"1\"}\n").code == 3);
  CHECK(run_jemm({"diff", pair.scratch.file("none"), pair.scratch.file("a.jsonl")}).code == 3);
  CHECK(run_jemm({"diff", pair.scratch.file(""), pair.scratch.file("a.jsonl")}).code == 2);
  CHECK(run_jemm({"diff"}).code == 2);
}

TEST_CASE("JSON output says the same") {
  const Pair pair;
  const Json json = Json::parse(pair.run(answer("1", 0.6), answer("1", 0.49), {"--json"}).out);
  CHECK(json["format"] == "jemm-diff/1");
  CHECK(json["regressions"]["n"] == 1);
  CHECK(json["flips"]["listed"][0]["case"] == "1");
}

TEST_CASE("two reports: a worse one is a regression, the same way back is none") {
  const ScratchDir scratch;
  const std::string golden = JEMM_SOURCE_DIR "/golden/demo-fp32-cpu";
  const auto report = [&](const std::string& name, const std::string& gates) {
    run_jemm({"parity", "--golden", golden, "--against", golden, "--gates",
              scratch.write(name + ".json", gates), "--report", scratch.file(name), "--stages",
              "accept,probabilities,decision"});
    return scratch.file(name);
  };
  const std::string a = report("a", R"({"format":"jemm-gates/1","probability_max":{"at_most":0}})");
  const std::string b = report("b", R"({"format":"jemm-gates/1","probability_max":{"at_most":0}})");
  CHECK(run_jemm({"diff", a, b}).code == 0);
  CHECK(run_jemm({"diff", a + "/report.json", b}).code == 0);
  // The same report with a worse verdict, another winner and a finding.
  Json head = Json::parse(read_text(b + "/report.json"));
  head["verdict"] = "DRIFT";
  scratch.write("b/report.json", head.dump());
  std::vector<Json> lines = parse_lines(read_text(b + "/questions.jsonl"));
  lines[0]["flipped"] = true;
  lines[0]["margin"] = 0.5;
  lines[1]["findings"] = {{{"stage", "probabilities"}, {"kind", "over budget"}, {"what", "x"}}};
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  scratch.write("b/questions.jsonl", text);
  std::vector<Json> before = parse_lines(read_text(a + "/questions.jsonl"));
  before[0]["margin"] = 0.5;
  text.clear();
  for (const Json& line : before) text += line.dump() + "\n";
  scratch.write("a/questions.jsonl", text);
  const Finished worse = run_jemm({"diff", a, b});
  CHECK(worse.code == 1);
  CHECK(says(worse.out, "worse in B: 3"));
  CHECK(says(worse.out, "PASS became DRIFT"));
  const Finished better = run_jemm({"diff", b, a});
  CHECK(better.code == 0);
  CHECK(says(better.out, "better in B: 3"));

  // Gates and stages count by themselves, between verdicts that are equal.
  const auto changed = [&](const std::function<void(Json&)>& change) {
    Json json = Json::parse(read_text(a + "/report.json"));
    change(json);
    scratch.write("c/report.json", json.dump());
    scratch.write("c/questions.jsonl", read_text(a + "/questions.jsonl"));
    return run_jemm({"diff", a, scratch.file("c")}).code;
  };
  CHECK(changed([](Json&) {}) == 0);
  CHECK(changed([](Json& json) { json["gate_results"][1]["outcome"] = "over budget"; }) == 1);
  CHECK(changed([](Json& json) { json["gate_results"].erase(1); }) == 1);
  CHECK(changed([](Json& json) { json["stages"][0]["wrong"] = 2; }) == 1);
  CHECK(changed([](Json& json) { json["stages"][0]["compared"] = 0; }) == 1);
  CHECK(changed([](Json& json) { json["stages"] = 5; }) == 3);
  CHECK(changed([](Json& json) { json.erase("gate_results"); }) == 3);
}

TEST_CASE("a name that is too long is an error of input and output") {
  const std::string name(300, 'x');
  const Finished run = run_jemm({"diff", name, name});
  CHECK(run.code == 6);
  CHECK(run.err == "error: " + name + ": File name too long\n");
}

}  // namespace jemm::test
