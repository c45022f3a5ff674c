// Where text stops being UTF-8, checked once so that everything behind it may trust the bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace jemm {

struct TextFault {
  enum Kind { kNone, kSurrogate, kInvalid };
  Kind kind = kNone;
  std::size_t offset = 0;  ///< of the first byte of the first fault
};

/// The first fault: a surrogate in its three-byte form, or bytes that no UTF-8 writer makes.
TextFault find_text_fault(std::string_view text);

/// Throws Error::request for text that the reference's tokenizer refuses: "TypeError" for a
/// surrogate, as there; "UnicodeDecodeError" for bytes that were never text.
void check_text(std::string_view text);

}  // namespace jemm
