// jemm record as a user runs it, and jemm parity on what it wrote.
#include <doctest/doctest.h>

#include <filesystem>

#include "cli/process.h"
#include "cli/results.h"

namespace jemm::test {
namespace {

const std::string kSource = JEMM_SOURCE_DIR;
const std::string kTinyModel =
    kSource + "/fixtures/tiny-a/base+" + kSource + "/fixtures/tiny-a/adapter";

Finished record(std::vector<std::string> arguments, const std::string& input = {}) {
  arguments.insert(arguments.begin(), {"record", "--progress", "none", "--device", "cpu"});
  return run_jemm(arguments, input);
}

Finished parity(const std::string& golden, const std::string& model) {
  std::vector<std::string> arguments = {"parity", "--progress", "none", "--device",
                                        "cpu",    "--golden",   golden};
  if (!model.empty()) arguments.insert(arguments.end(), {"--model", model});
  return run_jemm(arguments);
}

}  // namespace

TEST_CASE("a recorded golden passes without any difference, and fails for another checkpoint") {
  const ScratchDir scratch;
  const std::string golden = scratch.file("g");
  const std::string source = kSource + "/golden/image-fp32-cpu";
  const Finished run = record({"--model", kTinyModel, "--out", golden, "--golden", source});
  CHECK(run.code == 0);
  CHECK(run.err.find("recorded 110 requests, 76 of them refused") != std::string::npos);

  const Finished same = parity(golden, kTinyModel);
  CHECK(same.code == 0);
  CHECK(same.out.find("PASS") != std::string::npos);
  const Json manifest = Json::parse(read_text(golden + "/manifest.json"));
  const Json reference = Json::parse(read_text(source + "/manifest.json"));
  CHECK(manifest["checkpoint_sha256"].size() == reference["checkpoint_sha256"].size());
  for (const auto& [name, hash] : reference["checkpoint_sha256"].items()) {
    CHECK(manifest["checkpoint_sha256"][name] == hash);
  }
  CHECK(manifest["ok"] == 34);
  CHECK(manifest["device"] == "cpu");
  CHECK(parity(golden, "synthetic:" + kTinyModel).code == 3);

  // The reference's golden and ours agree within the preset of FP32 too.
  const Finished both =
      run_jemm({"parity", "--progress", "none", "--golden", source, "--against", golden});
  CHECK(both.code == 0);

  std::string lines = read_text(golden + "/cases.jsonl");
  const std::size_t at = lines.find("\"logits\":[") + 10;
  lines[at + 3] = lines[at + 3] == '5' ? '6' : '5';
  scratch.write("g/cases.jsonl", lines);
  CHECK(parity(golden, kTinyModel).code == 1);
}

TEST_CASE("what a golden cannot hold is refused, and no file is left") {
  const ScratchDir scratch;
  const std::string golden = scratch.file("g");
  const std::string body = R"({"state":"s","questions":{"q":{"type":"noul","instructions":"i"}}})";
  const std::string good = R"({"id":"a","request":)" + body + "}\n";
  const auto refused = [&](const std::string& input, const std::string& why) {
    const Finished run = record({"--out", golden}, input);
    CAPTURE(run.err);
    CHECK(run.code == 4);
    CHECK(run.err.find(why) != std::string::npos);
    CHECK((!std::filesystem::exists(golden) || std::filesystem::is_empty(golden)));
  };
  refused(good + good, "more than one request has the id \"a\"");
  refused(good + R"({"id":"b","raw":3})" + "\n", "line 2 is no request");
  refused(R"({"id":"i","image_files":["x.png"],"request":)" + body + "}\n", "image files");
  CHECK(record({"--out", golden}, "\n").code == 5);
  CHECK(record({"--out", golden}, good).code == 0);
  CHECK(record({"--out", golden}, good).code == 2);
  CHECK(record({"--out", golden, "--force", "--no-stages"}, good).code == 0);
  CHECK(!std::filesystem::exists(golden + "/stages.safetensors"));
  CHECK(parity(golden, "").code == 0);
  const std::string stages = golden + "/stages.safetensors";
  std::filesystem::create_symlink("elsewhere", stages);
  CHECK(record({"--out", golden, "--force"}, good).code == 2);
  CHECK(std::filesystem::is_symlink(stages));
}

}  // namespace jemm::test
