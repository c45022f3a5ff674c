// The byte alphabet of byte-level vocabularies: one printable character for each byte.
#pragma once

#include <string>
#include <string_view>

namespace jemm {

/// Appends the bytes (` the`) that a token stands for as tokenizer.json spells it (`Ġthe`).
/// False when a character is outside the alphabet; what was appended is then unspecified.
///
/// Bytes 21..7E, A1..AC and AE..FF stand for themselves as code points; the other 68, in order,
/// are U+0100 and up.
bool append_alphabet_bytes(std::string_view spelled, std::string& bytes);

}  // namespace jemm
