// jemm plan through the program: it says what decide will do.
#include <doctest/doctest.h>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

std::string input() {
  const std::string state(1500, 'x');
  std::string text;
  for (int n = 0; n < 6; ++n) {
    const Json noul{{"type", "noul"}, {"instructions", "Is case " + std::to_string(n) + " down?"}};
    text += Json{{"state", n < 4 ? state : "short"},
                 {"questions", {{"a", noul}, {"b", {{"type", "noul"}}}}}}
                .dump() +
            "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("rows and passes of each mode are those of decide") {
  const ScratchDir scratch;
  const std::string path = scratch.write("in.jsonl", input());
  for (const std::string budget : {"300", "2048"}) {
    const Finished run = run_jemm({"plan", "--json", "--batch-tokens", budget, path});
    CHECK(run.code == 0);
    const Json plan = Json::parse(run.out);
    CHECK(plan["schema"] == "jemm-plan/1");
    CHECK(plan["requests"] == 6);
    CHECK(plan["questions"] == 12);
    for (const std::string mode : {"off", "request", "file"}) {
      const std::vector<Json> lines =
          results(run_jemm({"decide", "--prefix-reuse", mode, "--batch-tokens", budget, path}).out);
      std::size_t n_computed = 0, n_reused = 0;
      for (const Json& line : lines) {
        n_computed += line["jemm"]["reuse"]["rows_computed"].get<std::size_t>();
        n_reused += line["jemm"]["reuse"]["rows_reused"].get<std::size_t>();
      }
      CHECK(plan["modes"][mode]["rows_computed"] == n_computed);
      CHECK(plan["modes"][mode]["rows_saved"] == n_reused);
      CHECK(plan["rows"] == n_computed + n_reused);
    }
    const auto ms = [&](const char* mode) {
      return plan["modes"][mode]["predicted_ms"].get<double>();
    };
    if (budget == "2048") {
      CHECK(ms("request") < ms("off"));
      CHECK(ms("file") < ms("request"));
    }
  }
}

TEST_CASE("the text names trees, what is left alone and the memory") {
  const Finished run = run_jemm({"plan", "--reuse-memory", "1MB"}, input());
  CHECK(run.code == 0);
  CHECK(run.out.find("shared beginnings: 1") != std::string::npos);
  CHECK(run.out.find("(4 requests, from request 1)") != std::string::npos);
  CHECK(run.out.find("short prefix, under 64 rows") != std::string::npos);
  CHECK(run.out.find("(bound: 1.0 MB)") != std::string::npos);
  const Finished cut = run_jemm({"plan", "--batch-tokens", "1000"}, input());
  CHECK(cut.out.find("over the batch budget, computed in") != std::string::npos);
}

TEST_CASE("no weights are needed; refused requests are counted") {
  const std::string base = std::string(JEMM_SOURCE_DIR) + "/fixtures/tiny-a/base";
  const Finished run = run_jemm({"plan", "--json", "--model", base}, input() + "nonsense\n");
  CHECK(run.code == 3);
  CHECK(run.err.find("first refusal: line 7: JSONDecodeError") != std::string::npos);
  CHECK(Json::parse(run.out)["refused"] == 1);
  CHECK(Json::parse(run.out)["requests"] == 7);
  CHECK(run_jemm({"plan", "--measure", "--model", base}, input()).code == 2);
  CHECK(run_jemm({"plan"}, "").code == 5);
  CHECK(run_jemm({"plan", "/no/such/file"}).code == 6);
  CHECK(run_jemm({"plan", "--help"}).out.find("Examples") != std::string::npos);
}

TEST_CASE("costs are measured, written and read back") {
  const ScratchDir scratch;
  const Finished measured =
      run_jemm({"plan", "--json", "--measure", "--batch-tokens", "600"}, input());
  CHECK(measured.code == 0);
  const Json profile = Json::parse(measured.out)["profile"];
  CHECK(profile["points"].size() >= 2);
  const std::string path = scratch.write("profile.json", profile.dump());
  const Finished again =
      run_jemm({"plan", "--json", "--profile", path, "--batch-tokens", "600"}, input());
  CHECK(again.code == 0);
  scratch.write("plan.json", measured.out);
  const Finished whole = run_jemm(
      {"plan", "--json", "--profile", scratch.file("plan.json"), "--batch-tokens", "600"}, input());
  CHECK(Json::parse(whole.out)["modes"] == Json::parse(measured.out)["modes"]);
  CHECK(Json::parse(again.out)["modes"] == Json::parse(measured.out)["modes"]);
  for (const char* bad : {"", "[]", R"({"points":[],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[0,1]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[2,1],[1,2]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[1,2],[2,1]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[1,1]],"segment_ms":-1,"level_ms":0})",
                          R"({"points":[[1,1]],"segment_ms":0,"level_ms":1e999})",
                          R"({"points":[["a",1]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[64.9,1]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[64,1e308]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[9223372036854775807,1]],"segment_ms":0,"level_ms":0})",
                          R"({"points":[[1,1]]})"}) {
    scratch.write("profile.json", bad);
    const Finished refused = run_jemm({"plan", "--profile", path}, input());
    CHECK(refused.code == 4);
    CHECK(refused.err.find("json.exception") == std::string::npos);
    CHECK(refused.err.find("profile.json") != std::string::npos);
  }
  CHECK(run_jemm({"plan", "--profile", path, "--measure"}, input()).code == 2);
}

}  // namespace jemm::test
