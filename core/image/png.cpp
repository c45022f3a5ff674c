// From the samples of a PNG's rows to RGB, interlaced or not.
#include "image/png.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "image/png_chunks.h"
#include "image/png_rows.h"

namespace jemm {
namespace {

using Palette = std::array<std::uint8_t, 256 * 3>;

Palette read_palette(std::string_view body) {
  if (body.size() / 3 > 256) throw ImageFault::kUndecodable;
  Palette palette{};
  std::copy_n(body.begin(), body.size() / 3 * 3, palette.begin());
  return palette;
}

/// Turns a row of samples into RGB.
class Expander {
 public:
  Expander(const PngFormat& format, std::string_view palette)
      : format_(format), palette_(read_palette(palette)) {}

  void expand(const std::uint8_t* in, std::size_t n_pixels, std::uint8_t* out) const {
    if (format_.depth < 8) {
      expand_packed(in, n_pixels, out);
    } else if (format_.color == PngColor::kPalette) {
      for (std::size_t i = 0; i < n_pixels; ++i) std::memcpy(out + 3 * i, &palette_[3u * in[i]], 3);
    } else if (format_.color == PngColor::kGrey) {
      expand_grey(in, n_pixels, out);
    } else {
      expand_colors(in, n_pixels, out);
    }
  }

  /// Pixels without data count as samples of 0, which a palette may colour.
  void fill(Rgb& rgb) const {
    if (format_.color != PngColor::kPalette) return;
    for (std::size_t i = 0; i < rgb.pixels.size(); ++i) rgb.pixels[i] = palette_[i % 3];
  }

 private:
  void expand_packed(const std::uint8_t* in, std::size_t n_pixels, std::uint8_t* out) const {
    const auto depth = static_cast<unsigned>(format_.depth);
    const unsigned mask = (1u << depth) - 1;
    const unsigned grey_scale = 255 / mask;
    for (std::size_t i = 0; i < n_pixels; ++i) {
      const std::size_t bit = i * depth;
      const unsigned sample = in[bit / 8] >> (8 - depth - bit % 8) & mask;
      if (format_.color == PngColor::kPalette) {
        std::memcpy(out + 3 * i, &palette_[3u * sample], 3);
      } else {
        std::memset(out + 3 * i, static_cast<int>(sample * grey_scale), 3);
      }
    }
  }

  void expand_grey(const std::uint8_t* in, std::size_t n_pixels, std::uint8_t* out) const {
    for (std::size_t i = 0; i < n_pixels; ++i) {
      // Plain 16-bit grey is clipped, not scaled.
      const std::uint8_t grey = format_.depth == 8 ? in[i]
                                : in[2 * i] != 0   ? std::uint8_t{255}
                                                   : in[2 * i + 1];
      std::memset(out + 3 * i, grey, 3);
    }
  }

  void expand_colors(const std::uint8_t* in, std::size_t n_pixels, std::uint8_t* out) const {
    const auto sample = static_cast<std::size_t>(format_.depth / 8);
    const std::size_t pixel = sample * static_cast<std::size_t>(format_.channels());
    const std::size_t step = format_.color == PngColor::kGreyAlpha ? 0 : sample;
    for (std::size_t i = 0; i < n_pixels; ++i, in += pixel, out += 3) {
      out[0] = in[0];
      out[1] = in[step];
      out[2] = in[2 * step];
    }
  }

  PngFormat format_;
  Palette palette_;
};

/// The seven passes of Adam7; one pass over everything stands for no interlacing.
struct Pass {
  std::size_t x, y, dx, dy;
};
constexpr std::array<Pass, 7> kAdam7 = {{{0, 0, 8, 8},
                                         {4, 0, 8, 8},
                                         {0, 4, 4, 8},
                                         {2, 0, 4, 4},
                                         {0, 2, 2, 4},
                                         {1, 0, 2, 2},
                                         {0, 1, 1, 2}}};

/// What a decoding writes into.
struct Target {
  Rgb& rgb;
  PngTile tile;

  std::uint8_t* at(std::size_t x, std::size_t y) const {
    return rgb.pixels.data() + 3 * (y * static_cast<std::size_t>(rgb.width) + x);
  }
};

std::size_t row_bytes(const PngFormat& format, std::size_t n_pixels) {
  return (n_pixels * static_cast<std::size_t>(format.bits_per_pixel()) + 7) / 8;
}

std::size_t pixel_bytes(const PngFormat& format) {
  return row_bytes(format, 1);
}

void decode_plain(PngRows& rows, const PngFormat& format, const Expander& expander,
                  const Target& target) {
  const std::size_t n_bytes = row_bytes(format, target.tile.width);
  for (std::size_t y = 0; y < target.tile.height && !rows.ended(); ++y) {
    const auto row = rows.next(n_bytes, pixel_bytes(format), y == 0);
    expander.expand(row.data(), target.tile.width, target.at(target.tile.x, target.tile.y + y));
  }
}

/// The tile's offset is ignored here, as in Pillow.
void decode_interlaced(PngRows& rows, const PngFormat& format, const Expander& expander,
                       const Target& target) {
  std::vector<std::uint8_t> colors(3 * target.tile.width);
  for (const Pass& pass : kAdam7) {
    if (pass.x >= target.tile.width) continue;
    const std::size_t n_pixels = (target.tile.width - pass.x + pass.dx - 1) / pass.dx;
    for (std::size_t y = pass.y; y < target.tile.height; y += pass.dy) {
      if (rows.ended()) return;
      const auto row = rows.next(row_bytes(format, n_pixels), pixel_bytes(format), y == pass.y);
      expander.expand(row.data(), n_pixels, colors.data());
      for (std::size_t i = 0; i < n_pixels; ++i) {
        std::memcpy(target.at(pass.x + i * pass.dx, y), &colors[3 * i], 3);
      }
    }
  }
}

}  // namespace

Rgb decode_png(std::string_view bytes) {
  PngChunks chunks(bytes);
  check_claimed_size(chunks.width(), chunks.height());
  const Expander expander(chunks.format(), chunks.palette());
  const PngFormat format = chunks.format();
  Rgb rgb = black_rgb(chunks.width(), chunks.height());
  expander.fill(rgb);
  const Target target{rgb, chunks.tile()};
  PngRows rows(chunks);
  if (chunks.interlaced()) {
    decode_interlaced(rows, format, expander, target);
  } else {
    decode_plain(rows, format, expander, target);
  }
  chunks.read_rest();
  return rgb;
}

std::string png_library_version() {
  return std::string("zlib ") + zlibVersion();
}

}  // namespace jemm
