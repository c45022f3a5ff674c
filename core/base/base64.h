// Base64 as CPython's binascii reads and writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jemm {

/// binascii.a2b_base64(text, strict_mode=True), or nothing where that fails.
std::optional<std::string> decode_base64(std::string_view text);

/// Padded, on one line.
std::string encode_base64(std::string_view bytes);

}  // namespace jemm
