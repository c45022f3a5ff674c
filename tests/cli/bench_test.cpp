// jemm bench as a user runs it, on the embedded checkpoint.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

Finished bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  return run_jemm(arguments);
}

/// The report of a run that is not long.
Json report_of(const ScratchDir& scratch, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", scratch.file("report.json"), "--force"});
  const Finished run = bench(std::move(arguments));
  CHECK(run.code == 0);
  CHECK(says(run.err, "toy"));
  return Json::parse(read_text(scratch.file("report.json")));
}

}  // namespace

TEST_CASE("a sweep: every size has its row, its tokens and its samples") {
  const ScratchDir scratch;
  const Json report =
      report_of(scratch, {"--tokens", "120-240*2", "--candidates", "2,5", "--questions", "3",
                          "--runs", "2", "--warmup", "1", "--samples", scratch.file("samples")});
  CHECK(report["schema"] == "jemm-bench/1");
  REQUIRE(report["results"].size() == 4);
  const Json& last = report["results"][3];
  CHECK(last["workload"]["name"] == "240 tokens, 3 questions, 5 candidates");
  CHECK(last["workload"]["tokens"] == 720);
  CHECK(last["workload"]["questions"] == 3);
  CHECK(last["modes"][0]["rows"] == 720);
  CHECK(last["modes"][0]["n"] == 2);
  CHECK(last["modes"][0]["total_ms"]["samples"].size() == 2);
  CHECK(report["model"]["toy"] == true);
  // First, one warm-up, two measured runs of four sizes.
  CHECK(parse_lines(read_text(scratch.file("samples"))).size() == 16);
}

TEST_CASE("stages add up to the total within 2 %") {
  const ScratchDir scratch;
  const Json report = report_of(scratch, {"--tokens", "1024", "--runs", "5"});
  const Json& mode = report["results"][0]["modes"][0];
  double sum = 0, total = 0;
  for (const auto& [name, ms] : mode["stages_ms"].items()) {
    if (name != "other") sum += ms.get<double>();
  }
  for (const Json& ms : mode["total_ms"]["samples"]) total += ms.get<double>() / 5;
  CHECK(sum == doctest::Approx(total).epsilon(0.02));
  CHECK(mode["engine_ms"]["median"].get<double>() < mode["total_ms"]["median"].get<double>());
}

TEST_CASE("images have tokens and patches of their own") {
  const ScratchDir scratch;
  const Json report = report_of(
      scratch, {"--tokens", "300", "--images", "0,320x256x2", "--runs", "1", "--warmup", "0"});
  REQUIRE(report["results"].size() == 2);
  CHECK(report["results"][0]["modes"][0]["patches"] == 0);
  CHECK(report["results"][1]["modes"][0]["patches"] == 2 * 20 * 16);
  CHECK(report["results"][1]["modes"][0]["rows"] == 300);
  CHECK(report["results"][1]["modes"][0]["stages_ms"]["vision"].get<double>() > 0);
  const Finished tight = bench({"--tokens", "100", "--images", "320x256"});
  CHECK(tight.code == 2);
  CHECK(says(tight.err, "no prompt of 100 tokens, 4 candidates, 320x256: there are"));
  CHECK(bench({"--tokens", "3073", "--images", "320x256"}).code == 2);
  CHECK(says(bench({"--tokens", "300", "--images", "8000x33"}).err, "aspect ratio"));
}

TEST_CASE("throughput on a file counts its requests and its refusals") {
  const ScratchDir scratch;
  const std::string file = scratch.write("in.jsonl", bodies(5) + "{\"questions\":{}}\nnot json\n");
  const Json report = report_of(scratch, {"--input", file, "--runs", "2"});
  const Json& workload = report["results"][0]["workload"];
  CHECK(workload["name"] == "in.jsonl");
  CHECK(workload["requests"] == 7);
  CHECK(workload["refused"] == 2);
  CHECK(workload["questions"] == 5);
  CHECK(workload["tokens"] == report["results"][0]["modes"][0]["rows"]);
  CHECK(says(report["doubts"].dump(), "2 of 7 requests were refused"));
  CHECK(bench({"--input", scratch.write("none", "\n")}).code == 5);
  const Finished refused = bench({"--input", scratch.write("bad", "{}\n")});
  CHECK(refused.code == 3);
  CHECK(says(refused.err, "every request was refused; request \"1\": ValueError: no questions"));
  CHECK(bench({"--input", scratch.file("absent")}).code == 6);
  CHECK(bench({"--input", file, "--tokens", "99"}).code == 2);
}

TEST_CASE("modes run side by side with the same answers") {
  const ScratchDir scratch;
  const Json report = report_of(scratch, {"--tokens", "200", "--questions", "2", "--compare",
                                          "batch-tokens=64,2048", "--runs", "4"});
  REQUIRE(report["modes"].size() == 2);
  const Json& modes = report["results"][0]["modes"];
  CHECK(modes[0]["passes"] == 2);
  CHECK(modes[1]["passes"] == 1);
  CHECK(modes[1]["drift"]["largest"] == 0);
  CHECK(modes[1]["speed_up"]["total"]["value"].get<double>() > 0);
  CHECK(modes[1]["speed_up"]["total"]["low"].is_null());  // of 4 runs
  CHECK(report["modes"][0]["load_ms"].get<double>() > 0);
  CHECK(report["modes"][1]["load_ms"].is_null());
  CHECK(modes[0]["answers"].size() == 2);
  CHECK(modes[0]["answers"][0].size() == 4);
}

