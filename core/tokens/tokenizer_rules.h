// Which rules the reference follows for a checkpoint's tokenizer: pattern, normaliser, added
// tokens.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "tokens/tokenizer.h"
#include "tokens/tokenizer_json.h"

namespace jemm {

struct TokenizerRules {
  std::string tokenizer_class;  ///< as named by the files; empty when absent
  SplitPattern pattern = SplitPattern::kQwen3_5;
  bool nfc = true;
  std::vector<AddedToken> added;  ///< every id set
};

/// Follows tokenizer_config.json and config.json as the reference does (docs/tokens.md). Throws
/// Error(kInput) for a class without rules, and for settings that change the ids and are not built.
TokenizerRules choose_rules(const FileSource& files, const TokenizerFile& file,
                            const TokenizerOptions& options);

/// Added tokens of tokenizer_config.json alone, for a SentencePiece model: its ids stand.
std::vector<AddedToken> configured_added_tokens(const FileSource& files);

/// `tokenizer_class`, or empty when no file names one.
std::string configured_class(const FileSource& files);

}  // namespace jemm
