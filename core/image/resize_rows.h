// One output row of each resize pass: the inner loops, with vectors and without.
#pragma once

#include <cstddef>
#include <cstdint>

#include "image/resize.h"

namespace jemm {

/// Row pass: out[i, c] = clamp((half + sum over j of taps[i, j] * in[first[i] + j, c]) >>
/// precision). in: [axis inputs, 3], out: [axis outputs, 3].
void resize_row(const ResizeAxis& axis, const std::uint8_t* in, std::uint8_t* out);

/// Column pass: output row i of n bytes, from the rows of n bytes that lie one after the other at
/// `in`.
void resize_column(const ResizeAxis& axis, std::size_t i, const std::uint8_t* in, std::size_t n,
                   std::uint8_t* out);

/// The same without vectors: the definition, and the way on other processors than x86-64.
void resize_row_plain(const ResizeAxis& axis, const std::uint8_t* in, std::uint8_t* out);
void resize_column_plain(const ResizeAxis& axis, std::size_t i, const std::uint8_t* in,
                         std::size_t begin, std::size_t n, std::uint8_t* out);

}  // namespace jemm