TEST_CASE("prefix reuse computes fewer rows for the same answers") {
  const ScratchDir scratch;
  const Json report = report_of(scratch, {"--tokens", "400", "--questions", "4", "--compare",
                                          "reuse=off,request", "--runs", "2"});
  const Json& modes = report["results"][0]["modes"];
  CHECK(report["results"][0]["workload"]["tokens"] == 1600);
  CHECK(modes[0]["rows"] == 1600);
  CHECK(modes[1]["rows"].get<int>() < 1000);
  CHECK(modes[1]["operations"].get<double>() < modes[0]["operations"].get<double>());
  CHECK(modes[1]["drift"]["largest"] == 0);
  CHECK(modes[1]["setup"].get<std::string>().ends_with("reuse request"));
}

TEST_CASE("another model answers otherwise, so it is not said to be faster") {
  const std::string model = std::string(JEMM_SOURCE_DIR) + "/fixtures/demo";
  const std::string real = model + "/base+" + model + "/adapter";
  const Finished run = bench({"--tokens", "120", "--runs", "2", "--compare",
                              "model=" + real + ",synthetic:" + real, "--max-drift", "0.0001"});
  CHECK(run.code == 0);
  CHECK(says(run.out, "no speed-up is given, the answers differ by"));
  CHECK_FALSE(says(run.out, "times as fast"));
}

TEST_CASE("a model under another name is the same model") {
  const std::string model = std::string(JEMM_SOURCE_DIR) + "/fixtures/demo";
  const Finished run = bench({"--compare", "model=" + model + "/base+" + model + "/adapter," +
                                               model + "/./base+" + model + "/adapter"});
  CHECK(run.code == 2);
  CHECK(says(run.err, "are the same here"));
}

TEST_CASE("a baseline: as fast, slower, of another model, none") {
  const ScratchDir scratch;
  Json report = report_of(scratch, {"--tokens", "120", "--runs", "4"});
  const std::vector<std::string> again = {"--tokens", "120",        "--runs",
                                          "2",        "--baseline", scratch.file("old.json")};
  const auto run_against = [&](const Json& baseline, std::vector<std::string> more = {}) {
    scratch.write("old.json", baseline.dump());
    std::vector<std::string> arguments = again;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return bench(arguments);
  };
  CHECK(run_against(report, {"--max-slowdown", "100"}).code == 0);

  Json quick = report;
  for (Json& ms : quick["results"][0]["modes"][0]["total_ms"]["samples"]) ms = 0.001;
  const Finished slower = run_against(quick, {"--max-slowdown", "5"});
  CHECK(slower.code == 1);
  CHECK(says(slower.out, "SLOWER than the limit of 5"));

  Json other = report;
  other["model"]["fingerprint"] = "another";
  const Finished refused = run_against(other);
  CHECK(refused.code == 2);
  CHECK(says(refused.err, "is of another model: another, not"));
  CHECK(refused.out.empty());

  other = report;
  other["results"][0]["modes"][0]["answers"][0][0] = 2;
  const Finished differs = run_against(other);
  CHECK(differs.code == 1);
  CHECK(says(differs.out, "no ratio is given, the answers DIFFER from the baseline's by"));
  CHECK_FALSE(says(differs.out, "times the baseline's time"));

  other = report;
  other["results"][0]["workload"]["sha256"] = "another";
  CHECK(run_against(other).code == 5);
  CHECK(run_against({{"schema", "jemm-bench/2"}}).code == 4);
  CHECK(bench({"--baseline", scratch.file("absent")}).code == 6);
  CHECK(bench({"--max-slowdown", "2"}).code == 2);
}

TEST_CASE("what is no measurement is refused before one begins") {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--tokens", "0"},
           {"--tokens", "40"},
           {"--tokens", "9000"},
           {"--tokens", "100-"},
           {"--candidates", "1"},
           {"--candidates", "33"},
           {"--questions", "257"},
           {"--images", "640"},
           {"--time", "-1"},
           {"--time", "nan"},
           {"--runs", "0"},
           {"--runs", "2", "--time", "1"},
           {"--compare", "threads"},
           {"--compare", "threads=1"},
           {"--compare", "threads=1,1"},
           {"--compare", "threads=1,x"},
           {"--compare", "colour=red,blue"},
           {"--compare", "precision=fp32,bf16", "--device", "cpu"},
           {"--compare", "deterministic=off,on", "--device", "cpu"},
           {"--floor", "--device", "cpu"},
           {"--max-drift", "2"},
           {"--threads", "2", "--compare", "threads=1,2"},
           {"--batch-tokens", "64", "--compare", "batch-tokens=64,128"},
       }) {
    CAPTURE(arguments.back());
    const Finished run = bench(arguments);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
  }
}

