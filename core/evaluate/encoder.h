// A question of a request to what the model sees: framed text and token ids. Needs no weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "contract/request.h"
#include "tokens/tokenizer.h"

namespace jemm {

inline constexpr std::size_t kTextTokenBudget = 8192;

struct EncoderOptions {
  TokenizerOptions tokenizer;
  bool accept_template = false;  ///< take an unknown chat template to render the known framing
};

struct EncodedQuestion {
  Question question;
  std::string text;                      ///< framed prompt, one unexpanded pad an image
  std::vector<std::int32_t> token_ids;   ///< at most kTextTokenBudget
};

/// Immutable after construction; its members may be called from several threads.
class Encoder {
 public:
  /// Reads tokenizer and template from a base checkpoint directory. Throws Error(kInput).
  explicit Encoder(const FileSource& base, const EncoderOptions& options = {});

  /// Renders, frames and tokenises question i of a checked request. Throws Error::request as the
  /// reference does, for the question itself, text that has no tokens, and the token budget.
  EncodedQuestion encode(const Request& request, std::size_t i) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::array<std::int32_t, 32>& label_ids() const { return label_ids_; }
  const std::string& template_sha256() const { return template_sha256_; }

 private:
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::string template_sha256_;
  std::array<std::int32_t, 32> label_ids_;
};

/// Checks what stands before the questions, in the reference's order: every image in turn, then
/// that there are questions. Throws Error::request.
void check_request(const Request& request);

}  // namespace jemm
