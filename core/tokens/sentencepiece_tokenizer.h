// A SentencePiece model behind the tokenizer interface. No type of the library leaves this room's
// source files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/added_tokens.h"
#include "tokens/tokenizer.h"

namespace jemm {

/// Makes the tokenizer of a tokenizer.model's bytes. Added tokens are found in the raw text first;
/// what lies between them goes to the library, each part on its own. Throws Error(kInput) that
/// begins with `name` when the library cannot read the model.
std::unique_ptr<const Tokenizer> make_sentencepiece_tokenizer(std::string_view model,
                                                              std::vector<AddedToken> added,
                                                              std::string tokenizer_class,
                                                              const std::string& name);

}  // namespace jemm
