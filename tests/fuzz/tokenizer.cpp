// Any text through the tokenizer: decoding the ids gives the text back, in NFC between added tokens.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "tokens/added_tokens.h"
#include "tokens/check_utf8.h"
#include "tokens/nfc.h"
#include "tokens/tokenizer.h"
#include "tokens/tokenizer_json.h"
#include "tokens/tokenizer_rules.h"

namespace {

using namespace jemm;

struct Fixture {
  std::shared_ptr<const FileSource> files = open_directory(JEMM_SOURCE_DIR "/fixtures/tiny-a/base");
  TokenizerFile file = read_tokenizer_json(files->open("tokenizer.json").text(), "tokenizer.json");
  AddedTokens added{choose_rules(*files, file, {}).added, "tokenizer.json"};
  std::unique_ptr<const Tokenizer> marks = load_tokenizer(*files, {"qwen3_5"});
  std::unique_ptr<const Tokenizer> letters = load_tokenizer(*files, {"qwen2"});
  std::map<std::int32_t, std::string> spellings;

  Fixture() {
    for (std::size_t i = 0; i < file.vocabulary.size(); ++i) {
      spellings[file.vocabulary.id(i)] = file.vocabulary.token(i);
    }
    for (const AddedToken& token : file.added) spellings[token.id] = token.content;
  }
};

std::string expected(const AddedTokens& added, std::string_view text) {
  std::string result, scratch;
  std::size_t plain = 0;
  while (const auto match = added.find(text, plain)) {
    result += to_nfc(text.substr(plain, match->begin - plain), scratch);
    result += text.substr(match->begin, match->end - match->begin);
    plain = match->end;
  }
  return result += to_nfc(text.substr(plain), scratch);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Fixture fixture;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool valid = find_text_fault(text).kind == TextFault::kNone;
  for (const Tokenizer* tokenizer : {fixture.marks.get(), fixture.letters.get()}) {
    std::vector<std::int32_t> ids;
    try {
      tokenizer->encode(text, ids);
      if (!valid) std::abort();
    } catch (const Error& error) {
      if (valid || error.kind() != ErrorKind::kRequest) std::abort();
      continue;
    }
    std::string decoded;
    for (const std::int32_t id : ids) decoded += fixture.spellings.at(id);
    if (decoded != expected(fixture.added, text)) std::abort();
    if (tokenizer->count_added_tokens(text) > ids.size()) std::abort();
  }
  return 0;
}
