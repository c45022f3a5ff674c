// Text to ids: added tokens, words, merges.
#include "tokens/byte_level_tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "tokens/check_utf8.h"
#include "tokens/nfc.h"
#include "tokens/splitter.h"

namespace jemm {

ByteLevelTokenizer::ByteLevelTokenizer(TokenizerFile file, TokenizerRules rules,
                                       const std::string& name)
    : vocabulary_(std::move(file.vocabulary)),
      merges_(std::move(file.merges)),
      added_(std::move(rules.added), name),
      pattern_(rules.pattern),
      nfc_(rules.nfc),
      whole_(std::make_unique<std::atomic<std::uint8_t>[]>(vocabulary_.size())) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char one = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary_.find({&one, 1});
  }
  description_.tokenizer_class = std::move(rules.tokenizer_class);
  description_.pattern = pattern_ == SplitPattern::kQwen2 ? "qwen2" : "qwen3_5";
  description_.file = name;
  description_.vocabulary = file.n_vocabulary + added_.size();
}

std::int32_t ByteLevelTokenizer::max_id() const {
  std::int32_t largest = added_.max_id();
  for (std::size_t i = 0; i < vocabulary_.size(); ++i) {
    largest = std::max(largest, vocabulary_.id(i));
  }
  return largest;
}

void ByteLevelTokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  check_text(text);
  std::size_t plain = 0;
  while (const auto match = added_.find(text, plain)) {
    encode_plain(text.substr(plain, match->begin - plain), ids);
    ids.push_back(match->id);
    plain = match->end;
  }
  encode_plain(text.substr(plain), ids);
}

void ByteLevelTokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (text.empty()) return;
  std::string normalised;
  if (nfc_) text = to_nfc(text, normalised);
  std::vector<std::int32_t> scratch;
  Splitter words(text, pattern_);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    encode_word(word, ids, scratch);
  }
}

void ByteLevelTokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& ids,
                                     std::vector<std::int32_t>& scratch) const {
  const std::int32_t index = vocabulary_.index_of(word);
  const auto at = static_cast<std::size_t>(index);
  if (index >= 0 && whole_[at].load(std::memory_order_relaxed) == kYes) {
    ids.push_back(vocabulary_.id(at));
    return;
  }
  scratch.clear();
  for (const char byte : word) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id >= 0) scratch.push_back(id);  // the reference drops bytes without a token
  }
  merges_.apply(scratch);
  if (index >= 0) {
    const bool whole = scratch.size() == 1 && scratch[0] == vocabulary_.id(at);
    whole_[at].store(whole ? kYes : kNo, std::memory_order_relaxed);
  }
  ids.insert(ids.end(), scratch.begin(), scratch.end());
}

}  // namespace jemm
