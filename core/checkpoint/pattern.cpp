// A matcher of regular expressions whose time is bounded.
#include "checkpoint/pattern.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

using Instruction = Pattern::Instruction;
using Kind = Instruction::Kind;
using CharSet = Pattern::CharSet;

constexpr std::size_t kMaxProgram = 20'000;
constexpr int kMaxGroups = 16;     // open at a time; each takes stack
constexpr int kMaxRepeats = 1000;  // in {m,n}

CharSet chars_where(bool (*wanted)(char)) {
  CharSet set;
  for (std::size_t i = 0; i < set.size(); ++i) set[i] = wanted(static_cast<char>(i));
  return set;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_alphanumeric(c) || c == '_';
}
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
}

/// Compiles by recursive descent. A piece's ways out stay open until what follows is known.
class Compiler {
 public:
  Compiler(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {
    for (const char c : pattern) {
      if (static_cast<unsigned char>(c) >= 128) refuse("a character that is not ASCII");
    }
  }

  std::size_t compile(std::vector<Instruction>& program) {
    const Piece whole = alternatives();
    if (at_ != pattern_.size()) refuse("an unopened )");
    patch(whole, emit({.kind = Kind::kMatch, .next = 0, .other = 0, .set = {}}));
    program = std::move(program_);
    return whole.start;
  }

 private:
  struct Way {
    std::size_t instruction;
    bool other;
  };
  struct Piece {
    std::size_t start = 0;
    std::vector<Way> ways_out;
  };

  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::kInput, "{}: the pattern {} holds {}, which is not supported", where_,
         in_quotes(pattern_), what);
  }
  bool more() const { return at_ < pattern_.size(); }
  char peek() const { return more() ? pattern_[at_] : '\0'; }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  std::size_t emit(Instruction instruction) {
    if (program_.size() >= kMaxProgram) refuse("too much");
    program_.push_back(instruction);
    return program_.size() - 1;
  }
  void patch(const Piece& piece, std::size_t target) {
    for (const Way& way : piece.ways_out) {
      (way.other ? program_[way.instruction].other : program_[way.instruction].next) = target;
    }
  }
  Piece single(Instruction instruction) {
    const std::size_t at = emit(instruction);
    return {at, {{at, false}}};
  }
  static CharSet just(char c) { return CharSet().set(static_cast<std::size_t>(c)); }
  Piece character(const CharSet& set) {
    return single({.kind = Kind::kChar, .next = 0, .other = 0, .set = set});
  }
  Piece nothing() {  // a split whose ways both lead on
    const std::size_t at = emit({.kind = Kind::kSplit, .next = 0, .other = 0, .set = {}});
    return {at, {{at, false}, {at, true}}};
  }
  Piece chain(Piece first, Piece second) {
    patch(first, second.start);
    return {first.start, std::move(second.ways_out)};
  }

  Piece alternatives() {
    Piece all = sequence();
    while (take("|")) {
      Piece next = sequence();
      const std::size_t split =
          emit({.kind = Kind::kSplit, .next = all.start, .other = next.start, .set = {}});
      all.start = split;
      all.ways_out.insert(all.ways_out.end(), next.ways_out.begin(), next.ways_out.end());
    }
    return all;
  }

  Piece sequence() {
    Piece all = nothing();
    while (more() && peek() != '|' && peek() != ')') all = chain(std::move(all), repeated());
    return all;
  }

  struct Repeats {
    int low;
    std::optional<int> high;  // none: without end
  };

  /// An operand with its quantifier. Further copies of the operand are compiled from its text.
  Piece repeated() {
    const std::size_t begin = at_;
    Piece first = operand();
    const std::size_t end = at_;
    const std::optional<Repeats> repeats = quantifier();
    if (!repeats) return first;
    if (pattern_[begin] == '^' || pattern_[begin] == '$') refuse("a repeated anchor");
    const std::size_t behind = at_;

    bool first_is_free = true;
    const auto copy = [&] {
      if (std::exchange(first_is_free, false)) return std::move(first);
      at_ = begin;
      Piece piece = operand();
      at_ = end;
      return piece;
    };
    Piece all = nothing();
    for (int i = 0; i < repeats->low; ++i) all = chain(std::move(all), copy());
    if (!repeats->high) all = chain(std::move(all), star(copy()));
    for (int i = repeats->low; i < repeats->high.value_or(0); ++i) {
      all = chain(std::move(all), optional(copy()));
    }
    at_ = behind;
    return all;
  }

  Piece optional(Piece piece) {
    const std::size_t split =
        emit({.kind = Kind::kSplit, .next = piece.start, .other = 0, .set = {}});
    piece.start = split;
    piece.ways_out.push_back({split, true});
    return piece;
  }
  Piece star(Piece piece) {
    const std::size_t split =
        emit({.kind = Kind::kSplit, .next = piece.start, .other = 0, .set = {}});
    patch(piece, split);
    return {split, {{split, true}}};
  }

  std::optional<Repeats> quantifier() {
    std::optional<Repeats> repeats;
    if (take("*")) {
      repeats = {0, std::nullopt};
    } else if (take("+")) {
      repeats = {1, std::nullopt};
    } else if (take("?")) {
      repeats = {0, 1};
    } else if (peek() == '{') {
      repeats = counted();
    }
    if (!repeats) return repeats;
    take("?");  // lazy: the same set of matches
    if (more() && std::string_view("*+?{").find(peek()) != std::string_view::npos) {
      refuse("a second quantifier");
    }
    return repeats;
  }

  Repeats counted() {
    take("{");
    const std::optional<int> low = number();
    std::optional<int> high = low;
    if (take(",")) high = number();
    if (!take("}") || !low || (high && *high < *low))
      refuse("a brace that is no {m}, {m,} or {m,n}");
    return {*low, high};
  }

  std::optional<int> number() {
    std::optional<int> value;
    while (is_digit(peek())) {
      value = value.value_or(0) * 10 + (pattern_[at_++] - '0');
      if (*value > kMaxRepeats) refuse("a large count");
    }
    return value;
  }

  Piece operand() {
    if (take("(")) return group();
    if (take("[")) return character(char_class());
    if (take("^")) return single({.kind = Kind::kStart, .next = 0, .other = 0, .set = {}});
    if (take("$")) return single({.kind = Kind::kEnd, .next = 0, .other = 0, .set = {}});
    if (take(".")) return character(~just('\n'));
    if (take("\\")) return character(escape());
    if (std::string_view("*+?{").find(peek()) != std::string_view::npos) {
      refuse("a quantifier without operand");
    }
    return character(just(pattern_[at_++]));
  }

  Piece group() {
    if (++n_open_ > kMaxGroups) refuse("too many nested groups");
    std::optional<Kind> look;
    if (take("?=")) {
      look = Kind::kAhead;
    } else if (take("?!")) {
      look = Kind::kNotAhead;
    } else if (!take("?:") && peek() == '?') {
      refuse("a group of another kind");
    }
    Piece inner = alternatives();
    if (!take(")")) refuse("an unclosed (");
    --n_open_;
    if (!look) return inner;
    patch(inner, emit({.kind = Kind::kMatch, .next = 0, .other = 0, .set = {}}));
    return single({.kind = *look, .next = 0, .other = inner.start, .set = {}});
  }

  /// Behind a backslash.
  CharSet escape() {
    if (!more()) refuse("a backslash at its end");
    const char c = pattern_[at_++];
    switch (c) {
      case 'd':
        return chars_where(is_digit);
      case 'D':
        return ~chars_where(is_digit);
      case 'w':
        return chars_where(is_word);
      case 'W':
        return ~chars_where(is_word);
      case 's':
        return chars_where(is_space);
      case 'S':
        return ~chars_where(is_space);
      default:
        break;
    }
    if (is_alphanumeric(c)) refuse(fmt::format("\\{}", c));
    return just(c);
  }

  /// Behind "[".
  CharSet char_class() {
    const bool negated = take("^");
    CharSet set;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (!more()) refuse("an unclosed [");
      const bool escaped = take("\\");
      const char low = peek();
      const CharSet one = escaped ? escape() : just(pattern_[at_++]);
      if (peek() != '-' || at_ + 1 >= pattern_.size() || pattern_[at_ + 1] == ']') {
        set |= one;
        continue;
      }
      take("-");
      const char high = pattern_[at_++];
      if (escaped || high == '\\' || high < low) refuse("an unusual range in a class");
      for (int c = low; c <= high; ++c) set.set(static_cast<std::size_t>(c));
    }
    take("]");
    return negated ? ~set : set;
  }

  std::string_view pattern_;
  const std::string& where_;
  std::size_t at_ = 0;
  int n_open_ = 0;
  std::vector<Instruction> program_;
};

