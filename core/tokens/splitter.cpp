// The branches of the pattern, in its order.
#include "tokens/splitter.h"

#include "tokens/unicode_classes.h"

namespace jemm {
namespace {

bool is_newline(char byte) {
  return byte == '\r' || byte == '\n';
}
char lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
}

}  // namespace

std::string_view pattern_regex(SplitPattern pattern) {
  if (pattern == SplitPattern::kQwen2) {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

Splitter::Splitter(std::string_view text, SplitPattern pattern)
    : text_(text),
      classes_(character_classes()),
      letters_(pattern == SplitPattern::kQwen2 ? kLetter : kLetter | kMark) {}

std::string_view Splitter::next() {
  const std::size_t start = offset_;
  if (start < text_.size()) offset_ = word_end(start);
  return text_.substr(start, offset_ - start);
}

Splitter::Character Splitter::read(std::size_t offset) const {
  const auto byte = [this, offset](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text_[offset + i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {classes_[lead], offset + 1};
  if (lead < 0xE0) return {classes_[(lead & 0x1F) << 6 | (byte(1) & 0x3F)], offset + 2};
  const std::uint32_t middle = (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (lead < 0xF0) return {classes_[(lead & 0xF) << 12 | middle], offset + 3};
  return {classes_[(lead & 0x7) << 18 | middle << 6 | (byte(3) & 0x3F)], offset + 4};
}

// End of the alternative (?i:'s|'t|'re|'ve|'m|'ll|'d) at an apostrophe; `offset` when it does not
// match. U+017F folds to s.
std::size_t Splitter::contraction_end(std::size_t offset) const {
  const std::string_view rest = text_.substr(offset + 1, 2);
  if (rest.empty()) return offset;
  if (rest == "\xC5\xBF") return offset + 3;
  const char first = lower(rest[0]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return offset + 2;
  if (rest.size() < 2) return offset;
  const char second = lower(rest[1]);
  const bool pair =
      (second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l');
  return pair ? offset + 3 : offset;
}

// End of the longest run of characters that have one of `bits`.
std::size_t Splitter::run_end(std::size_t offset, std::uint8_t bits) const {
  while (offset < text_.size()) {
    const Character c = read(offset);
    if ((c.bits & bits) == 0) break;
    offset = c.end;
  }
  return offset;
}

// End of PUNCT[\r\n]* where PUNCT starts at `offset`; `offset` when it does not.
std::size_t Splitter::punctuation_end(std::size_t offset) const {
  const auto excluded = static_cast<std::uint8_t>(kSpace | kNumber | letters_);
  const std::size_t start = offset;
  while (offset < text_.size()) {
    const Character c = read(offset);
    if ((c.bits & excluded) != 0) break;
    offset = c.end;
  }
  if (offset == start) return start;
  while (offset < text_.size() && is_newline(text_[offset])) ++offset;
  return offset;
}

// End of \s*[\r\n]+ | \s+(?!\S) | \s+ at a space: up to the run's last line break if it has one;
// else the run, without its last character when something follows (unless it is the only one).
std::size_t Splitter::space_end(std::size_t start) const {
  std::size_t end = start, last = start, behind_newline = start;
  while (end < text_.size()) {
    const Character c = read(end);
    if ((c.bits & kSpace) == 0) break;
    if (is_newline(text_[end])) behind_newline = c.end;
    last = end;
    end = c.end;
  }
  if (behind_newline > start) return behind_newline;
  return end == text_.size() || last == start ? end : last;
}

std::size_t Splitter::word_end(std::size_t start) const {
  if (text_[start] == '\'') {
    const std::size_t end = contraction_end(start);
    if (end > start) return end;
  }
  const Character first = read(start);
  if ((first.bits & letters_) != 0) return run_end(first.end, letters_);
  if ((first.bits & kNumber) != 0) return first.end;
  if (!is_newline(text_[start])) {  // here the one character before LETTERS may stand
    const std::size_t end = run_end(first.end, letters_);
    if (end > first.end) return end;
  }
  const std::size_t punctuation = text_[start] == ' ' ? first.end : start;
  const std::size_t end = punctuation_end(punctuation);
  if (end > punctuation) return end;
  return space_end(start);
}

}  // namespace jemm
