// The bytes of one image file to RGB, exactly as Pillow 12.3.0's open and convert("RGB") give them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "image/rgb.h"

namespace jemm {

/// Decodes PNG, JPEG and WebP: no rotation, no colour management, alpha dropped, palettes expanded,
/// the first canvas of an animation. `index` is the image's number in the request, for messages.
/// Throws Error::request("ValueError", "image {index} ...") with one of
///   "is not PNG, JPEG or WebP", "could not be decoded", "exceeds 3145728 pixels".
Rgb decode_image(std::size_t index, std::string_view bytes);

/// Names and versions of the libraries behind decode_image, for reports.
std::string image_library_versions();

}  // namespace jemm
