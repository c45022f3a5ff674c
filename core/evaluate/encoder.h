// A question of a request to what the model sees: framed text, token ids, image patches. Needs no
// weights.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "contract/request.h"
#include "engine/timings.h"
#include "evaluate/images.h"
#include "image/size.h"
#include "tokens/tokenizer.h"

namespace jemm {

inline constexpr std::size_t kTextTokenBudget = 8192;
inline constexpr std::size_t kImageTokenBudget = 3072;  ///< for requests with any image

struct EncoderOptions {
  TokenizerOptions tokenizer;
  bool accept_template = false;  ///< take an unknown chat template to render the known framing
};

/// A request up to its questions.
struct EncodedRequest {
  Request request;
  OpeningImages opening;
  std::vector<EncodedImagePtr> images;  ///< empty until they are there
};

struct EncodedQuestion {
  Question question;
  std::string text;                                    ///< framed prompt, one pad an image
  std::vector<std::int32_t> token_ids;                 ///< at most the budget
  std::vector<std::array<std::int32_t, 3>> positions;  ///< [tokens]; empty without images
  std::vector<std::size_t> image_begins;               ///< where each image's tokens begin
};

/// Immutable after construction; its members may be called from several threads.
class Encoder {
 public:
  /// Reads tokenizer, template and, when it is there, preprocessor_config.json from a base
  /// checkpoint directory. Throws Error(kInput).
  explicit Encoder(const FileSource& base, const EncoderOptions& options = {});

  /// Reads a body up to its questions, in the reference's order: size, JSON, object, every image in
  /// turn, those of `files` behind the body's own, then that there are questions. Adds to `times`
  /// what parsing and images took. Throws Error::request.
  EncodedRequest open(std::string_view body, std::vector<std::string> files, ImageHashes hashes,
                      ImageCache& cache, StageTimes& times) const;
  /// The same in two parts: up to the images, which threads then decode and cut, and what follows
  /// when that is done.
  EncodedRequest start(std::string_view body, std::vector<std::string> files, ImageHashes hashes,
                       ImageCache& cache, StageTimes& times) const;
  void finish(EncodedRequest& request, StageTimes& times) const;

  /// Renders, frames and tokenises question i. Throws Error::request as the reference does: the
  /// question itself, the images' aspect ratio, text that has no tokens, the token budget. Adds to
  /// `times` what tokenising took.
  EncodedQuestion encode(const EncodedRequest& request, std::size_t i, StageTimes& times) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::array<std::int32_t, 32>& label_ids() const { return label_ids_; }
  const std::string& template_sha256() const { return template_sha256_; }

 private:
  void tokenize(std::span<const EncodedImagePtr> images, EncodedQuestion& encoded) const;

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::string template_sha256_;
  std::array<std::int32_t, 32> label_ids_;
  std::optional<PreprocessorConfig> preprocessor_;
};

}  // namespace jemm
