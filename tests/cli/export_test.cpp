// jemm export, inspect and doctor through the program; what is made answers as what it was made of.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

namespace fs = std::filesystem;

const std::string kFixtures = JEMM_SOURCE_DIR "/fixtures/";

std::string base(const std::string& fixture) {
  return kFixtures + fixture + "/base";
}
std::string adapter(const std::string& fixture) {
  return kFixtures + fixture + "/adapter";
}
std::string pair_of(const std::string& fixture) {
  return base(fixture) + "+" + adapter(fixture);
}

Finished export_fixture(const std::string& fixture, const std::string& out,
                        const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "export", "--base", base(fixture), "--adapter", adapter(fixture), "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_jemm(arguments);
}

/// Requests of a golden as input lines; `step` takes every so-many-th.
std::string golden_requests(const std::string& golden, std::size_t step) {
  const std::vector<Json> cases =
      parse_lines(read_text(JEMM_SOURCE_DIR "/golden/" + golden + "/cases.jsonl"));
  std::string lines;
  for (std::size_t i = 0; i < cases.size(); i += step) {
    lines += Json{{"id", cases[i]["id"]}, {"raw", cases[i]["raw"]}}.dump(-1, ' ', true) + "\n";
  }
  return lines;
}

std::vector<Json> decide(const std::string& model, const std::string& input,
                         const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"decide", "--model", model};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished run = run_jemm(arguments, input);
  CHECK((run.code == 0 || run.code == 3));
  return results(run.out);
}

/// Copies an export so that its files can be changed.
std::string copy_of(const std::string& directory, const ScratchDir& scratch,
                    const std::string& name) {
  fs::copy(directory, scratch.file(name));
  for (const auto& entry : fs::directory_iterator(scratch.file(name))) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  }
  return scratch.file(name);
}

void replace_text(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_text(path);
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("in: " << text);
  return false;
}

}  // namespace

TEST_CASE("an export answers bit for bit as its inputs do") {
  const ScratchDir scratch;
  for (const auto& [fixture, requests] : std::map<std::string, std::string>{
           {"tiny-a", golden_requests("text-fp32-cpu", 4) + golden_requests("image-fp32-cpu", 20)},
           {"demo", golden_requests("demo-fp32-cpu", 6)}}) {
    const std::string out = scratch.file(fixture);
    const Finished made = export_fixture(fixture, out);
    CHECK(made.code == 0);
    CHECK(made.out.empty());
    const std::vector<Json> from_pair = decide(pair_of(fixture), requests);
    REQUIRE(from_pair.size() >= 20);
    // The engine's fingerprint too, so that --resume goes on across both.
    CHECK(decide(out, requests) == from_pair);
    CHECK(decide(out, requests, {"--trust", "--lora", "unmerged"}) == from_pair);
    CHECK(run_jemm({"encode", "--model", out}, requests).out ==
          run_jemm({"encode", "--model", base(fixture)}, requests).out);
  }
}

TEST_CASE("merged weights say so, and are refused where others are asked for") {
  const ScratchDir scratch;
  REQUIRE(export_fixture("tiny-a", scratch.file("merged"), {"--lora", "merged"}).code == 0);
  const std::string requests = golden_requests("text-fp32-cpu", 20);
  const std::vector<Json> merged = decide(scratch.file("merged"), requests, {"--lora", "merged"});
  const std::vector<Json> apart = decide(pair_of("tiny-a"), requests);
  REQUIRE(merged.size() == apart.size());
  CHECK(merged != apart);
  const auto all_near = [&] {
    for (std::size_t i = 0; i < merged.size(); ++i) {
      if (apart[i].contains("error")) continue;
      CHECK(merged[i]["jemm"]["engine"] != apart[i]["jemm"]["engine"]);
      for (const auto& [question, answer] : apart[i]["answers"].items()) {
        for (const auto& [id, p] : answer["probabilities"].items()) {
          const double other = merged[i]["answers"][question]["probabilities"][id];
          if (std::abs(other - p.get<double>()) > 0.1) return false;
        }
      }
    }
    return true;
  };
  CHECK(all_near());  // docs/lora.md has the drift
  const Finished wrong =
      run_jemm({"decide", "--model", scratch.file("merged"), "--lora", "unmerged"}, requests);
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "--lora unmerged: these weights are merged"));
  CHECK(run_jemm({"decide", "--model", pair_of("tiny-a"), "--lora", "merged"}, requests).code == 2);
}

