// Normalisation form C of Unicode 9.0, the reference's version.
#pragma once

#include <string>
#include <string_view>

namespace jemm {

/// NFC of valid UTF-8 without surrogates. Returns `text` itself when it passes the quick check,
/// else a view of `scratch`, which is overwritten. Time is n log n at worst (a long run of
/// combining marks).
std::string_view to_nfc(std::string_view text, std::string& scratch);

}  // namespace jemm
