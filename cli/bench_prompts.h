// Requests whose prompts have a wanted number of tokens, for sweeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/sweep.h"
#include "evaluate/encoder.h"

namespace jemm::cli {

/// What a sweep varies.
struct PromptSize {
  std::int64_t n_tokens = 0;  ///< of each question's prompt, framing and images included
  std::int64_t n_questions = 1;
  std::int64_t n_candidates = 2;
  ImageSet images{};
};
/// "512 tokens, 4 questions, 8 candidates, 640x480x2".
std::string prompt_size_text(const PromptSize& size);

/// The body of a request of that size: the state is a run of common words in a fixed order, the
/// questions differ in two letters, the images are PNG files of a slope with a little noise. Every
/// prompt goes through the real encoder and has exactly n_tokens tokens. Throws Error(kUsage) when
/// such a prompt cannot be, saying how few tokens it can have, and for images that the encoder
/// refuses.
std::string make_body(const Encoder& encoder, const PromptSize& size);

}  // namespace jemm::cli
