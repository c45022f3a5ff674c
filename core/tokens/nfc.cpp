// Decomposes, sorts marks and composes, where the quick check fails.
#include "tokens/nfc.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/utf8.h"

namespace jemm {
namespace {

struct CombiningRange {
  char32_t first, last;
  std::uint8_t combining_class;
};
constexpr CombiningRange kCombining[] = {
#define JEMM_NFC_COMBINING
#include "nfc_9.inc"
#undef JEMM_NFC_COMBINING
};

struct Decomposition {
  char32_t composite, first, second;  // second: 0 when the composite stands for one code point
  bool recomposes;                    // the pair becomes the composite again
};
constexpr Decomposition kDecompositions[] = {
// sorted by composite
#define JEMM_NFC_DECOMPOSITIONS
#include "nfc_9.inc"
#undef JEMM_NFC_DECOMPOSITIONS
};

// Hangul syllables are composed by arithmetic: L (19) x V (21) x T (27, or none).
constexpr char32_t kSyllable = 0xAC00, kL = 0x1100, kV = 0x1161, kT = 0x11A7;
constexpr char32_t kCountL = 19, kCountV = 21, kCountT = 28;
constexpr char32_t kSyllables = kCountL * kCountV * kCountT;

// Everything that normalisation may touch lies below this code point.
constexpr char32_t kLimit = 0x30000;
static_assert(std::end(kDecompositions)[-1].composite < kLimit);
static_assert(std::end(kCombining)[-1].last < kLimit);

struct Composition {
  char32_t first, second, composite;
  auto pair() const { return std::pair(first, second); }
};

struct Data {
  std::array<std::uint8_t, kLimit> combining_class;
  std::array<bool, kLimit> unsettled;     // NFC_Quick_Check is No or Maybe
  std::vector<Composition> compositions;  // sorted by pair

  Data() {
    for (const auto& range : kCombining) {
      std::fill(combining_class.begin() + range.first, combining_class.begin() + range.last + 1,
                range.combining_class);
    }
    for (const auto& d : kDecompositions) {
      if (d.recomposes) {
        unsettled[d.second] = true;
        compositions.push_back({d.first, d.second, d.composite});
      } else {
        unsettled[d.composite] = true;
      }
    }
    std::fill(unsettled.begin() + kV, unsettled.begin() + kV + kCountV, true);
    std::fill(unsettled.begin() + kT + 1, unsettled.begin() + kT + kCountT, true);
    std::sort(compositions.begin(), compositions.end(),
              [](const auto& a, const auto& b) { return a.pair() < b.pair(); });
  }
};

const Data& data() {
  static const Data instance;
  return instance;
}

struct Character {
  char32_t code_point;
  std::uint8_t combining_class;
};

// Appends the full canonical decomposition. The data nests at most three deep.
void decompose(const Data& tables, char32_t c, std::vector<Character>& out) {
  if (c >= kSyllable && c < kSyllable + kSyllables) {
    const char32_t index = c - kSyllable;
    out.push_back({kL + index / (kCountV * kCountT), 0});
    out.push_back({kV + index / kCountT % kCountV, 0});
    if (index % kCountT != 0) out.push_back({kT + index % kCountT, 0});
    return;
  }
  const auto* found = std::lower_bound(
      std::begin(kDecompositions), std::end(kDecompositions), c,
      [](const Decomposition& d, char32_t code_point) { return d.composite < code_point; });
  if (found != std::end(kDecompositions) && found->composite == c) {
    decompose(tables, found->first, out);
    if (found->second != 0) decompose(tables, found->second, out);
    return;
  }
  out.push_back({c, c < kLimit ? tables.combining_class[c] : std::uint8_t{0}});
}

// Canonical order: each run of characters with a class other than 0 sorted by it, stably.
void reorder(std::vector<Character>& text) {
  for (auto it = text.begin(); it != text.end();) {
    if (it->combining_class == 0) {
      ++it;
      continue;
    }
    const auto end =
        std::find_if(it, text.end(), [](const Character& c) { return c.combining_class == 0; });
    std::stable_sort(it, end, [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    });
    it = end;
  }
}

// The primary composite of a pair, or 0.
char32_t compose_pair(const Data& tables, char32_t first, char32_t second) {
  if (first >= kL && first < kL + kCountL && second >= kV && second < kV + kCountV) {
    return kSyllable + ((first - kL) * kCountV + (second - kV)) * kCountT;
  }
  if (first >= kSyllable && first < kSyllable + kSyllables && (first - kSyllable) % kCountT == 0 &&
      second > kT && second < kT + kCountT) {
    return first + (second - kT);
  }
  const auto found = std::lower_bound(
      tables.compositions.begin(), tables.compositions.end(), std::pair(first, second),
      [](const Composition& c, const auto& pair) { return c.pair() < pair; });
  if (found == tables.compositions.end() || found->pair() != std::pair(first, second)) return 0;
  return found->composite;
}

// Joins each character to the last starter unless one between them blocks it: a class that is 0
// or not below its own. In place.
void compose(const Data& tables, std::vector<Character>& text) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t starter = kNone, kept = 0;
  std::uint8_t last = 0;  // class of the last character kept behind the starter, 0 when none is
  for (const Character c : text) {
    if (starter != kNone && (last == 0 || last < c.combining_class)) {
      const char32_t joined = compose_pair(tables, text[starter].code_point, c.code_point);
      if (joined != 0) {
        text[starter].code_point = joined;
        continue;
      }
    }
    last = c.combining_class;
    if (last == 0) starter = kept;
    text[kept++] = c;
  }
  text.resize(kept);
}

void append_normalised(const Data& tables, std::string_view segment, std::string& out) {
  std::vector<Character> text;
  for (std::size_t i = 0; i < segment.size();) {
    decompose(tables, next_code_point(segment, i), text);
  }
  reorder(text);
  compose(tables, text);
  for (const Character c : text) append_utf8(out, c.code_point);
}

}  // namespace

// A code point of class 0 that passes the quick check never joins what stands before it: there the
// text falls into segments, and only segments that fail the check or are out of order are rebuilt.
std::string_view to_nfc(std::string_view text, std::string& scratch) {
  const Data& tables = data();
  scratch.clear();
  std::size_t copied = 0, segment = 0;
  std::uint8_t last = 0;  // class of the previous code point
  bool normal = true;     // the segment, so far
  const auto close_segment = [&](std::size_t end) {
    if (!normal) {
      scratch.append(text, copied, segment - copied);
      append_normalised(tables, text.substr(segment, end - segment), scratch);
      copied = end;
    }
    segment = end;
    last = 0;
    normal = true;
  };
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      close_segment(start);
      continue;
    }
    const char32_t c = next_code_point(text, i);
    const std::uint8_t combining = c < kLimit ? tables.combining_class[c] : std::uint8_t{0};
    const bool unsettled = c < kLimit && tables.unsettled[c];
    if (combining == 0 && !unsettled) close_segment(start);
    if (unsettled || (combining != 0 && combining < last)) normal = false;
    last = combining;
  }
  close_segment(text.size());
  if (copied == 0) return text;
  scratch.append(text, copied);
  return scratch;
}

}  // namespace jemm
