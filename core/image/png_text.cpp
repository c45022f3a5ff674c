// Inflating with a limit, and the fields of text chunks.
#include "image/png_text.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "image/bytes.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxInflated = 1 << 20;

/// Inflates as far as the data goes; nothing when it is corrupt. Throws when more than kMaxInflated
/// comes out.
std::optional<std::string> inflate_limited(std::string_view data) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw ImageFault::kUndecodable;
  std::string out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  int status = Z_OK;
  std::array<char, 16384> block;
  while (status == Z_OK && out.size() < kMaxInflated) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(std::min(block.size(), kMaxInflated - out.size()));
    const uInt room = stream.avail_out;
    status = inflate(&stream, Z_SYNC_FLUSH);
    out.append(block.data(), room - stream.avail_out);
    if (stream.avail_out > 0) break;
  }
  const uInt left = stream.avail_in;
  inflateEnd(&stream);
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) return std::nullopt;
  if (status != Z_STREAM_END && out.size() >= kMaxInflated && left > 0) {
    throw ImageFault::kUndecodable;
  }
  return out;
}

/// Number of code points, or nothing when this is no UTF-8 that Python would decode.
std::optional<std::uint64_t> utf8_length(std::string_view text) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++count) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int n_more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    char32_t point = lead & (0x3Fu >> n_more);
    for (int k = 0; k < n_more; ++k) {
      if (i >= text.size() || (text[i] & 0xC0) != 0x80) return std::nullopt;
      point = point << 6 | (static_cast<unsigned char>(text[i++]) & 0x3Fu);
    }
    constexpr std::array<char32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    if (lead < 0xC2 || lead > 0xF4 || point < kLeast[static_cast<std::size_t>(n_more)] ||
        point > 0x10FFFF || surrogate) {
      return std::nullopt;
    }
  }
  return count;
}

/// Cuts `text` behind its first NUL and returns what came before; nothing when there is none.
std::optional<std::string_view> take_field(std::string_view& text) {
  const std::size_t end = text.find('\0');
  if (end == text.npos) return std::nullopt;
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end + 1);
  return field;
}

PngTextCost read_profile(std::string_view body) {
  const std::size_t method = body.find('\0') + 1;  // without a NUL, Python looks at the first byte
  if (byte_at(body, method) != 0) throw ImageFault::kUndecodable;
  const auto profile = inflate_limited(body.substr(method + 1));
  return {0, profile ? profile->size() : kMaxInflated};
}

PngTextCost read_compressed(std::string_view body) {
  std::string_view value = body;
  const auto key = take_field(value);
  if (!key) value = {};
  if (!value.empty() && value[0] != 0) throw ImageFault::kUndecodable;
  const auto text = inflate_limited(value.substr(std::min<std::size_t>(1, value.size())));
  const bool counted = key ? !key->empty() : !body.empty();
  return {counted && text ? text->size() : 0, text ? text->size() : kMaxInflated};
}

PngTextCost read_international(std::string_view body) {
  std::string_view rest = body;
  if (!take_field(rest) || rest.size() < 2) return {};
  const bool compressed = rest[0] != 0;
  const bool known_method = rest[1] == 0;
  rest.remove_prefix(2);
  const auto language = take_field(rest);
  const auto translated = language ? take_field(rest) : std::nullopt;
  if (!translated || (compressed && !known_method)) return {};
  std::string inflated;
  if (compressed) {
    auto text = inflate_limited(rest);
    if (!text) return {0, kMaxInflated};
    inflated = std::move(*text);
    rest = inflated;
  }
  const bool decodable = utf8_length(*language) && utf8_length(*translated);
  return {decodable ? utf8_length(rest).value_or(0) : 0, inflated.size()};
}

PngTextCost read_plain(std::string_view body) {
  std::string_view value = body;
  const auto key = take_field(value);
  return {key && !key->empty() ? value.size() : 0, 0};
}

}  // namespace

PngTextCost read_png_text(std::string_view type, std::string_view body) {
  if (type == "iCCP") return read_profile(body);
  if (type == "zTXt") return read_compressed(body);
  if (type == "iTXt") return read_international(body);
  return read_plain(body);
}

}  // namespace jemm
