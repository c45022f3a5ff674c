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

TEST_CASE("lines that a golden cannot hold are left out by name, and the rest is recorded") {
  const ScratchDir scratch;
  const std::string golden = scratch.file("g");
  const std::string good = R"({"id":"a","request":)" + body(1) + "}\n";
  const Finished run =
      record({"--out", golden}, good + "\n" + good + R"({"id":"b","raw":3})" + "\n" +
                                    R"({"id":"i","image_files":["no.png"],"request":)" + body(1) +
                                    "}\n" + R"({"id":"","request":)" + body(2) + "}\n" + body(3) +
                                    "\n" + R"({"id":"s\ud800","request":)" + body(1) + "}\n");
  CHECK(run.code == 3);
  for (const char* why :
       {"line 3 is left out: it repeats the id \"a\" of line 1", "line 4 is left out",
        "line 5 is left out: image file", "line 6 is left out: its id is empty",
        "recorded 2 requests", "line 8 is left out: its id holds a lone surrogate",
        "5 lines were left out"}) {
    CHECK(run.err.find(why) != std::string::npos);
  }
  CHECK(parse_lines(read_text(golden + "/cases.jsonl")).size() == 2);
  CHECK(parity(golden, "").code == 0);
}

TEST_CASE("image files are recorded as images of the body") {
  const ScratchDir scratch;
  const std::string golden = scratch.file("g");
  const std::string source = read_text(kSource + "/golden/demo-fp32-cpu/cases.jsonl");
  std::string image;
  for (const Json& line : parse_lines(source)) {
    if (!line.contains("images")) continue;
    image = Json::parse(line["raw"].get<std::string>())["images"][0].get<std::string>();
    break;
  }
  REQUIRE(!image.empty());
  scratch.write("image", from_base64(image.substr(image.find(',') + 1)));
  Json both = Json::parse(body(1));
  both["images"] = {image};
  both["image_files"] = {"image"};
  Json null_list = Json::parse(body(1));
  null_list["images"] = nullptr;
  null_list["image_files"] = {"image"};
  const std::string input = scratch.write("in.jsonl", both.dump() + "\n" + null_list.dump() + "\n");
  CHECK(record({"--out", golden, input}).code == 0);
  const std::vector<Json> cases = parse_lines(read_text(golden + "/cases.jsonl"));
  REQUIRE(cases.size() == 2);
  CHECK(cases[0]["images"].size() == 2);
  CHECK(cases[0]["images"][0] == cases[0]["images"][1]);
  CHECK(cases[1]["images"].size() == 1);
  CHECK(parity(golden, "").code == 0);
  const std::vector<Json> decided = results(run_jemm({"decide", input}).out);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(cases[i]["response"]["answers"] == decided[i]["answers"]);
  }
}

TEST_CASE("an earlier golden stays until a new one is finished") {
  const ScratchDir scratch;
  const std::string golden = scratch.file("g");
  const std::string good = body(1) + "\n";
  CHECK(record({"--out", golden}, "\n").code == 5);
  const Finished refused = record({"--out", golden}, "nonsense\n");
  CHECK(refused.code == 3);
  CHECK(refused.err.find("the input is JSON lines") != std::string::npos);
  CHECK(std::filesystem::is_empty(golden));

  CHECK(record({"--out", golden}, good).code == 0);
  const std::string cases = read_text(golden + "/cases.jsonl");
  const std::string manifest = read_text(golden + "/manifest.json");
  CHECK(record({"--out", golden}, good).code == 2);
  CHECK(record({"--out", golden, "--force"}, "").code == 5);
  CHECK(record({"--out", golden, "--force"}, "nonsense\n").code == 3);
  CHECK(record({"--out", golden, "--force", "--model", scratch.file("none")}, good).code == 6);
  for (const char* same : {"", "/../g"}) {
    CHECK(record({"--out", golden, "--force", "--golden", golden + same}).code == 2);
  }
  CHECK(record({"--out", golden, "--force", golden + "/cases.jsonl"}).code == 2);
  CHECK(read_text(golden + "/cases.jsonl") == cases);
  CHECK(read_text(golden + "/manifest.json") == manifest);
  CHECK(parity(golden, "").code == 0);

  CHECK(record({"--out", golden, "--force", "--no-stages"}, body(2) + "\n").code == 0);
  CHECK(read_text(golden + "/cases.jsonl") != cases);
  CHECK(!std::filesystem::exists(golden + "/stages.safetensors"));
  CHECK(parity(golden, "").code == 0);
  const std::string stages = golden + "/stages.safetensors";
  std::filesystem::create_symlink("elsewhere", stages);
  CHECK(record({"--out", golden, "--force"}, good).code == 2);
  CHECK(std::filesystem::is_symlink(stages));
}

}  // namespace jemm::test
