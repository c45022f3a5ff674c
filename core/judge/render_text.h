// How reports write text and numbers: ids of any bytes made safe, figures short and never
// flattering.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jemm {

/// Valid UTF-8: lone surrogates and bytes that are no code point as visible escapes (`\ud800`,
/// `\xff`). Everything else, control characters too, stays.
std::string valid_utf8(std::string_view text);
/// valid_utf8 on one line: also control characters, separators of lines and marks that turn the
/// direction of text become escapes (`\n`, `\u001b`, `\u202e`).
std::string printable(std::string_view text);

/// Columns that printable text takes on a terminal.
std::size_t text_columns(std::string_view text);
/// Printable text in at most `columns` (from 4 on), its middle replaced by an ellipsis.
std::string shortened(std::string_view text, std::size_t columns);

/// A JSON string that every reader takes: valid_utf8 in quotes.
std::string json_text(std::string_view text);
/// A JSON number; NaN and infinities, for which JSON has none, as the texts that report.json has.
std::string json_number(double value);
/// printable, for the text and the attributes of HTML and XML.
std::string html_text(std::string_view text);
/// printable, as plain text inside a line or a table's cell of GitHub's Markdown.
std::string markdown_text(std::string_view text);

/// Three significant digits; "NaN", "inf", "-inf".
std::string number_text(double value);
/// A finite value from 0 on in three significant digits, rounded up: a budget of as much passes.
std::string number_text_up(double value);
/// A share as a percentage; rounded, but only what is over 1 reads as over 100 %.
std::string percent_text(double share);
/// `n` and the noun, with an s unless n is 1.
std::string count_text(std::size_t n, std::string_view noun);

}  // namespace jemm