TEST_CASE("weights from the formula as an export and in Hugging Face form") {
  const ScratchDir scratch;
  const std::string model = "synthetic:" + pair_of("tiny-a") + ",seed=3";
  CHECK(run_jemm({"export", "--model", model, "--out", scratch.file("e")}).code == 0);
  CHECK(run_jemm({"export", "--model", model, "--out", scratch.file("h"), "--hugging-face"}).code ==
        0);
  const std::string requests = golden_requests("synthetic-tiny-a-fp32-cpu", 13);
  const std::vector<Json> formula = decide(model, requests);
  CHECK(decide(scratch.file("e"), requests) == formula);
  std::vector<Json> files =
      decide(scratch.file("h/base") + "+" + scratch.file("h/adapter"), requests);
  REQUIRE(files.size() == formula.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    CHECK(files[i].value("answers", Json()) == formula[i].value("answers", Json()));
  }
}

TEST_CASE("directories that are refused are refused by name") {
  const ScratchDir scratch;
  const std::string exported = scratch.file("e");
  REQUIRE(export_fixture("demo", exported).code == 0);
  const auto refused = [](const std::string& model, int code, const std::string& why) {
    const Finished run = run_jemm({"decide", "--model", model}, body(1));
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK(has(run.err, why));
  };
  refused(base("demo"), 2, "is a plain base checkpoint, and answering needs an adapter");
  refused(exported + "+" + adapter("demo"), 2, "is an export, which holds its adapter");
  refused(scratch.file("absent"), 6, "absent is not a directory");
  CHECK(export_fixture("demo", exported, {"--lora", "merged"}).code == 2);
  CHECK(has(export_fixture("demo", exported).err, "is already the export of these files"));

  const std::string altered = copy_of(exported, scratch, "altered");
  replace_text(altered + "/decision_config.json", "0.84", "0.85");
  refused(altered, 4, "the SHA-256 of \"decision_config.json\" differs from jemm_export.json");
  const std::string unfinished = copy_of(exported, scratch, "unfinished");
  fs::rename(unfinished + "/jemm_export.json", unfinished + "/jemm_export.partial.json");
  refused(unfinished, 4, "is an unfinished export");
  const std::string other = copy_of(exported, scratch, "other");
  replace_text(other + "/jemm_export.json", "Choose the best", "Choose a good");
  refused(other, 4, "was made for other prompts");
  const std::string later = copy_of(exported, scratch, "later");
  replace_text(later + "/jemm_export.json", "jemm-export/1", "jemm-export/9");
  refused(later, 4, "format \"jemm-export/9\" is not supported");
  const std::string stray = copy_of(exported, scratch, "stray");
  std::ofstream(stray + "/model.safetensors") << "not listed, not looked at";
  CHECK(decide(stray, body(1)) == decide(exported, body(1)));
}

TEST_CASE("an interrupt ends the export with 130, and the same command goes on") {
  const ScratchDir scratch;
  // Large enough to be caught in the middle: 130 MB of formula.
  fs::copy(kFixtures + "tiny-a", scratch.file("m"), fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(scratch.file("m"))) {
    fs::permissions(entry, fs::perms::owner_write, fs::perm_options::add);
  }
  replace_text(scratch.file("m/base/config.json"), "\"vocab_size\": 1472",
               "\"vocab_size\": 700000");
  const std::vector<std::string> arguments = {
      "export", "--model", "synthetic:" + scratch.file("m/base") + "+" + scratch.file("m/adapter"),
      "--out", scratch.file("e")};
  const pid_t pid = start_jemm({.arguments = arguments});
  while (!fs::exists(scratch.file("e/jemm_export.partial.json"))) ::usleep(200);
  ::kill(pid, SIGINT);
  const int code = wait_jemm(pid);
  // A machine that is fast enough may be done; then there is nothing to go on with.
  CHECK((code == 130 || code == 0));
  if (code == 130) CHECK_FALSE(fs::exists(scratch.file("e/jemm_export.json")));
  const Finished again = run_jemm(arguments);
  CHECK(again.code == 0);
  CHECK(again.max_rss_kib < 500 * 1024);
  CHECK(fs::exists(scratch.file("e/jemm_export.json")));
  CHECK_FALSE(fs::exists(scratch.file("e/jemm_export.partial.json")));
}

