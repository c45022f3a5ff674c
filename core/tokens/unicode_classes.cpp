// Fills the table of classes, one entry for each code point.
#include "tokens/unicode_classes.h"

#include <algorithm>

namespace jemm {
namespace {

struct ClassRange {
  char32_t first, last;
  std::uint8_t bits;
};

constexpr ClassRange kRanges[] = {
#include "unicode_classes_16.inc"
};

constexpr ClassRange kSpaces[] = {
    {0x9, 0xD, kSpace},       {0x20, 0x20, kSpace},     {0x85, 0x85, kSpace},
    {0xA0, 0xA0, kSpace},     {0x1680, 0x1680, kSpace}, {0x2000, 0x200A, kSpace},
    {0x2028, 0x2029, kSpace}, {0x202F, 0x202F, kSpace}, {0x205F, 0x205F, kSpace},
    {0x3000, 0x3000, kSpace},
};

// Static storage is zero to begin with, and only pages that hold a class are ever touched.
struct Classes {
  std::array<std::uint8_t, 0x110000> of;
  Classes() {
    for (const auto& range : kRanges) fill(range);
    for (const auto& range : kSpaces) fill(range);
  }
  void fill(const ClassRange& range) {
    std::fill(of.begin() + range.first, of.begin() + range.last + 1, range.bits);
  }
};

}  // namespace

const std::array<std::uint8_t, 0x110000>& character_classes() {
  static const Classes classes;
  return classes.of;
}

}  // namespace jemm
