// Sums of 16-bit taps times bytes in 32-bit integers; two taps at a time on x86-64 (SSE2).
#include "image/resize_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace jemm {
namespace {

std::int32_t half(const ResizeAxis& axis) {
  return (1 << axis.precision) >> 1;
}

std::uint8_t clamp_byte(std::int32_t sum, int precision) {
  return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255));
}

void resize_pixel_plain(const ResizeAxis& axis, std::size_t i, const std::uint8_t* in,
                        std::uint8_t* out) {
  const std::uint8_t* pixel = in + 3 * axis.first[i];
  const std::int16_t* taps = axis.taps.data() + i * axis.stride;
  std::array<std::int32_t, 3> sum;
  sum.fill(half(axis));
  for (std::size_t j = 0; j < axis.n_taps[i]; ++j, pixel += 3) {
    for (std::size_t c = 0; c < 3; ++c) sum[c] += taps[j] * pixel[c];
  }
  for (std::size_t c = 0; c < 3; ++c) out[3 * i + c] = clamp_byte(sum[c], axis.precision);
}

#if defined(__SSE2__)

/// Taps j and j + 1, one above the other in every 32-bit lane.
__m128i tap_pair(const std::int16_t* taps) {
  std::int32_t pair;
  std::memcpy(&pair, taps, sizeof pair);
  return _mm_set1_epi32(pair);
}

__m128i load_4(const std::uint8_t* bytes) {
  std::int32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return _mm_cvtsi32_si128(word);
}

/// Four sums to four bytes, in the low 32 bits.
__m128i clamp_bytes(__m128i sum, __m128i precision) {
  // A sum is below 2^31 and precision at least 1, so 16 bits hold what is clamped.
  const __m128i shifted = _mm_packs_epi32(_mm_sra_epi32(sum, precision), _mm_setzero_si128());
  return _mm_packus_epi16(shifted, shifted);
}

/// `sum` and n weighted pixels from `pixel` on, of which the byte behind the last is read as well.
__m128i weigh_pixels(const std::uint8_t* pixel, const std::int16_t* taps, std::size_t n,
                     __m128i sum) {
  const __m128i zero = _mm_setzero_si128();
  std::size_t j = 0;
  for (; j + 1 < n; j += 2, pixel += 6) {
    const __m128i pair = _mm_unpacklo_epi8(load_4(pixel), load_4(pixel + 3));
    sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_unpacklo_epi8(pair, zero), tap_pair(taps + j)));
  }
  if (j < n) {
    const __m128i single = _mm_unpacklo_epi8(load_4(pixel), zero);
    sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_unpacklo_epi8(single, zero), tap_pair(taps + j)));
  }
  return sum;
}

#endif

}  // namespace

void resize_row_plain(const ResizeAxis& axis, const std::uint8_t* in, std::uint8_t* out) {
  for (std::size_t i = 0; i < axis.first.size(); ++i) resize_pixel_plain(axis, i, in, out);
}

void resize_column_plain(const ResizeAxis& axis, std::size_t i, const std::uint8_t* in,
                         std::size_t begin, std::size_t n, std::uint8_t* out) {
  const std::int16_t* taps = axis.taps.data() + i * axis.stride;
  for (std::size_t k = begin; k < n; ++k) {
    std::int32_t sum = half(axis);
    for (std::size_t j = 0; j < axis.n_taps[i]; ++j)
      sum += taps[j] * in[(axis.first[i] + j) * n + k];
    out[k] = clamp_byte(sum, axis.precision);
  }
}

#if defined(__SSE2__)

void resize_row(const ResizeAxis& axis, const std::uint8_t* in, std::uint8_t* out) {
  const __m128i precision = _mm_cvtsi32_si128(axis.precision);
  const __m128i start = _mm_set1_epi32(half(axis));
  const std::size_t n_out = axis.first.size();
  // Four-byte reads and writes run one byte over: the pixels that touch the end are done without.
  const std::size_t n_in = axis.first.back() + axis.n_taps.back();
  std::size_t i = 0;
  for (; i + 1 < n_out && axis.first[i] + axis.n_taps[i] < n_in; ++i) {
    const __m128i sum = weigh_pixels(in + 3 * axis.first[i], axis.taps.data() + i * axis.stride,
                                     axis.n_taps[i], start);
    const std::int32_t word = _mm_cvtsi128_si32(clamp_bytes(sum, precision));
    std::memcpy(out + 3 * i, &word, sizeof word);
  }
  for (; i < n_out; ++i) resize_pixel_plain(axis, i, in, out);
}

void resize_column(const ResizeAxis& axis, std::size_t i, const std::uint8_t* in, std::size_t n,
                   std::uint8_t* out) {
  const __m128i precision = _mm_cvtsi32_si128(axis.precision);
  const __m128i zero = _mm_setzero_si128();
  const std::int16_t* taps = axis.taps.data() + i * axis.stride;
  const std::uint8_t* top = in + axis.first[i] * n;
  std::size_t k = 0;
  for (; k + 16 <= n; k += 16) {
    const __m128i start = _mm_set1_epi32(half(axis));
    __m128i sum[4] = {start, start, start, start};
    for (std::size_t j = 0; j < axis.n_taps[i]; j += 2) {
      // An odd count's last row is paired with itself, under a tap of 0.
      const std::uint8_t* upper = top + j * n + k;
      const std::uint8_t* lower = j + 1 < axis.n_taps[i] ? upper + n : upper;
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(upper));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lower));
      const __m128i low = _mm_unpacklo_epi8(a, b);
      const __m128i high = _mm_unpackhi_epi8(a, b);
      const __m128i pair = tap_pair(taps + j);
      sum[0] = _mm_add_epi32(sum[0], _mm_madd_epi16(_mm_unpacklo_epi8(low, zero), pair));
      sum[1] = _mm_add_epi32(sum[1], _mm_madd_epi16(_mm_unpackhi_epi8(low, zero), pair));
      sum[2] = _mm_add_epi32(sum[2], _mm_madd_epi16(_mm_unpacklo_epi8(high, zero), pair));
      sum[3] = _mm_add_epi32(sum[3], _mm_madd_epi16(_mm_unpackhi_epi8(high, zero), pair));
    }
    for (__m128i& s : sum) s = _mm_sra_epi32(s, precision);
    const __m128i bytes =
        _mm_packus_epi16(_mm_packs_epi32(sum[0], sum[1]), _mm_packs_epi32(sum[2], sum[3]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k), bytes);
  }
  resize_column_plain(axis, i, in, k, n, out);
}

#else

void resize_row(const ResizeAxis& axis, const std::uint8_t* in, std::uint8_t* out) {
  resize_row_plain(axis, in, out);
}

void resize_column(const ResizeAxis& axis, std::size_t i, const std::uint8_t* in, std::size_t n,
                   std::uint8_t* out) {
  resize_column_plain(axis, i, in, 0, n, out);
}

#endif

}  // namespace jemm
