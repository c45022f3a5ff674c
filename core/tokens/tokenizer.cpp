// Chooses the tokenizer by the files that are there.
#include "tokens/tokenizer.h"

#include "base/error.h"
#include "tokens/byte_level_tokenizer.h"
#include "tokens/sentencepiece_tokenizer.h"
#include "tokens/tokenizer_json.h"
#include "tokens/tokenizer_rules.h"

namespace jemm {

std::unique_ptr<const Tokenizer> load_tokenizer(const FileSource& files,
                                                const TokenizerOptions& options) {
  if (files.contains("tokenizer.json")) {
    const Blob blob = files.open("tokenizer.json");
    TokenizerFile file = read_tokenizer_json(blob.text(), files.path("tokenizer.json"));
    TokenizerRules rules = choose_rules(files, file, options);
    return std::make_unique<ByteLevelTokenizer>(std::move(file), std::move(rules),
                                                files.path("tokenizer.json"));
  }
  if (files.contains("tokenizer.model")) {
    if (!options.pattern.empty()) {
      fail(ErrorKind::kUsage, "{} has no split pattern to override", files.path("tokenizer.model"));
    }
    const Blob blob = files.open("tokenizer.model");
    return make_sentencepiece_tokenizer(blob.text(), configured_added_tokens(files),
                                        configured_class(files), files.path("tokenizer.model"));
  }
  fail(ErrorKind::kInput, "{}: neither tokenizer.json nor tokenizer.model", files.name());
}

}  // namespace jemm
