// zlib driven a row at a time, and the five filters.
#include "image/png_rows.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>

namespace jemm {

struct PngRows::Stream {
  explicit Stream(PngChunks& chunk_source) : chunks(chunk_source) {
    if (inflateInit(&z) != Z_OK) throw ImageFault::kUndecodable;
  }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  PngChunks& chunks;
  z_stream z{};
  bool ended = false;
};

namespace {

/// The filters' neighbours, here of byte i >= bpp: a to the left, b above, c above left.
std::uint8_t paeth(int a, int b, int c) {
  const int to_a = std::abs(b - c);
  const int to_b = std::abs(a - c);
  const int to_c = std::abs(a + b - 2 * c);
  return static_cast<std::uint8_t>(to_a <= to_b && to_a <= to_c ? a : to_b <= to_c ? b : c);
}

std::uint8_t plus(int x, int y) {
  return static_cast<std::uint8_t>(x + y);
}

/// Undoes one filter in place. A constant distance lets the compiler keep the left pixel in
/// registers.
template <std::size_t kPixelBytes>
void unfilter(int filter, std::uint8_t* row, const std::uint8_t* above, std::size_t n) {
  constexpr std::size_t bpp = kPixelBytes;
  const std::size_t head = std::min(bpp, n);
  switch (filter) {
    case 0:
      break;
    case 1:
      for (std::size_t i = bpp; i < n; ++i) row[i] = plus(row[i], row[i - bpp]);
      break;
    case 2:
      for (std::size_t i = 0; i < n; ++i) row[i] = plus(row[i], above[i]);
      break;
    case 3:
      for (std::size_t i = 0; i < head; ++i) row[i] = plus(row[i], above[i] / 2);
      for (std::size_t i = bpp; i < n; ++i) row[i] = plus(row[i], (row[i - bpp] + above[i]) / 2);
      break;
    case 4:
      for (std::size_t i = 0; i < head; ++i) row[i] = plus(row[i], above[i]);
      for (std::size_t i = bpp; i < n; ++i) {
        row[i] = plus(row[i], paeth(row[i - bpp], above[i], above[i - bpp]));
      }
      break;
    default:
      throw ImageFault::kUndecodable;
  }
}

void unfilter_any(std::size_t pixel_bytes, std::uint8_t* row, const std::uint8_t* above,
                  std::size_t n) {
  const int filter = row[0];
  ++row;
  ++above;
  switch (pixel_bytes) {
    case 1:
      return unfilter<1>(filter, row, above, n);
    case 2:
      return unfilter<2>(filter, row, above, n);
    case 3:
      return unfilter<3>(filter, row, above, n);
    case 4:
      return unfilter<4>(filter, row, above, n);
    case 6:
      return unfilter<6>(filter, row, above, n);
    default:
      return unfilter<8>(filter, row, above, n);
  }
}

}  // namespace

PngRows::PngRows(PngChunks& chunks) : stream_(std::make_unique<Stream>(chunks)) {}
PngRows::~PngRows() = default;

bool PngRows::ended() const {
  return stream_->ended;
}

std::span<const std::uint8_t> PngRows::next(std::size_t n_bytes, std::size_t pixel_bytes,
                                            bool first) {
  std::swap(row_, above_);
  row_.resize(n_bytes + 1);
  if (first) above_.assign(n_bytes + 1, 0);
  fill(n_bytes + 1);
  unfilter_any(pixel_bytes, row_.data(), above_.data(), n_bytes);
  return {row_.data() + 1, n_bytes};
}

void PngRows::fill(std::size_t n_bytes) {
  z_stream& z = stream_->z;
  z.next_out = row_.data();
  z.avail_out = static_cast<uInt>(n_bytes);
  while (z.avail_out > 0) {
    if (z.avail_in == 0) {
      const std::string_view piece = stream_->chunks.next_piece();
      if (piece.empty()) throw ImageFault::kUndecodable;
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      z.avail_in = static_cast<uInt>(piece.size());
    }
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status < 0) throw ImageFault::kUndecodable;
    stream_->ended = status == Z_STREAM_END;
    // Input that inflate leaves while a row is unfinished lies behind the stream's end.
    if (z.avail_out > 0) z.avail_in = 0;
  }
}

}  // namespace jemm
