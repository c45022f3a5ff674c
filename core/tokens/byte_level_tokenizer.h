// The byte-level BPE tokenizer: added tokens, NFC, words, merges. How files are read is elsewhere.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/added_tokens.h"
#include "tokens/tokenizer.h"
#include "tokens/tokenizer_json.h"
#include "tokens/tokenizer_rules.h"

namespace jemm {

class ByteLevelTokenizer : public Tokenizer {
 public:
  /// `name`: path of the file, which begins messages about the added tokens.
  ByteLevelTokenizer(TokenizerFile file, TokenizerRules rules, const std::string& name);

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::int32_t added_token(std::string_view content) const override { return added_.id(content); }
  std::int32_t max_id() const override;
  std::size_t count_added_tokens(std::string_view text) const override {
    return added_.count(text);
  }
  const Description& description() const override { return description_; }

 private:
  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const;
  void encode_word(std::string_view word, std::vector<std::int32_t>& ids,
                   std::vector<std::int32_t>& scratch) const;

  TokenTable vocabulary_;
  MergeTable merges_;
  AddedTokens added_;
  SplitPattern pattern_;
  bool nfc_;
  std::array<std::int32_t, 256> byte_ids_;  // -1: the vocabulary has no token for the byte
  // For each vocabulary entry: whether merging its bytes gives just its own id. Found out when the
  // entry is first met as a word (racing threads find the same), and then spares the merging.
  enum Whole : std::uint8_t { kUnknown, kYes, kNo };
  std::unique_ptr<std::atomic<std::uint8_t>[]> whole_;
  Description description_;
};

}  // namespace jemm
