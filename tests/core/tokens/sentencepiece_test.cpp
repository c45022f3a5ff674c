// A SentencePiece checkpoint behind the same interface, against the library's ids in Python.
#include <doctest/doctest.h>

#include "core/tokens/support.h"
#include "tokens/framing.h"

namespace jemm::test {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr const char* kFixture = JEMM_SOURCE_DIR "/fixtures/sentencepiece";

}  // namespace

TEST_CASE("ids of a SentencePiece model, added tokens split off first") {
  const auto tokenizer = load(kFixture);
  int n = 0;
  for_each_line(std::string(kFixture) + "/cases.jsonl", [&](const nlohmann::json& record) {
    const auto text = record["text"].get<std::string>();
    CAPTURE(text);
    CHECK(encode(*tokenizer, text) == record["ids"].get<Ids>());
    ++n;
  });
  CHECK(n > 10);
  CHECK(tokenizer->description().pattern == "sentencepiece");
  CHECK(tokenizer->description().tokenizer_class == "LlamaTokenizer");
  CHECK(tokenizer->description().vocabulary == 288 + 5);
  CHECK(tokenizer->added_token("<|image_pad|>") == 302);
  CHECK(tokenizer->max_id() == 304);
  CHECK(tokenizer->description().file == std::string(kFixture) + "/tokenizer.model");
  CHECK(tokenizer->count_added_tokens("<think></think>") == 2);
  CHECK(label_token_ids(*tokenizer)[0] == encode(*tokenizer, "A")[0]);
}

TEST_CASE("what a SentencePiece checkpoint refuses") {
  const auto tokenizer = load(kFixture);
  try {
    encode(*tokenizer, "\xED\xA0\xBD");
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(error.type() == "TypeError");
  }
  error_of(ErrorKind::kUsage, [] { load(kFixture, {"qwen2"}); });
  MemoryFiles files;
  const std::string model = read(std::string(kFixture) + "/tokenizer.model");
  for (const std::string& broken :
       {std::string(), std::string("not a model"), model.substr(0, model.size() / 2)}) {
    files.files["tokenizer.model"] = broken;
    CHECK(error_of(ErrorKind::kInput, [&] { load_tokenizer(files); }).find("tokenizer.model") !=
          std::string::npos);
  }
  files.files["tokenizer.model"] = model;
  CHECK(load_tokenizer(files)->added_token("<think>") == -1);
  CHECK(load_tokenizer(files)->max_id() == 287);  // the pieces alone
}

}  // namespace jemm::test
