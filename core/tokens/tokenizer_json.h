// What tokenizer.json says, checked. Knows no tokenizer_config.json and chooses no rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokens/merges.h"
#include "tokens/token_table.h"
#include "tokens/tokenizer.h"

namespace jemm {

/// A token that is found in the raw text, before anything else is done to it.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;  ///< as declared; -1: the next free one
};

/// The normaliser and the split pattern of tokenizer.json itself.
struct FileRules {
  bool nfc = false;
  std::optional<SplitPattern> pattern;  ///< empty when `problem` says why it cannot be followed
  std::string problem;
};

struct TokenizerFile {
  TokenTable vocabulary;         ///< tokens over the byte alphabet, as bytes
  TokenTable others;             ///< all other tokens, as spelled: text never becomes one of them
  std::size_t n_vocabulary = 0;  ///< entries of model.vocab
  MergeTable merges;
  std::vector<AddedToken> added;
  FileRules rules;

  /// Id of an entry of model.vocab by its spelling, or -1.
  std::int32_t spelled_id(std::string_view spelled) const;
};

/// Reads the whole text. `name` begins every message. Throws Error(kInput) naming the field for
/// anything that is not byte-level BPE, for unknown fields, and for settings that change the ids
/// and are not built (dropout, byte_fallback, ignore_merges, added tokens that strip, ...).
TokenizerFile read_tokenizer_json(std::string_view text, const std::string& name);

/// An entry of added_tokens or added_tokens_decoder; `where` names it in messages.
AddedToken read_added_token(const nlohmann::json& entry, const std::string& where);

}  // namespace jemm
