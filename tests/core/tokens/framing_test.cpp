// The framing of a prompt, the check of its template, the label ids.
#include <doctest/doctest.h>

#include <array>

#include "core/tokens/support.h"
#include "tokens/framing.h"

namespace jemm::test {

TEST_CASE("images stand before the prompt, each with its pads") {
  const std::array<std::size_t, 2> pads{1, 3};
  CHECK(frame_prompt("P", pads) ==
        "<|im_start|>system\nChoose the best available candidate for the question using only the "
        "supplied state. "
        "Return exactly one candidate label.<|im_end|>\n<|im_start|>user\n"
        "<|vision_start|><|image_pad|><|vision_end|>"
        "<|vision_start|><|image_pad|><|image_pad|><|image_pad|><|vision_end|>"
        "P<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

TEST_CASE("a template is known by its hash") {
  constexpr const char* kKnown = "d0b53aec0f6a86e61d38570ede5eb03b7c82bd87efa5586374f25bb5e2f9becc";
  for (const char* base : {"/fixtures/tiny-a/base", "/fixtures/demo/base"}) {
    CHECK(check_chat_template(*open_directory(std::string(JEMM_SOURCE_DIR) + base)) == kKnown);
  }
  MemoryFiles files;
  files.files["tokenizer_config.json"] =
      read(JEMM_SOURCE_DIR "/fixtures/tiny-a/base/tokenizer_config.json");
  CHECK(check_chat_template(files) == kKnown);  // the configuration's own, where no file is
  files.files["chat_template.jinja"] = "abc";   // the file wins
  constexpr const char* kOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(error_of(ErrorKind::kInput, [&] { check_chat_template(files); }).find(kOfAbc) !=
        std::string::npos);
  CHECK(check_chat_template(files, true) == kOfAbc);
  files.files.clear();
  error_of(ErrorKind::kInput, [&] { check_chat_template(files, true); });
  files.files["tokenizer_config.json"] =
      R"({"chat_template": [{"name": "default", "template": "abc"}]})";
  error_of(ErrorKind::kInput, [&] { check_chat_template(files, true); });
}

TEST_CASE("each label is one token") {
  for (const char* base : {"/fixtures/tiny-a/base", "/fixtures/demo/base"}) {
    const auto labels = label_token_ids(*load(std::string(JEMM_SOURCE_DIR) + base));
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(labels[i] == static_cast<std::int32_t>(i < 26 ? 32 + i : 15 + i - 26));
    }
  }
}

namespace {

// Gives each text the ids that a test wants.
struct FakeTokenizer : Tokenizer {
  std::map<std::string, std::vector<std::int32_t>, std::less<>> answers;
  Description text;
  void encode(std::string_view content, std::vector<std::int32_t>& ids) const override {
    const auto found = answers.find(content);
    if (found == answers.end()) {
      ids.push_back(content[0]);
    } else {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
    }
  }
  std::int32_t added_token(std::string_view) const override { return -1; }
  std::int32_t max_id() const override { return 127; }
  std::size_t count_added_tokens(std::string_view) const override { return 0; }
  const Description& description() const override { return text; }
};

}  // namespace

TEST_CASE("a label of two tokens, of none, or one shared with another label is an error") {
  FakeTokenizer tokenizer;
  tokenizer.text.file = "FILE";
  CHECK(label_token_ids(tokenizer)[31] == '5');
  for (const std::vector<std::int32_t>& ids : {std::vector<std::int32_t>{7, 8}, {}, {'A'}}) {
    tokenizer.answers["5"] = ids;
    CHECK(error_of(ErrorKind::kInput, [&] { label_token_ids(tokenizer); }).find("FILE: label 5") ==
          0);
  }
}

TEST_SUITE("extra") {
  TEST_CASE("labels of the full vocabulary") {
    const auto extra = extra_golden();
    if (!extra) return;
    const auto labels = label_token_ids(*load(*extra + "/qwen-27b/base"));
    CHECK(labels[0] == 32);
    CHECK(labels[25] == 57);
    CHECK(labels[26] == 15);
    CHECK(labels[31] == 20);
  }
}

}  // namespace jemm::test