TEST_CASE("export's options") {
  const ScratchDir scratch;
  CHECK(run_jemm({"export", "--out", scratch.file("e")}).code == 2);
  CHECK(run_jemm({"export", "--base", base("demo"), "--out", scratch.file("e")}).code == 2);
  CHECK(run_jemm({"export", "--model", base("demo"), "--out", scratch.file("e")}).code == 2);
  CHECK(run_jemm({"export", "--model", pair_of("demo")}).code == 2);
  CHECK(
      run_jemm({"export", "--model", pair_of("demo"), "--hugging-face", "--out", scratch.file("e")})
          .code == 2);
  CHECK_FALSE(fs::exists(scratch.file("e")));
  CHECK(run_jemm({"export", "--model", pair_of("demo"), "--out", "/proc/nowhere"}).code == 6);
  CHECK(has(run_jemm({"export", "--help"}).out, "jemm export --base"));
}

TEST_CASE("inspect says what a checkpoint is") {
  const ScratchDir scratch;
  REQUIRE(export_fixture("tiny-a", scratch.file("e")).code == 0);
  const Finished run = run_jemm({"inspect", "--json", scratch.file("e")});
  CHECK(run.code == 0);
  const Json report = Json::parse(run.out);
  CHECK(report["schema"] == "jemm-inspect/1");
  CHECK(report["kind"] == "export");
  CHECK(report["architecture"]["layers"] == 8);
  CHECK(report["lora"]["pairs"] == 62);
  CHECK(report["lora"]["scales"] == Json{2.0});
  CHECK(report["tokenizer"]["pattern"] == "qwen3_5");
  CHECK(report["labels"]["A"] == 32);
  CHECK(report["labels"]["5"] == 20);
  CHECK(report["template"]["known"] == true);
  CHECK(report["calibration"]["threshold"] == 0.9872681877423998);
  CHECK(report["token_budgets"]["images"] == 3072);
  CHECK(report["hashes"]["recorded"] == true);
  const Json golden = Json::parse(read_text(JEMM_SOURCE_DIR "/golden/text-fp32-cpu/manifest.json"));
  CHECK(report["hashes"]["inputs"]["base/model.safetensors"] ==
        golden["checkpoint_sha256"]["model.safetensors"]);
  CHECK(report["refusals"].empty());
  // 4 (4 D + F + 2 conv_dim + 3 value_dim) with D 96, F 208, conv_dim 160, value_dim 96.
  CHECK(report["memory_bytes"]["cpu_fp32"]["a_row"] == 4 * (384 + 208 + 320 + 288));
  CHECK(has(run_jemm({"inspect", scratch.file("e")}).out, "refused       nothing"));
  CHECK(run_jemm({"inspect"}).code == 0);

  const Finished plain = run_jemm({"inspect", "--json", base("tiny-a")});
  CHECK(plain.code == 4);
  CHECK(Json::parse(plain.out)["refusals"].size() == 1);
  const std::string altered = copy_of(scratch.file("e"), scratch, "altered");
  std::fstream(altered + "/model.safetensors", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('\x7f');
  const Finished refused = run_jemm({"inspect", altered});
  CHECK(refused.code == 4);
  CHECK(has(refused.out, "the SHA-256 of \"model.safetensors\" differs"));
}

TEST_CASE("doctor ends in a verdict") {
  const Finished run = run_jemm({"doctor"});
  CHECK(run.code == 0);
  CHECK(run.out.ends_with("verdict: ok\n"));
  CHECK(has(run.out, "GPU: "));
  const Json report = Json::parse(run_jemm({"doctor", "--json", "--model", pair_of("tiny-a")}).out);
  CHECK(report["verdict"] == "ok");
  CHECK(report["self_check"]["ok"] == true);
  CHECK(report["unicode"]["split_pattern"] == "16.0");
  CHECK(report["memory"]["total_bytes"].get<double>() > 1e8);
  const Finished bad = run_jemm({"doctor", "--model", base("tiny-a")});
  CHECK(bad.code == 4);
  CHECK(bad.out.ends_with("verdict: not ok\n"));
}

}  // namespace jemm::test
