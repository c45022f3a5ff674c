// Cuts text into the words that are merged separately: the split pattern, written out by hand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tokens/tokenizer.h"

namespace jemm {

/// The pattern's two spellings, as tokenizer.json writes them.
std::string_view pattern_regex(SplitPattern pattern);

/// Yields the matches of the pattern, which cover the text without gaps:
///
///   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?LETTERS | \p{N} | ?PUNCT[\r\n]* |
///   \s*[\r\n]+ | \s+(?!\S) | \s+
///
/// LETTERS is \p{L}+ or [\p{L}\p{M}]+, PUNCT what is neither space, number nor in LETTERS. Time is
/// linear: a character is looked at a bounded number of times, and nothing is kept on a stack.
class Splitter {
 public:
  /// `text` is valid UTF-8 without surrogates and outlives the splitter.
  Splitter(std::string_view text, SplitPattern pattern);

  /// The next word; empty at the end of the text.
  std::string_view next();

 private:
  struct Character {
    std::uint8_t bits;  ///< CharacterClass
    std::size_t end;    ///< offset behind it
  };
  Character read(std::size_t offset) const;
  std::size_t contraction_end(std::size_t offset) const;
  std::size_t run_end(std::size_t offset, std::uint8_t bits) const;
  std::size_t punctuation_end(std::size_t offset) const;
  std::size_t space_end(std::size_t offset) const;
  std::size_t word_end(std::size_t offset) const;

  std::string_view text_;
  const std::array<std::uint8_t, 0x110000>& classes_;
  std::uint8_t letters_;  ///< class bits of LETTERS
  std::size_t offset_ = 0;
};

}  // namespace jemm
