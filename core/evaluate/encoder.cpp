#include "evaluate/encoder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "image/positions.h"
#include "tokens/framing.h"

namespace jemm {
namespace {

constexpr std::string_view kPreprocessorFile = "preprocessor_config.json";

std::optional<PreprocessorConfig> open_preprocessor(const FileSource& base) {
  if (!base.contains(kPreprocessorFile)) return std::nullopt;
  return parse_preprocessor_config(base.open(kPreprocessorFile).text(),
                                   base.name() + "/" + std::string(kPreprocessorFile));
}

/// Where each image's pads begin; `pads`: how many each has.
std::vector<std::size_t> find_images(const std::vector<std::int32_t>& token_ids,
                                     std::int32_t image_token,
                                     const std::vector<std::size_t>& pads) {
  std::vector<std::size_t> begins;
  auto at = token_ids.begin();
  for (const std::size_t n : pads) {
    at = std::find(at, token_ids.end(), image_token);
    begins.push_back(static_cast<std::size_t>(at - token_ids.begin()));
    at += static_cast<std::ptrdiff_t>(n);
  }
  return begins;
}

}  // namespace

Encoder::Encoder(const FileSource& base, const EncoderOptions& options)
    : tokenizer_(load_tokenizer(base, options.tokenizer)),
      template_sha256_(check_chat_template(base, options.accept_template)),
      label_ids_(label_token_ids(*tokenizer_)),
      preprocessor_(open_preprocessor(base)) {}

EncodedRequest Encoder::open(std::string_view body, std::vector<std::string> files,
                             ImageHashes hashes, ImageCache& cache, StageTimes& times) const {
  EncodedRequest request = start(body, std::move(files), hashes, cache, times);
  finish(request, times);
  return request;
}

EncodedRequest Encoder::start(std::string_view body, std::vector<std::string> files,
                              ImageHashes hashes, ImageCache& cache, StageTimes& times) const {
  std::optional<EncodedRequest> encoded;
  {
    const StageTimer timer(times[Stage::kParse]);
    encoded = EncodedRequest{Request::parse(body), {}, {}};
  }
  const StageTimer timer(times[Stage::kImageDecode]);
  encoded->opening = start_images(encoded->request, std::move(files), hashes,
                                  preprocessor_ ? &*preprocessor_ : nullptr, cache);
  return std::move(*encoded);
}

void Encoder::finish(EncodedRequest& request, StageTimes& times) const {
  request.images = finish_images(request.opening, times);
  request.opening = {};
  request.request.check_questions();
}

EncodedQuestion Encoder::encode(const EncodedRequest& request, std::size_t i,
                                StageTimes& times) const {
  const StageTimer timer(times[Stage::kTokenize]);
  EncodedQuestion encoded;
  encoded.question = request.request.question(i);
  if (!request.images.empty() && !preprocessor_) {
    fail(ErrorKind::kInput, "the checkpoint has no {}, which images need", kPreprocessorFile);
  }
  for (const EncodedImagePtr& image : request.images) {
    if (image->uncuttable) throw *image->uncuttable;
  }
  tokenize(request.images, encoded);
  return encoded;
}

/// Frames the question's prompt, and all that follows from its tokens.
void Encoder::tokenize(std::span<const EncodedImagePtr> images, EncodedQuestion& encoded) const {
  std::vector<std::size_t> pads;
  std::vector<std::array<std::int64_t, 3>> grids;
  for (const EncodedImagePtr& image : images) {
    pads.push_back(image->n_tokens());
    grids.push_back(image->patches.grid_thw);
  }
  encoded.text = frame_prompt(encoded.question.prompt, std::vector<std::size_t>(pads.size(), 1));
  tokenizer_->encode(pads.empty() ? encoded.text : frame_prompt(encoded.question.prompt, pads),
                     encoded.token_ids);
  const std::size_t budget = pads.empty() ? kTextTokenBudget : kImageTokenBudget;
  if (encoded.token_ids.size() > budget) {
    throw Error::request("ValueError", "UNSUPPORTED: input exceeds token budget");
  }
  if (pads.empty()) return;
  if (encoded.question.prompt.find(kVideoPad) != std::string::npos) {
    throw Error::request("ValueError", "the text of a request with images holds <|video_pad|>");
  }
  const std::int32_t image_token = tokenizer_->added_token(kImagePad);
  encoded.positions = prompt_positions(encoded.token_ids, image_token, grids);
  encoded.image_begins = find_images(encoded.token_ids, image_token, pads);
}

}  // namespace jemm
