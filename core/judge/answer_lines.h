// What `jemm decide` writes: JSON lines of answers and refusals, by the id of the request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "judge/indexed_lines.h"
#include "judge/record.h"

namespace jemm {

/// An answer or a refusal.
struct AnswerLine {
  std::optional<ResponseRecord> response;
  std::optional<ErrorRecord> error;  ///< of kRefusedHttp: a line does not tell
  std::string request_sha256;        ///< of the body that was answered; empty when it does not say
};

/// Reads a line. Throws Error(kInput), beginning with `where`, for one that is neither.
AnswerLine read_answer_line(std::string_view line, const std::string& where);

/// The key of a line's id: that of answer_key for text, digits for a number. Throws likewise.
std::string answer_key_of(std::string_view line, const std::string& where);
std::string answer_key(std::string_view id);
/// The id of a key, for messages.
std::string shown_answer_id(std::string_view key);

/// The lines of a file by the keys that `key_of` gives. Throws Error(kInput) when two have the
/// same, and as IndexedLines does.
IndexedLines open_answer_lines(const std::string& path, const IndexedLines::KeyOf& key_of);

}  // namespace jemm
