// Text to token ids behind one interface, whatever the vocabulary's kind. Knows no requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace jemm {

/// Which letters rule the split pattern follows; see docs/tokens.md.
enum class SplitPattern {
  kQwen2,    ///< \p{L}+
  kQwen3_5,  ///< [\p{L}\p{M}]+
};

/// Immutable after loading; encode may be called from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Appends the ids of `text`, as the reference tokenises it without special-token insertion.
  /// `text` is UTF-8; a lone surrogate in it throws Error::request("TypeError", ...).
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;

  /// Id of an added token by its exact content, or -1.
  virtual std::int32_t added_token(std::string_view content) const = 0;

  /// The largest id of the vocabulary and the added tokens; encode gives none above it.
  virtual std::int32_t max_id() const = 0;

  /// Number of places in `text` that spell an added token (they become control ids).
  virtual std::size_t count_added_tokens(std::string_view text) const = 0;

  /// What was chosen, for reports: class, pattern, where the rule came from.
  struct Description {
    std::string tokenizer_class;  ///< as named by the files; empty when absent
    std::string pattern;          ///< "qwen2", "qwen3_5", "sentencepiece"
    std::size_t vocabulary = 0;   ///< entries, added tokens included
    std::string file;             ///< path of the vocabulary, for messages
  };
  virtual const Description& description() const = 0;
};

/// How to load; every field has the reference's behaviour as its default.
struct TokenizerOptions {
  /// "" follows the class (docs/tokens.md); "qwen2" or "qwen3_5" overrides it; "file" takes the
  /// pattern of tokenizer.json.
  std::string pattern;
};

/// Loads tokenizer.json (byte-level BPE) or, without one, tokenizer.model (SentencePiece), with
/// tokenizer_config.json and config.json for the class. Throws Error(kInput) naming file and field.
std::unique_ptr<const Tokenizer> load_tokenizer(const FileSource& files,
                                                const TokenizerOptions& options = {});

}  // namespace jemm
