#include "evaluate/encoder.h"

#include "base/error.h"
#include "image/envelope.h"
#include "tokens/framing.h"

namespace jemm {

Encoder::Encoder(const FileSource& base, const EncoderOptions& options)
    : tokenizer_(load_tokenizer(base, options.tokenizer)),
      template_sha256_(check_chat_template(base, options.accept_template)),
      label_ids_(label_token_ids(*tokenizer_)) {}

EncodedQuestion Encoder::encode(const Request& request, std::size_t i) const {
  EncodedQuestion encoded;
  encoded.question = request.question(i);
  encoded.text = frame_prompt(encoded.question.prompt);
  tokenizer_->encode(encoded.text, encoded.token_ids);
  if (encoded.token_ids.size() > kTextTokenBudget) {
    throw Error::request("ValueError", "UNSUPPORTED: input exceeds token budget");
  }
  return encoded;
}

void check_request(const Request& request) {
  const std::size_t n_images = request.image_count();
  for (std::size_t i = 0; i < n_images; ++i) {
    decode_envelope(i, request.image(i));
    throw Error::request("NotImplementedError", "requests with images are not answered yet");
  }
  request.check_questions();
}

}  // namespace jemm