TEST_CASE("files are not overwritten unasked, and a full disk is an error") {
  const ScratchDir scratch;
  const std::string kept = scratch.write("kept", "kept");
  const std::vector<std::string> quick = {"--tokens", "120", "--runs", "1"};
  for (const char* option : {"--json", "--samples"}) {
    std::vector<std::string> arguments = quick;
    arguments.insert(arguments.end(), {option, kept});
    CHECK(bench(arguments).code == 2);
    CHECK(read_text(kept) == "kept");
  }
  CHECK(bench({"--tokens", "120", "--runs", "1", "--samples", "/dev/full", "--force"}).code == 6);
  CHECK(run_jemm(Process{.arguments = {"bench", "--tokens", "120", "--runs", "1"},
                         .output_file = "/dev/full"})
            .code == 6);
}

TEST_CASE("what is set twice is named") {
  CHECK(says(bench({"--threads", "2", "--compare", "threads=1,2"}).err,
             "--threads 2 and --compare threads=1,2 set the same: leave --threads out"));
  CHECK(says(bench({"--compare", "compare=1,2"}).err, "one of the keys model, device"));
}

TEST_CASE("a report takes its place at the start") {
  const ScratchDir scratch;
  const auto quick = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--tokens", "120", "--runs", "1", "--warmup", "0"});
    return bench(std::move(more));
  };
  SUBCASE("a name that cannot be written is refused before anything is measured") {
    for (const std::string& path :
         {scratch.file("absent/report"), scratch.file(std::string(300, 'x'))}) {
      const Finished run = quick({"--json", path});
      CHECK(run.code == 6);
      CHECK(run.out.empty());
      CHECK(says(run.err, "error: cannot write " + path + ": "));
    }
  }
  SUBCASE("what is no regular file is refused and left alone, a link is followed") {
    const std::string pipe = scratch.file("pipe"), link = scratch.file("link");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::filesystem::create_symlink(scratch.write("target", "old"), link);
    for (const std::string& path : {pipe, scratch.file("")}) {
      const Finished run = quick({"--json", path, "--force"});
      CHECK(run.code == 2);
      CHECK(run.out.empty());
      CHECK(says(run.err, "is no regular file"));
    }
    CHECK(std::filesystem::is_fifo(pipe));
    CHECK(quick({"--json", link}).code == 2);
    CHECK(read_text(scratch.file("target")) == "old");
    CHECK(quick({"--json", link, "--force"}).code == 0);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(Json::parse(read_text(scratch.file("target")))["schema"] == "jemm-bench/1");
  }
  SUBCASE("it is written even when nobody reads standard output") {
    const Finished run = run_jemm(Process{
        .arguments = {"bench", "--tokens", "120", "--runs", "1", "--json", scratch.file("report")},
        .output_file = "/dev/full"});
    CHECK(run.code == 6);
    CHECK(Json::parse(read_text(scratch.file("report")))["results"].size() == 1);
  }
  SUBCASE("a run that fails leaves no empty report, and an old one as it was") {
    const std::string bad = scratch.write("bad", "{}\n");
    CHECK(bench({"--input", bad, "--json", scratch.file("report")}).code == 3);
    CHECK_FALSE(std::filesystem::exists(scratch.file("report")));
    const std::string old = scratch.write("old", "old");
    CHECK(bench({"--input", bad, "--json", old, "--force"}).code == 3);
    CHECK(read_text(old) == "old");
  }
  SUBCASE("no file is written twice, or over what is read") {
    const std::string file = scratch.write("in.jsonl", bodies(1));
    const std::string dotted = scratch.file("./in.jsonl"), fresh = scratch.file("s");
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"--json", fresh, "--samples", fresh},
                                               {"--json", fresh, "--samples", scratch.file("./s")},
                                               {"--json", dotted, "--input", file, "--force"},
                                               {"--samples", dotted, "--input", file, "--force"}}) {
      const Finished run = bench(arguments);
      CAPTURE(run.err);
      CHECK(run.code == 2);
      CHECK(says(run.err, "are one file"));
    }
    CHECK_FALSE(std::filesystem::exists(fresh));
    CHECK(read_text(file) == bodies(1));
  }
}

TEST_CASE("an interrupt ends it, the samples so far stay whole") {
  const ScratchDir scratch;
  const std::string samples = scratch.file("samples");
  const pid_t pid = start_jemm(
      {.arguments = {"bench", "--tokens", "120", "--time", "600", "--samples", samples}});
  for (int i = 0; i < 600; ++i) {
    std::ifstream in(samples);
    if (in.peek() != EOF) break;
    usleep(50'000);
  }
  kill(pid, SIGINT);
  CHECK(wait_jemm(pid) == 130);
  const std::string text = read_text(samples);
  CHECK(text.ends_with("\n"));
  CHECK(parse_lines(text).size() >= 1);
}

}  // namespace jemm::test
