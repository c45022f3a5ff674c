// UTF-8 as CPython decodes it with the error handler "surrogatepass".
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "contract/json.h"

namespace jemm {
namespace {

using Byte = unsigned char;

bool continues(Byte byte) { return (byte & 0xC0) == 0x80; }

struct Fault {
  std::size_t length;  // bytes that the message names
  const char* reason;
};

/// Number of bytes of the code point at the start of `bytes`, or the fault that CPython reports.
/// The second byte's range is narrower behind some leads: no overlong form, nothing over U+10FFFF.
std::size_t code_point_length(std::string_view bytes, Fault& fault) {
  const auto at = [&](std::size_t i) { return static_cast<Byte>(bytes[i]); };
  const Byte lead = at(0);
  if (lead < 0x80) return 1;
  fault = {1, "invalid start byte"};
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  fault.reason = "invalid continuation byte";
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) {
      fault = {i, "unexpected end of data"};
      return 0;
    }
    bool good = continues(at(i));
    if (i == 1 && lead == 0xE0) good = good && at(1) >= 0xA0;
    if (i == 1 && lead == 0xF0) good = good && at(1) >= 0x90;
    if (i == 1 && lead == 0xF4) good = good && at(1) < 0x90;
    // A surrogate's three bytes pass; cut off, they are an invalid continuation of 0xED.
    if (i == 1 && lead == 0xED && at(1) >= 0xA0) {
      good = good && bytes.size() >= 3 && continues(at(2));
    }
    if (!good) {
      fault.length = i;
      return 0;
    }
  }
  return length;
}

std::size_t skip_ascii(std::string_view bytes, std::size_t offset) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  while (offset + 8 <= bytes.size()) {
    std::uint64_t block;
    std::memcpy(&block, bytes.data() + offset, 8);
    if ((block & kHighBits) != 0) break;
    offset += 8;
  }
  return offset;
}

}  // namespace

std::string_view decode_json_bytes(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  for (std::size_t offset = 0; offset < bytes.size();) {
    Fault fault{};
    const std::size_t length = code_point_length(bytes.substr(offset), fault);
    if (length == 0) {
      const std::string where =
          fault.length == 1
              ? fmt::format("byte {:#04x} in position {}", static_cast<Byte>(bytes[offset]), offset)
              : fmt::format("bytes in position {}-{}", offset, offset + fault.length - 1);
      throw Error::request("UnicodeDecodeError", fmt::format("'utf-8' codec can't decode {}: {}",
                                                             where, fault.reason));
    }
    offset = skip_ascii(bytes, offset + length);
  }
  return bytes;
}

}  // namespace jemm
