// The chunks of a PNG: what a file must have to be accepted, its header, and its compressed pixels.
// Knows no pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "image/rgb.h"

namespace jemm {

/// Values as in IHDR.
enum class PngColor : std::uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6 };

/// How the samples of a pixel are stored; depth 0 stands for no valid IHDR so far.
struct PngFormat {
  int depth = 0;  // 1, 2, 4, 8, 16
  PngColor color = PngColor::kGrey;

  int channels() const;
  int bits_per_pixel() const { return depth * channels(); }
};

/// The part of the canvas that the pixels cover; all of it, except in an APNG whose first frame is
/// the default image.
struct PngTile {
  std::uint64_t x = 0, y = 0, width = 0, height = 0;
};

/// Walks the chunks in Pillow's three steps: up to the image data, the image data, the rest. Chunks
/// before the image data must be sound, checksums included; behind it only some faults count.
/// Every member throws ImageFault::kUndecodable.
class PngChunks {
 public:
  /// `bytes` starts with the signature and outlives the object. Reads up to the image data.
  explicit PngChunks(std::string_view bytes);

  std::uint64_t width() const { return width_; }
  std::uint64_t height() const { return height_; }
  const PngFormat& format() const { return format_; }
  bool interlaced() const { return interlaced_; }
  /// The body of PLTE: red, green, blue, red, ...
  std::string_view palette() const { return palette_.value_or(std::string_view()); }
  /// Where the image data belongs. Throws when the file has none, or when it leaves the canvas.
  PngTile tile() const;

  /// The next piece of compressed pixels, at most 65,536 bytes, never across two chunks; empty when
  /// there is no more. The sizes matter: what follows the last row in its own piece is still
  /// checked.
  std::string_view next_piece();
  /// All compressed pixels at once, when whole IDAT chunks hold them and another chunk follows.
  /// Does not move on: read_rest skips them, and nothing but a whole IDAT can be met on the way.
  std::optional<std::string> whole_stream() const;
  /// Reads what follows the image data.
  void read_rest();

 private:
  enum class Step { kGoOn, kImageData, kEnd };
  struct Chunk {
    std::string_view type;
    std::size_t begin = 0;  ///< of the body
    std::uint64_t length = 0;
  };

  bool at_end() const { return position_ >= bytes_.size(); }
  std::optional<Chunk> next_chunk();
  std::string_view body(const Chunk& chunk);
  void check_checksum(const Chunk& chunk);
  void skip_checksum() { position_ += 4; }

  Step read_chunk(const Chunk& chunk);
  void read_header(std::string_view body);
  void read_transparency(std::string_view body);
  void read_text(std::string_view type, std::string_view body);
  void read_frame_control(std::string_view body);
  void read_animation_control(std::string_view body);
  void read_frame_data(const Chunk& chunk);
  void start_image_data(std::uint64_t length);
  void check_unrepresentable_transparency() const;

  std::string_view bytes_;
  std::size_t position_ = 8;
  std::uint64_t width_ = 0, height_ = 0;
  PngFormat format_;
  bool interlaced_ = false;
  std::optional<std::string_view> palette_;
  bool palette_known_ = false;      // when the image data began
  bool transparent_index_ = false;  // tRNS names a single palette entry
  std::optional<PngTile> frame_;    // of the last fcTL
  std::optional<std::uint32_t> n_frames_;
  std::optional<std::uint32_t> sequence_;
  bool animated_ = false;  // as known when the image data began
  bool header_done_ = false;
  bool has_data_ = false;
  PngTile tile_;
  std::uint64_t data_left_ = 0;  // of the current chunk of image data
  std::uint64_t text_length_ = 0;
  std::uint64_t inflated_bytes_ = 0;
};

}  // namespace jemm
