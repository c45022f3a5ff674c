// Matches module names against the patterns of adapter configs. Knows no adapters.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

/// The part of Python's `re` that such patterns use, on ASCII text: literals, escapes of
/// punctuation, \d \w \s and their negations, ".", classes, groups (plain or "?:"), lookahead "?="
/// and "?!", alternatives, anchors "^" and "$", and the quantifiers * + ? {m} {m,n}, greedy or
/// lazy. As only the fact of a match is asked for, a pattern runs as a set of states: no
/// backtracking.
class Pattern {
 public:
  /// Throws Error(kInput) that begins with `where` and names the pattern and what in it is broken
  /// or not supported.
  Pattern(std::string_view pattern, std::string where);

  /// re.fullmatch(pattern, text) is not None, for text without line breaks. Subtracts the states
  /// visited from `steps_left` and throws Error(kInput) below zero.
  bool full_match(std::string_view text, std::int64_t& steps_left) const;

  using CharSet = std::bitset<128>;
  struct Instruction {
    enum class Kind : std::uint8_t { kChar, kSplit, kStart, kEnd, kAhead, kNotAhead, kMatch };
    Kind kind = Kind::kMatch;
    std::size_t next = 0;   // where to go on
    std::size_t other = 0;  // kSplit: the second way; kAhead, kNotAhead: the inner program's start
    CharSet set;            // kChar
  };

 private:
  std::string where_;
  std::vector<Instruction> program_;  // a kMatch ends the whole and every lookahead's program
  std::size_t start_ = 0;
};

}  // namespace jemm