/// Runs a program over one text, remembering each lookahead's outcome at each position.
class Runner {
 public:
  Runner(const std::vector<Instruction>& program, std::string_view text, std::int64_t& steps_left)
      : program_(program), text_(text), steps_left_(steps_left) {}

  /// True when a match from `start` at `begin` exists; it must end at the text's end if `to_end`.
  bool run(std::size_t start, std::size_t begin, bool to_end) {
    std::vector<std::size_t> states;
    std::vector<bool> seen(program_.size());
    bool matched = follow(start, begin, states, seen);
    for (std::size_t at = begin; at < text_.size(); ++at) {
      if (matched && !to_end) return true;
      steps_left_ -= static_cast<std::int64_t>(program_.size() / 64);  // for clearing `seen`
      std::vector<std::size_t> next;
      seen.assign(program_.size(), false);
      matched = false;
      const auto c = static_cast<unsigned char>(text_[at]);
      for (const std::size_t state : states) {
        if (c < 128 && program_[state].set[c]) {
          matched |= follow(program_[state].next, at + 1, next, seen);
        }
      }
      states = std::move(next);
      if (states.empty() && !matched) return false;
    }
    return matched;
  }

 private:
  /// Adds the kChar states reachable from `from` without reading; true when a kMatch is.
  bool follow(std::size_t from, std::size_t at, std::vector<std::size_t>& states,
              std::vector<bool>& seen) {
    bool matched = false;
    std::vector<std::size_t> open{from};
    while (!open.empty()) {
      const std::size_t state = open.back();
      open.pop_back();
      if (seen[state]) continue;
      seen[state] = true;
      if (--steps_left_ < 0) return false;  // the caller throws
      const Instruction& instruction = program_[state];
      switch (instruction.kind) {
        case Kind::kMatch:
          matched = true;
          break;
        case Kind::kChar:
          states.push_back(state);
          break;
        case Kind::kSplit:
          open.push_back(instruction.next);
          open.push_back(instruction.other);
          break;
        case Kind::kStart:
          if (at == 0) open.push_back(instruction.next);
          break;
        case Kind::kEnd:
          if (at == text_.size()) open.push_back(instruction.next);
          break;
        case Kind::kAhead:
        case Kind::kNotAhead:
          if (looks_ahead(state, at) == (instruction.kind == Kind::kAhead)) {
            open.push_back(instruction.next);
          }
          break;
      }
    }
    return matched;
  }

  bool looks_ahead(std::size_t state, std::size_t at) {
    const std::pair key(state, at);
    const auto known = std::lower_bound(known_.begin(), known_.end(), std::pair(key, false));
    if (known != known_.end() && known->first == key) return known->second;
    const bool found = run(program_[state].other, at, false);
    known_.insert(std::lower_bound(known_.begin(), known_.end(), std::pair(key, false)),
                  std::pair(key, found));
    return found;
  }

  const std::vector<Instruction>& program_;
  std::string_view text_;
  std::int64_t& steps_left_;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, bool>> known_;  // sorted
};

}  // namespace

Pattern::Pattern(std::string_view pattern, std::string where) : where_(std::move(where)) {
  start_ = Compiler(pattern, where_).compile(program_);
}

bool Pattern::full_match(std::string_view text, std::int64_t& steps_left) const {
  const bool matched = Runner(program_, text, steps_left).run(start_, 0, true);
  if (steps_left < 0) fail(ErrorKind::kInput, "{}: the patterns take too long to match", where_);
  return matched;
}

}  // namespace jemm
