// Data URLs and base64 as the reference reads them.
#include "image/envelope.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/python_space.h"
#include "base/utf8.h"

namespace jemm {
namespace {

std::string without_space(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    if (!is_python_space(next_code_point(text, offset))) out += text.substr(start, offset - start);
  }
  return out;
}

}  // namespace

std::string decode_envelope(std::size_t index, std::string_view text) {
  constexpr std::string_view kMark = ";base64";
  if (text.starts_with("data:")) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!text.substr(0, comma).ends_with(kMark)) {
      throw Error::request("ValueError", fmt::format("image {} is not a base64 data URL", index));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  const std::string packed = without_space(text);
  if (std::any_of(packed.begin(), packed.end(), [](char c) { return (c & 0x80) != 0; })) {
    throw Error::request("ValueError", "string argument should contain only ASCII characters");
  }
  std::optional<std::string> bytes = decode_base64(packed);
  if (!bytes) {
    throw Error::request("ValueError", fmt::format("image {} could not be decoded", index));
  }
  return std::move(*bytes);
}

}  // namespace jemm
