#include "bench_prompts.h"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <zlib.h>

#include "base/error.h"
#include "checkpoint/synthetic.h"
#include "contract/request.h"
#include "tokens/framing.h"

namespace jemm::cli {
namespace {

constexpr std::array<std::string_view, 32> kWords = {
    "the",  "of",    "and", "to",   "in",  "is",  "that", "for", "it",   "as",   "was",
    "with", "be",    "by",  "on",   "not", "he",  "this", "are", "or",   "his",  "from",
    "at",   "which", "but", "have", "an",  "had", "they", "you", "were", "their"};
/// What may stand behind the words until the number of tokens is right.
constexpr std::array<std::string_view, 6> kLastWords = {" a", ".", ",", "1", ";", "\n"};

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16 & 0xFF),
          static_cast<char>(value >> 8 & 0xFF), static_cast<char>(value & 0xFF)};
}

std::string png_chunk(std::string_view type, std::string_view content) {
  const std::string typed = std::string(type) + std::string(content);
  const uLong sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size()));
  return big_endian(static_cast<std::uint32_t>(content.size())) + typed +
         big_endian(static_cast<std::uint32_t>(sum));
}

/// An RGB image: a slope in every channel, its lowest bit noise that depends on `seed`.
std::string make_png(std::int64_t width, std::int64_t height, std::uint32_t seed) {
  std::string rows;
  rows.reserve(static_cast<std::size_t>(height * (3 * width + 1)));
  std::uint32_t i = seed << 24;
  for (std::int64_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    for (std::int64_t x = 0; x < width; ++x) {
      const std::uint32_t noise = synthetic_mix(i++);
      for (const std::int64_t slope : {255 * x / width, 255 * y / height, (x + y) & 0xFF}) {
        rows += static_cast<char>(slope ^ (noise & 1));
      }
    }
  }
  uLongf size = ::compressBound(rows.size());
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const std::string head = big_endian(static_cast<std::uint32_t>(width)) +
                           big_endian(static_cast<std::uint32_t>(height)) +
                           std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

std::string base64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string instructions(std::size_t i) {
  return fmt::format("Which one fits {} {}?", static_cast<char>('a' + i / 26 % 26),
                     static_cast<char>('a' + i % 26));
}
constexpr std::size_t kInstructions = 26 * 26;

/// Makes one body.
class BodyMaker {
 public:
  BodyMaker(const Encoder& encoder, const PromptSize& size) : encoder_(encoder), size_(size) {
    for (std::int64_t i = 0; i < size.images.count; ++i) {
      images_ += images_.empty() ? "\"" : ",\"";
      images_ +=
          base64(make_png(size.images.width, size.images.height, static_cast<std::uint32_t>(i)));
      images_ += '"';
    }
    for (std::int64_t i = 0; i < size.n_candidates; ++i) {
      criteria_ += criteria_.empty() ? "" : ",";
      criteria_ += fmt::format(R"("c{}":"{}")", i, kWords[static_cast<std::size_t>(i)]);
    }
  }

  std::string run() {
    const std::size_t budget = size_.images.count > 0 ? kImageTokenBudget : kTextTokenBudget;
    if (wanted() > budget) {
      refuse(fmt::format("no prompt may have more than {}", budget));
    }
    look_at_images();
    questions_ = {instructions(0)};
    if (count("") > wanted()) refuse(fmt::format("there are {} at least", count("")));
    const std::string state = fill_state();
    find_questions();
    return body(state);
  }

 private:
  std::size_t wanted() const { return static_cast<std::size_t>(size_.n_tokens); }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::kUsage, "no prompt of {}: {}", prompt_size_text(size_), why);
  }

  /// How many tokens each image has.
  void look_at_images() {
    if (size_.images.count == 0) return;
    questions_ = {instructions(0)};
    ImageCache cache(0);
    StageTimes times;
    try {
      EncodedRequest request = encoder_.open(body(""), {}, ImageHashes::kSkip, cache, times);
      encoder_.encode(request, 0, times);
      for (const EncodedImagePtr& image : request.images) pads_.push_back(image->n_tokens());
    } catch (const Error& error) {
      refuse(error.what());
    }
  }

  std::string body(const std::string& state) const {
    std::string text =
        fmt::format(R"({{"state":"{}","images":[{}],"questions":{{)", state, images_);
    for (std::size_t i = 0; i < questions_.size(); ++i) {
      text += fmt::format(R"({}"q{}":{{"instructions":"{}","criteria":{{{}}}}})", i == 0 ? "" : ",",
                          i + 1, questions_[i], criteria_);
    }
    return text + "}}";
  }

  /// Tokens of the last question's prompt.
  std::size_t count(const std::string& state) const {
    const std::string text = fmt::format(
        R"({{"state":"{}","questions":{{"q":{{"instructions":"{}","criteria":{{{}}}}}}}}})", state,
        questions_.back(), criteria_);
    std::vector<std::int32_t> ids;
    encoder_.tokenizer().encode(frame_prompt(Request::parse(text).question(0).prompt, pads_), ids);
    return ids.size();
  }

  static std::string words(std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) {
      text += i == 0 ? "" : " ";
      text += kWords[synthetic_mix(static_cast<std::uint32_t>(i)) % kWords.size()];
    }
    return text;
  }

  /// As many words as there is room for, then what fills it.
  std::string fill_state() const {
    std::size_t low = 0, high = wanted();  // a word has a token at least
    while (low < high) {
      const std::size_t middle = (low + high + 1) / 2;
      if (count(words(middle)) <= wanted()) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    std::string state = words(low);
    for (std::size_t n = count(state); n < wanted(); ++n) state = add_token(state, n + 1);
    return state;
  }

  std::string add_token(const std::string& state, std::size_t n_wanted) const {
    for (const std::string_view last : kLastWords) {
      std::string longer = state;
      longer += last == "\n" ? "\\n" : last;  // inside JSON
      if (count(longer) == n_wanted) return longer;
    }
    refuse("this tokenizer has no word that fills the last token; take one more or less");
  }

  /// Others like the first, of as many tokens.
  void find_questions() {
    const std::size_t n = count("");
    std::vector<std::string> found = {instructions(0)};
    for (std::size_t i = 1; found.size() < static_cast<std::size_t>(size_.n_questions); ++i) {
      if (i == kInstructions) refuse(fmt::format("there are {} questions at most", found.size()));
      questions_ = {instructions(i)};
      if (count("") == n) found.push_back(questions_.front());
    }
    questions_ = std::move(found);
  }

  const Encoder& encoder_;
  const PromptSize& size_;
  std::string images_;
  std::string criteria_;
  std::vector<std::size_t> pads_;
  std::vector<std::string> questions_;
};

}  // namespace

std::string prompt_size_text(const PromptSize& size) {
  std::string text = fmt::format("{} tokens", size.n_tokens);
  if (size.n_questions > 1) text += fmt::format(", {} questions", size.n_questions);
  text += fmt::format(", {} candidates", size.n_candidates);
  if (size.images.count > 0) text += ", " + image_set_text(size.images);
  return text;
}

std::string make_body(const Encoder& encoder, const PromptSize& size) {
  return BodyMaker(encoder, size).run();
}

}  // namespace jemm::cli
