// Base64 as CPython's binascii reads it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jemm {

/// binascii.a2b_base64(text, strict_mode=True), or nothing where that fails.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace jemm
