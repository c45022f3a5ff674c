// Framing and token ids of whole prompts, against what the reference wrote down.
#include <doctest/doctest.h>

#include "core/tokens/support.h"
#include "tokens/framing.h"

namespace jemm::test {
namespace {

constexpr const char* kGolden = JEMM_SOURCE_DIR "/golden/";
constexpr const char* kFixtures = JEMM_SOURCE_DIR "/fixtures/";

// The user's part of a framed text of one question without images.
std::string unframed(const std::string& framed) {
  const std::string empty = frame_prompt("");
  const std::size_t tail =
      std::string("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n").size();
  REQUIRE(framed.size() >= empty.size());
  return framed.substr(empty.size() - tail, framed.size() - empty.size());
}

// Checks every question of a golden and returns how many there were.
int check_golden(const std::string& cases, const std::string& checkpoint) {
  const auto tokenizer = load(checkpoint);
  int n_questions = 0;
  for_each_line(cases, [&](const nlohmann::json& record) {
    if (record.value("status", "") != "ok" || record.contains("images")) return;
    for (const auto& question : record["questions"]) {
      const auto prompt = question["prompt"].get<std::string>();
      CAPTURE(record["id"]);
      CHECK(frame_prompt(unframed(prompt)) == prompt);
      CHECK(encode(*tokenizer, prompt) == question["token_ids"].get<std::vector<std::int32_t>>());
      ++n_questions;
    }
  });
  return n_questions;
}

}  // namespace

TEST_CASE("token ids of the goldens in the repository") {
  const std::string golden = kGolden, fixtures = kFixtures;
  CHECK(check_golden(golden + "contract/cases.jsonl", fixtures + "tiny-a/base") > 400);
  CHECK(check_golden(golden + "bodies/cases.jsonl", fixtures + "tiny-a/base") > 100);
  CHECK(check_golden(golden + "text-fp32-cpu/cases.jsonl", fixtures + "tiny-a/base") > 150);
  CHECK(check_golden(golden + "demo-fp32-cpu/cases.jsonl", fixtures + "demo/base") > 100);
}

TEST_SUITE("extra") {
  TEST_CASE("token ids with the full vocabulary") {
    const auto extra = extra_golden();
    if (!extra) return;
    CHECK(check_golden(*extra + "/contract-qwen/cases.jsonl", *extra + "/qwen-27b/base") > 400);
  }
}

}  // namespace jemm::test
