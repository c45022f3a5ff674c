// Parts of text between added tokens through the library.
#include "tokens/sentencepiece_tokenizer.h"

#include <algorithm>

#include <sentencepiece_processor.h>

#include "base/error.h"
#include "tokens/check_utf8.h"

namespace jemm {
namespace {

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view model, std::vector<AddedToken> added,
                         std::string tokenizer_class, const std::string& name)
      : added_(std::move(added), name) {
    const auto status = processor_.LoadFromSerializedProto({model.data(), model.size()});
    if (!status.ok()) fail(ErrorKind::kInput, "{}: {}", name, status.ToString());
    description_.tokenizer_class = std::move(tokenizer_class);
    description_.file = name;
    description_.pattern = "sentencepiece";
    description_.vocabulary = static_cast<std::size_t>(processor_.GetPieceSize()) + added_.size();
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override {
    check_text(text);
    std::size_t plain = 0;
    while (const auto match = added_.find(text, plain)) {
      encode_plain(text.substr(plain, match->begin - plain), ids);
      ids.push_back(match->id);
      plain = match->end;
    }
    encode_plain(text.substr(plain), ids);
  }

  std::int32_t added_token(std::string_view content) const override { return added_.id(content); }
  std::int32_t max_id() const override {
    return std::max(processor_.GetPieceSize() - 1, added_.max_id());
  }
  std::size_t count_added_tokens(std::string_view text) const override {
    return added_.count(text);
  }
  const Description& description() const override { return description_; }

 private:
  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (text.empty()) return;
    std::vector<int> pieces;
    const auto status = processor_.Encode({text.data(), text.size()}, &pieces);
    if (!status.ok()) throw Error::request("RuntimeError", status.ToString());
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }

  sentencepiece::SentencePieceProcessor processor_;
  AddedTokens added_;
  Description description_;
};

}  // namespace

std::unique_ptr<const Tokenizer> make_sentencepiece_tokenizer(std::string_view model,
                                                              std::vector<AddedToken> added,
                                                              std::string tokenizer_class,
                                                              const std::string& name) {
  return std::make_unique<SentencePieceTokenizer>(model, std::move(added),
                                                  std::move(tokenizer_class), name);
}

}  // namespace jemm
