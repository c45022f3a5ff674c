// What is written is what is read back.
#include "judge/golden_writer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/base64.h"
#include "base/error.h"
#include "judge/case_reader.h"
#include "judge/golden.h"
#include "judge/judge.h"

namespace jemm {
namespace {

namespace fs = std::filesystem;

CaseRecord sample(const std::string& id) {
  CaseRecord record = read_case(
      R"({"id":"c","raw":"{\"a\": \"\u00e9\\ud800\"}","status":"ok",
      "images":[{"width":4,"height":2,"rgb_sha256":"aa","grid_thw":[1,2,4],"pixel_values_sha256":"bb"}],
      "questions":[{"id":"q\ud800","type":"choice","candidates":["x","y\n"],"prompt":"a \"prompt\"",
        "token_ids":[1,-2,3],"position_ids_sha256":"cc","logits":[2.0000001,-1e-30]}],
      "response":{"model":"JEMM","answers":{"q\ud800":{"type":"choice","choice":"x",
        "probabilities":{"x":0.1,"y\n":0.9},"confidence":0.9}},
        "usage":{"input_tokens":4,"output_tokens":0}}})",
      "case");
  record.id = id;
  record.tensors = {{0, {StageKind::kVision}, {1.5f, -2.25f}},
                    {0, {StageKind::kLayer, 3}, {0.1f, 3e38f, -0.0f}}};
  return record;
}

/// A directory of its own, removed at the end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("golden_writer_" + std::to_string(::getpid()));
  Scratch() { fs::remove_all(path); }
  ~Scratch() { fs::remove_all(path); }
};

const GoldenWriter::Source kSource{.dtype = "float32",
                                   .device = "cpu",
                                   .versions = {{"jemm", "0"}},
                                   .checkpoint_sha256 = {{"config.json", "ab"}},
                                   .synthetic_seed = 7};

}  // namespace

TEST_CASE("base64 of every length reads back") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(decode_base64(encode_base64(bytes)) == bytes);
    bytes += static_cast<char>(i * 37);
  }
  CHECK(encode_base64("ab") == "YWI=");
  CHECK(encode_base64("a\xff") == "Yf8=");
}

TEST_CASE("a line of cases.jsonl holds every field, bit by bit") {
  const CaseRecord before = sample("c");
  const CaseRecord after = read_case(case_line(before), "line");
  CHECK(after.body == before.body);
  CHECK(after.questions[0].id == before.questions[0].id);
  CHECK(after.questions[0].candidates == before.questions[0].candidates);
  CHECK(after.questions[0].prompt == before.questions[0].prompt);
  CHECK(after.questions[0].token_ids == before.questions[0].token_ids);
  CHECK(after.questions[0].logits == before.questions[0].logits);
  CHECK(after.images[0].grid_thw == before.images[0].grid_thw);
  CHECK(after.response->answers[0].fields == before.response->answers[0].fields);
  CHECK(after.response->answers[0].probabilities == before.response->answers[0].probabilities);
  CHECK(after.response->input_tokens == 4);
}

TEST_CASE("bodies of any bytes and logits of any value are kept") {
  CaseRecord record = sample("c");
  for (const std::string body : {"", "\xff\xfe{", "\xed\xa0\x80", "plain \xc3\xa9", "\0x"}) {
    record.body = body;
    if (body.empty()) record.body = std::string("a\0b", 3);
    CHECK(read_case(case_line(record), "line").body == record.body);
  }
  record.questions[0].logits = {std::numeric_limits<double>::infinity(), -0.0};
  const auto logits = *read_case(case_line(record), "line").questions[0].logits;
  CHECK(std::isinf(logits[0]));
  CHECK(std::signbit(logits[1]));
  CaseRecord refused;
  refused.id = "r";
  refused.body = "{}";
  refused.error = ErrorRecord{422, "ValueError", "no \"questions\""};
  CHECK(read_case(case_line(refused), "line").error->detail == refused.error->detail);
}

TEST_CASE("a golden that is written passes against what it was made of, and only that") {
  const Scratch scratch;
  GoldenWriter writer(scratch.path, false);
  writer.add(sample("a"));
  writer.add(sample("b/0"));
  CHECK_THROWS_AS(writer.add(sample("a")), Error);
  CHECK_THROWS_AS(writer.add(sample("lone \xed\xa0\x80")), Error);
  writer.finish(kSource);

  Golden golden(scratch.path.string());
  CHECK(golden.n_cases() == 2);
  CHECK(golden.manifest().dtype == "float32");
  CHECK(golden.manifest().synthetic_seed == 7);
  CHECK(golden.manifest().checkpoint_sha256.at("config.json") == "ab");
  CHECK(golden.n_stray_tensors() == 0);
  const auto verdict = [&](float moved) {
    Judge judge(gate_preset("fp32"), StageSet::all(), std::nullopt);
    for (const char* id : {"a", "b/0"}) {
      CaseRecord observed = sample(id);
      observed.tensors[1].values[0] += moved;
      observed.tensors[1].values[1] = 3e38f + moved * 1e38f;
      judge.add(compare_cases(*golden.find(id), observed, StageSet::all()), nullptr);
    }
    return judge.finish().verdict;
  };
  CHECK(verdict(0) == Verdict::kPass);
  CHECK(verdict(0.1f) == Verdict::kDrift);
  CHECK(fs::directory_iterator(scratch.path) != fs::directory_iterator());
  for (const auto& entry : fs::directory_iterator(scratch.path)) {
    CHECK(entry.path().extension() != ".partial");
    CHECK(entry.path().filename() != "stages.values");
  }
}

TEST_CASE(
    "a golden that is there is replaced only when told so, and only by one that is finished") {
  const Scratch scratch;
  {
    GoldenWriter writer(scratch.path, false);
    writer.add(sample("a"));
    writer.finish(kSource);
  }
  CHECK_THROWS_AS(GoldenWriter(scratch.path, false), Error);
  {
    GoldenWriter unfinished(scratch.path, true);
    unfinished.add(sample("z"));
  }
  CHECK(Golden(scratch.path.string()).find("a"));
  CHECK(std::distance(fs::directory_iterator(scratch.path), fs::directory_iterator()) == 3);

  GoldenWriter other(scratch.path, true);
  CaseRecord without_tensors = sample("b");
  without_tensors.tensors.clear();
  other.add(without_tensors);
  other.finish(kSource);
  Golden replaced(scratch.path.string());
  CHECK(replaced.n_cases() == 1);
  CHECK(replaced.find("b"));
  CHECK(!replaced.has_tensors());
  CHECK(!fs::exists(scratch.path / "stages.safetensors"));

  const fs::path blocked = scratch.path / "blocked";
  fs::create_directories(blocked / "cases.jsonl");
  CHECK_THROWS_AS(GoldenWriter(blocked, true), Error);
}

}  // namespace jemm
