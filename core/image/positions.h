// Rotary positions of a prompt with images.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace jemm {

/// Three positions a token. Text counts up on all three axes. The tokens of an image, one for each
/// 2 x 2 patches, row by row, keep the position p of its start on axis 0 and have p + row and
/// p + column on the others; the text behind it starts at p + max(rows, columns).
/// `grids`: (t = 1, h, w) of each image in patches, in the order of the prompt; image i fills the
/// next h / 2 * w / 2 tokens of value `image_token`. Throws Error::request("ValueError") when the
/// image tokens are not exactly those.
std::vector<std::array<std::int32_t, 3>> prompt_positions(
    std::span<const std::int32_t> tokens, std::int32_t image_token,
    std::span<const std::array<std::int64_t, 3>> grids);

/// SHA-256 of the positions as little-endian int64 [3, tokens]: the hash of the goldens.
std::string positions_sha256(std::span<const std::array<std::int32_t, 3>> positions);

}  // namespace jemm
