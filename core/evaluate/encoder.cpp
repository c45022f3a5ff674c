#include "evaluate/encoder.h"

#include <utility>

#include "base/error.h"
#include "image/decode.h"
#include "image/envelope.h"
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

void cut_images(std::vector<EncodedImage>& images, const PreprocessorConfig& config) {
  for (EncodedImage& image : images) {
    if (image.patches.values.empty()) {
      image.patches = preprocess_image(std::exchange(image.rgb, {}), config);
    }
  }
}

}  // namespace

Encoder::Encoder(const FileSource& base, const EncoderOptions& options)
    : tokenizer_(load_tokenizer(base, options.tokenizer)),
      template_sha256_(check_chat_template(base, options.accept_template)),
      label_ids_(label_token_ids(*tokenizer_)),
      preprocessor_(open_preprocessor(base)) {}

EncodedRequest Encoder::open(std::string_view body, ImageHashes hashes) const {
  EncodedRequest encoded{Request::parse(body), {}};
  const std::size_t n_images = encoded.request.image_count();
  for (std::size_t i = 0; i < n_images; ++i) {
    Rgb rgb = decode_image(i, decode_envelope(i, encoded.request.image(i)));
    EncodedImage& image = encoded.images.emplace_back();
    image.width = rgb.width;
    image.height = rgb.height;
    if (hashes == ImageHashes::kCompute) image.rgb_sha256 = rgb_sha256(rgb);
    image.rgb = std::move(rgb);
  }
  encoded.request.check_questions();
  return encoded;
}

EncodedQuestion Encoder::encode(EncodedRequest& request, std::size_t i) const {
  EncodedQuestion encoded;
  encoded.question = request.request.question(i);
  std::vector<std::size_t> pads;
  std::vector<std::array<std::int64_t, 3>> grids;
  if (!request.images.empty()) {
    if (!preprocessor_) {
      fail(ErrorKind::kInput, "the checkpoint has no {}, which images need", kPreprocessorFile);
    }
    cut_images(request.images, *preprocessor_);
    for (const EncodedImage& image : request.images) {
      pads.push_back(image.patches.n_tokens());
      grids.push_back(image.patches.grid_thw);
    }
  }
  encoded.text = frame_prompt(encoded.question.prompt, std::vector<std::size_t>(pads.size(), 1));
  tokenizer_->encode(pads.empty() ? encoded.text : frame_prompt(encoded.question.prompt, pads),
                     encoded.token_ids);
  const std::size_t budget = pads.empty() ? kTextTokenBudget : kImageTokenBudget;
  if (encoded.token_ids.size() > budget) {
    throw Error::request("ValueError", "UNSUPPORTED: input exceeds token budget");
  }
  if (!pads.empty()) {
    if (encoded.question.prompt.find(kVideoPad) != std::string::npos) {
      throw Error::request("ValueError", "the text of a request with images holds <|video_pad|>");
    }
    encoded.positions =
        prompt_positions(encoded.token_ids, tokenizer_->added_token(kImagePad), grids);
  }
  return encoded;
}

}  // namespace jemm
