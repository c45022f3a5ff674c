// How CPython 3.12 writes and trims text: str, repr, json.dumps, and the contract's flat and strip.
#pragma once

#include <string>
#include <string_view>

#include "contract/json.h"

namespace jemm {

/// str.isprintable of one code point, Unicode 15.0.
bool is_printable(char32_t c);

/// str.strip(): white space off both ends.
std::string_view strip(std::string_view text);

/// Every run of white space becomes one space, then both ends are stripped.
std::string flat(std::string_view text);

/// repr of a string: quotes, escapes.
std::string python_repr(std::string_view text);

/// repr of a value.
std::string python_repr(JsonValue value);

/// str of a value: a string as it is, anything else as its repr.
std::string python_str(JsonValue value);

/// json.dumps(value, ensure_ascii=False, separators=(",", ":")).
std::string compact_json(JsonValue value);

}  // namespace jemm
