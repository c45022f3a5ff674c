// Finds the first fault, and makes it the error of a request.
#include "tokens/check_utf8.h"

#include "base/error.h"
#include "base/utf8.h"

namespace jemm {

TextFault find_text_fault(std::string_view text) {
  for (std::size_t i = skip_ascii(text, 0); i < text.size();) {
    Utf8Fault fault;
    if (code_point_length(text.substr(i), fault) == 0) return {TextFault::kInvalid, i};
    std::size_t end = i;
    if (is_surrogate(next_code_point(text, end))) return {TextFault::kSurrogate, i};
    i = skip_ascii(text, end);
  }
  return {};
}

void check_text(std::string_view text) {
  const TextFault fault = find_text_fault(text);
  if (fault.kind == TextFault::kSurrogate) {
    throw Error::request("TypeError",
                         fmt::format("the text holds a lone surrogate at byte {}", fault.offset));
  }
  if (fault.kind == TextFault::kInvalid) {
    throw Error::request("UnicodeDecodeError",
                         fmt::format("the text is no UTF-8 at byte {}", fault.offset));
  }
}

}  // namespace jemm
