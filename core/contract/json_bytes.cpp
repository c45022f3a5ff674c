// UTF-8 as CPython decodes it with the error handler "surrogatepass".
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "contract/json.h"

namespace jemm {

std::string_view decode_json_bytes(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  for (std::size_t offset = 0; offset < bytes.size();) {
    Utf8Fault fault;
    const std::size_t length = code_point_length(bytes.substr(offset), fault);
    if (length == 0) {
      const std::string where =
          fault.length == 1
              ? fmt::format("byte {:#04x} in position {}",
                            static_cast<unsigned char>(bytes[offset]), offset)
              : fmt::format("bytes in position {}-{}", offset, offset + fault.length - 1);
      throw Error::request("UnicodeDecodeError",
                           fmt::format("'utf-8' codec can't decode {}: {}", where, fault.reason));
    }
    offset = skip_ascii(bytes, offset + length);
  }
  return bytes;
}

}  // namespace jemm
