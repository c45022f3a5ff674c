// From the samples of a PNG's rows to RGB, interlaced or not.
#include "image/png.h"

#include <zlib.h>

#if defined(JEMM_LIBDEFLATE)
#include <libdeflate.h>
#endif

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
    if (pixel == 3) {
      std::memcpy(out, in, 3 * n_pixels);
      return;
    }
    for (std::size_t i = 0; i < n_pixels; ++i, in += pixel, out += 3) {
      out[0] = in[0];
      out[1] = in[step];
      out[2] = in[2 * step];
    }
  }

  PngFormat format_;
  Palette palette_;
};

/// The seven passes of Adam7; one over everything, for no interlacing, is made below.
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

std::size_t row_bytes(const PngFormat& format, std::size_t n_pixels) {
  return (n_pixels * static_cast<std::size_t>(format.bits_per_pixel()) + 7) / 8;
}

/// One run of rows: the whole picture, or a pass of an interlaced one.
struct RowRun {
  Pass pass;
  std::size_t n_pixels = 0;  // in a row
  std::size_t n_rows = 0;
};

/// Runs without pixels are left out.
std::vector<RowRun> row_runs(const PngTile& tile, bool interlaced) {
  if (!interlaced) return {{{0, 0, 1, 1}, tile.width, tile.height}};
  const auto count = [](std::size_t size, std::size_t first, std::size_t step) {
    return size <= first ? 0 : (size - first + step - 1) / step;
  };
  std::vector<RowRun> runs;
  for (const Pass& pass : kAdam7) {
    const RowRun run{pass, count(tile.width, pass.x, pass.dx), count(tile.height, pass.y, pass.dy)};
    if (run.n_pixels > 0 && run.n_rows > 0) runs.push_back(run);
  }
  return runs;
}

std::size_t total_bytes(const std::vector<RowRun>& runs, const PngFormat& format) {
  std::size_t total = 0;
  for (const RowRun& run : runs) total += run.n_rows * (1 + row_bytes(format, run.n_pixels));
  return total;
}

/// `place`: the corner that the pass's offset counts from.
void decode_run(PngRows& rows, const RowRun& run, const Expander& expander, const PngFormat& format,
                Rgb& rgb, PngTile place) {
  std::vector<std::uint8_t> colors(3 * run.n_pixels);
  const std::size_t n_bytes = row_bytes(format, run.n_pixels);
  for (std::size_t i = 0; i < run.n_rows && !rows.ended(); ++i) {
    const auto row = rows.next(n_bytes, row_bytes(format, 1), i == 0);
    const std::size_t y = place.y + run.pass.y + i * run.pass.dy;
    std::uint8_t* out =
        rgb.pixels.data() + 3 * (y * static_cast<std::size_t>(rgb.width) + place.x + run.pass.x);
    if (run.pass.dx == 1) {
      expander.expand(row.data(), run.n_pixels, out);
      continue;
    }
    expander.expand(row.data(), run.n_pixels, colors.data());
    for (std::size_t k = 0; k < run.n_pixels; ++k) {
      std::memcpy(out + 3 * k * run.pass.dx, &colors[3 * k], 3);
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
  PngTile tile = chunks.tile();
  const std::vector<RowRun> runs = row_runs(tile, chunks.interlaced());
  PngRows rows(chunks, total_bytes(runs, format));
  if (chunks.interlaced()) tile.x = tile.y = 0;  // Pillow puts such a frame at the corner
  for (const RowRun& run : runs) decode_run(rows, run, expander, format, rgb, tile);
  chunks.read_rest();
  return rgb;
}

std::string png_library_version() {
  std::string version = std::string("zlib ") + zlibVersion();
#if defined(JEMM_LIBDEFLATE)
  version += " with libdeflate " LIBDEFLATE_VERSION_STRING;
#endif
  return version;
}

}  // namespace jemm
