// zlib driven a row at a time, libdeflate for sound streams, and the five filters.
#include "image/png_rows.h"

#include <zlib.h>

#if defined(JEMM_LIBDEFLATE)
#include <libdeflate.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

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

/// All rows of a sound stream; nothing when it is not sound, or libdeflate is not there.
std::vector<std::uint8_t> inflate_whole(const PngChunks& chunks, std::size_t n_total) {
#if defined(JEMM_LIBDEFLATE)
  const std::optional<std::string> stream = chunks.whole_stream();
  constexpr std::size_t kLargestRatio = 1032;  // of deflate: a length of 258 for two bits
  if (!stream || stream->size() < n_total / kLargestRatio) return {};
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  std::vector<std::uint8_t> rows(n_total);
  if (inflater != nullptr &&
      libdeflate_zlib_decompress(inflater.get(), stream->data(), stream->size(), rows.data(),
                                 n_total, nullptr) == LIBDEFLATE_SUCCESS) {
    return rows;
  }
#else
  static_cast<void>(chunks);
  static_cast<void>(n_total);
#endif
  return {};
}

}  // namespace

PngRows::PngRows(PngChunks& chunks, std::size_t n_total)
    : stream_(std::make_unique<Stream>(chunks)), whole_(inflate_whole(chunks, n_total)) {}
PngRows::~PngRows() = default;

bool PngRows::ended() const {
  return stream_->ended;
}

std::span<const std::uint8_t> PngRows::next(std::size_t n_bytes, std::size_t pixel_bytes,
                                            bool first) {
  if (first) zeros_.assign(n_bytes + 1, 0);
  std::uint8_t* row = take_row(n_bytes + 1);
  unfilter_any(pixel_bytes, row, first ? zeros_.data() : above_, n_bytes);
  above_ = row;
  return {row + 1, n_bytes};
}

std::uint8_t* PngRows::take_row(std::size_t n_bytes) {
  if (!whole_.empty()) {
    std::uint8_t* row = whole_.data() + whole_ofs_;
    whole_ofs_ += n_bytes;
    return row;
  }
  std::swap(row_, last_);
  row_.resize(n_bytes);
  fill(row_.data(), n_bytes);
  return row_.data();
}

void PngRows::fill(std::uint8_t* row, std::size_t n_bytes) {
  z_stream& z = stream_->z;
  z.next_out = row;
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
