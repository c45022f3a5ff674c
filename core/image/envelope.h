// The text form of an image to its raw bytes. Knows no image formats.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jemm {

/// The bytes behind `text`: base64, or a data URL whose head ends in ";base64" (an empty text gives
/// no bytes). White space is ignored; otherwise as strict as CPython's b64decode(validate=True).
/// `index` is the image's number in the request, for messages. Throws Error::request("ValueError").
std::string decode_envelope(std::size_t index, std::string_view text);

}  // namespace jemm
