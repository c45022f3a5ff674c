// The contract against the reference: every golden case's verdict, error, candidates and prompt.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/utf8.h"
#include "contract/request.h"
#include "core/contract/golden_lines.h"
#include "image/envelope.h"

namespace jemm {
namespace {

constexpr std::string_view kHead =
    "<|im_start|>system\nChoose the best available candidate for the question using only the "
    "supplied "
    "state. Return exactly one candidate label.<|im_end|>\n<|im_start|>user\n";
constexpr std::string_view kTail = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kPad = "<|vision_start|><|image_pad|><|vision_end|>";

/// A golden's framed text without the framing.
std::string_view unframed(std::string_view text, std::size_t images) {
  REQUIRE(text.starts_with(kHead));
  REQUIRE(text.ends_with(kTail));
  text = text.substr(kHead.size(), text.size() - kHead.size() - kTail.size());
  for (; images > 0; --images) {
    REQUIRE(text.starts_with(kPad));
    text.remove_prefix(kPad.size());
  }
  return text;
}

/// What this room makes of a body: the questions in order up to the first error.
struct Outcome {
  std::size_t images = 0;
  std::size_t opened = 0;  // images whose envelope has been opened
  std::vector<Question> questions;
  std::string type;  // of the error; empty when there was none
  std::string detail;
};

Outcome evaluate(std::string_view body) {
  Outcome outcome;
  try {
    const Request request = Request::parse(body);
    outcome.images = request.image_count();
    for (; outcome.opened < outcome.images; ++outcome.opened) {
      decode_envelope(outcome.opened, request.image(outcome.opened));
    }
    request.check_questions();
    for (std::size_t i = 0; i < request.question_count(); ++i) {
      outcome.questions.push_back(request.question(i));
    }
  } catch (const Error& error) {
    REQUIRE(error.kind() == ErrorKind::kRequest);
    outcome.type = error.type();
    outcome.detail = first_code_points(error.what(), 200);
  }
  return outcome;
}

void check_questions(const Outcome& ours, const JsonValue& golden) {
  const std::vector<JsonValue> questions = testing::elements(*golden.find("questions"));
  CHECK(ours.type == "");
  CHECK(ours.detail == "");
  REQUIRE(ours.questions.size() == questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Question& question = ours.questions[i];
    CHECK(question.id == testing::text_at(questions[i], "id"));
    CHECK(question_type_name(question.type) == testing::text_at(questions[i], "type"));
    std::vector<std::string> ids;
    for (const JsonValue& id : testing::elements(*questions[i].find("candidates"))) {
      ids.emplace_back(id.text());
    }
    CHECK(question.candidates == ids);
    CHECK(question.prompt == unframed(testing::text_at(questions[i], "prompt"), ours.images));
  }
}

bool any_prompt_has_surrogate(const Outcome& outcome) {
  for (const Question& question : outcome.questions) {
    for (std::size_t offset = 0; offset < question.prompt.size();) {
      if (is_surrogate(next_code_point(question.prompt, offset))) return true;
    }
  }
  return false;
}

/// Errors that a later room raises: each with what this room must have seen for it to be so.
/// Returns false when the error is this room's own.
bool belongs_to_later_room(const Outcome& ours, std::string_view type, std::string_view detail) {
  if (type == "TypeError" && detail.starts_with("TextEncodeInput")) {  // the tokenizer
    CHECK(ours.type == "");
    CHECK(any_prompt_has_surrogate(ours));
    return true;
  }
  constexpr std::string_view kImage = "image ";
  if (detail.starts_with(kImage)) {  // the decoder, for an image whose envelope passed
    return static_cast<std::size_t>(detail[kImage.size()] - '0') < ours.opened;
  }
  if (ours.opened < ours.images) return false;
  const bool token_budget = detail == "UNSUPPORTED: input exceeds token budget";
  // A typed <|image_pad|> or <|video_pad|> beside images.
  const bool typed_pad =
      type == "StopIteration" || detail == "'NoneType' object is not an iterator";
  const bool aspect_ratio = detail.starts_with("absolute aspect ratio");
  return token_budget || (ours.images > 0 && (typed_pad || aspect_ratio));
}

/// Checks every case; returns the counts as text.
std::string check_golden(const std::string& directory) {
  std::size_t accepted = 0;
  std::size_t refused = 0;
  std::size_t later = 0;
  for (const auto& line : testing::golden_lines(directory + "/cases.jsonl")) {
    const JsonValue golden = line->root();
    const std::string id = testing::text_at(golden, "id");
    CAPTURE(id);
    std::string body;
    if (const auto encoded = golden.find("body_base64")) {
      body = decode_envelope(0, encoded->text());
    } else {
      body = testing::text_at(golden, "raw");
    }
    const Outcome ours = evaluate(body);
    if (testing::text_at(golden, "status") == "ok") {
      check_questions(ours, golden);
      ++accepted;
      continue;
    }
    const JsonValue error = *golden.find("error");
    const std::string type = testing::text_at(error, "error");
    const std::string detail = testing::text_at(error, "detail");
    if (id == "body-057") {
      // Starts with a zero byte: the server takes it for UTF-16, a line here is UTF-8.
      CHECK(ours.type == "JSONDecodeError");
      CHECK(ours.detail == "Expecting value: line 1 column 1 (char 0)");
      ++refused;
    } else if (belongs_to_later_room(ours, type, detail)) {
      ++later;
    } else {
      CHECK(ours.type == type);
      CHECK(ours.detail == detail);
      ++refused;
    }
  }
  return fmt::format("{} accepted, {} refused, {} refused by later rooms", accepted, refused,
                     later);
}

}  // namespace

TEST_CASE("goldens of the repository") {
  const std::pair<std::string, std::string> goldens[] = {
      {"contract", "287 accepted, 113 refused, 0 refused by later rooms"},
      // Later: six prompts with a lone surrogate, two images that are no image.
      {"bodies", "106 accepted, 57 refused, 8 refused by later rooms"},
      {"demo-fp32-cpu", "120 accepted, 0 refused, 0 refused by later rooms"},
      {"text-fp32-cpu", "90 accepted, 30 refused, 0 refused by later rooms"},
      {"synthetic-tiny-a-fp32-cpu", "32 accepted, 16 refused, 4 refused by later rooms"}};
  for (const auto& [name, expected] : goldens) {
    CAPTURE(name);
    CHECK(check_golden(JEMM_SOURCE_DIR "/golden/" + name) == expected);
  }
}

TEST_SUITE("extra") {
  TEST_CASE("goldens outside the repository") {
    const char* root = std::getenv("JEMM_EXTRA_GOLDEN");
    if (root == nullptr) {
      MESSAGE("JEMM_EXTRA_GOLDEN is not set");
      return;
    }
    const std::pair<std::string, std::string> goldens[] = {
        {"contract-qwen", "287 accepted, 113 refused, 0 refused by later rooms"},
        {"image-fp32-cpu", "34 accepted, 48 refused, 28 refused by later rooms"},
        {"27b-fp32-h200", "22 accepted, 0 refused, 0 refused by later rooms"}};
    for (const auto& [name, expected] : goldens) {
      CAPTURE(name);
      CHECK(check_golden(std::string(root) + "/" + name) == expected);
    }
  }
}

}  // namespace jemm
