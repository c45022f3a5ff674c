// What Pillow's PngImagePlugin demands of each chunk.
#include "image/png_chunks.h"

#include <zlib.h>

#include <algorithm>

#include "image/bytes.h"
#include "image/png_text.h"

namespace jemm {
namespace {

constexpr std::size_t kPieceBytes = 65536;
constexpr std::uint64_t kMaxTextLength = 64 << 20;
/// Ours: Pillow inflates any number of 1 MiB profiles, at some cost in time.
constexpr std::uint64_t kMaxInflatedBytes = 256 << 20;

bool is_word(std::string_view type) {
  return std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void require(bool condition) {
  if (!condition) throw ImageFault::kUndecodable;
}

/// Least length of a chunk's body; the others may be empty.
std::size_t least_length(std::string_view type) {
  if (type == "sRGB") return 1;
  if (type == "gAMA") return 4;
  if (type == "pHYs") return 9;
  return 0;
}

bool valid_format(int depth, int color) {
  switch (color) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

}  // namespace

int PngFormat::channels() const {
  switch (color) {
    case PngColor::kRgb:
      return 3;
    case PngColor::kGreyAlpha:
      return 2;
    case PngColor::kRgba:
      return 4;
    case PngColor::kGrey:
    case PngColor::kPalette:
      break;
  }
  return 1;
}

PngChunks::PngChunks(std::string_view bytes) : bytes_(bytes) {
  while (true) {
    const std::optional<Chunk> chunk = next_chunk();
    require(chunk.has_value());
    const Step step = read_chunk(*chunk);
    if (step != Step::kGoOn) {
      has_data_ = step == Step::kImageData;
      break;
    }
    check_checksum(*chunk);
  }
  require(format_.depth != 0);
  palette_known_ = palette_.has_value();
  // A default image outside the animation counts as one more frame.
  const bool default_image = has_data_ && n_frames_ && !frame_;
  animated_ = std::uint64_t{n_frames_.value_or(1)} + (default_image ? 1 : 0) > 1;
  header_done_ = true;
}

PngTile PngChunks::tile() const {
  require(has_data_ && tile_.width > 0 && tile_.height > 0);
  require(tile_.x + tile_.width <= width_ && tile_.y + tile_.height <= height_);
  return tile_;
}

/// Length and type; nothing when the file ends in them or the type is no word.
std::optional<PngChunks::Chunk> PngChunks::next_chunk() {
  if (position_ > bytes_.size() - 8) return std::nullopt;
  const std::string_view type = bytes_.substr(position_ + 4, 4);
  if (!is_word(type)) return std::nullopt;
  position_ += 8;
  return Chunk{type, position_, u32_big(bytes_, position_ - 8)};
}

std::string_view PngChunks::body(const Chunk& chunk) {
  require(chunk.length <= bytes_.size() - chunk.begin);
  position_ = chunk.begin + static_cast<std::size_t>(chunk.length);
  return bytes_.substr(chunk.begin, static_cast<std::size_t>(chunk.length));
}

void PngChunks::check_checksum(const Chunk& chunk) {
  const auto* start = reinterpret_cast<const Bytef*>(bytes_.data() + chunk.begin - 4);
  const uLong sum = crc32(0, start, static_cast<uInt>(chunk.length + 4));
  require(u32_big(bytes_, position_) == sum);
  position_ += 4;
}

PngChunks::Step PngChunks::read_chunk(const Chunk& chunk) {
  const std::string_view type = chunk.type;
  if (type == "IDAT") {
    start_image_data(chunk.length);
    return Step::kImageData;
  }
  if (type == "fdAT") {
    read_frame_data(chunk);
    return Step::kImageData;
  }
  if (type == "IEND") return Step::kEnd;
  const std::string_view content = body(chunk);
  require(content.size() >= least_length(type));
  if (type == "IHDR") {
    read_header(content);
  } else if (type == "PLTE") {
    if (format_.depth != 0 && format_.color == PngColor::kPalette) palette_ = content;
  } else if (type == "tRNS") {
    read_transparency(content);
  } else if (type == "cHRM") {
    require(content.size() % 4 == 0);
  } else if (type == "acTL") {
    read_animation_control(content);
  } else if (type == "fcTL") {
    read_frame_control(content);
  } else if (type == "iCCP" || type == "tEXt" || type == "zTXt" || type == "iTXt") {
    read_text(type, content);
  }
  return Step::kGoOn;
}

void PngChunks::read_header(std::string_view body) {
  require(body.size() >= 13);
  width_ = u32_big(body, 0);
  height_ = u32_big(body, 4);
  const int depth = byte_at(body, 8);
  const int color = byte_at(body, 9);
  // An impossible pair leaves the format as it was, as does a second header behind the image data.
  if (valid_format(depth, color) && !header_done_) {
    format_ = {depth, static_cast<PngColor>(color)};
  }
  if (byte_at(body, 12) != 0) interlaced_ = true;
  require(byte_at(body, 11) == 0);
}

void PngChunks::read_transparency(std::string_view body) {
  if (format_.depth == 0) return;
  switch (format_.color) {
    case PngColor::kPalette: {
      // 255s around one 0 name a single entry; anything else is a list of alphas.
      const std::size_t zero = body.find('\0');
      const auto opaque = [](char c) { return c == '\xFF'; };
      const bool simple =
          zero != body.npos &&
          std::all_of(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(zero), opaque) &&
          std::all_of(body.begin() + static_cast<std::ptrdiff_t>(zero) + 1, body.end(), opaque);
      transparent_index_ = simple;
      break;
    }
    case PngColor::kGrey:
      require(body.size() >= 2);
      break;
    case PngColor::kRgb:
      require(body.size() >= 6);
      break;
    case PngColor::kGreyAlpha:
    case PngColor::kRgba:
      break;
  }
}

void PngChunks::read_text(std::string_view type, std::string_view body) {
  const PngTextCost cost = read_png_text(type, body);
  text_length_ += cost.text_length;
  inflated_bytes_ += cost.inflated_bytes;
  require(text_length_ <= kMaxTextLength && inflated_bytes_ <= kMaxInflatedBytes);
}

void PngChunks::read_animation_control(std::string_view body) {
  require(body.size() >= 8);
  const std::uint32_t count = u32_big(body, 0);
  if (n_frames_) {
    n_frames_.reset();
  } else if (count != 0 && count <= 0x80000000u) {
    n_frames_ = count;
  }
}

void PngChunks::read_frame_control(std::string_view body) {
  require(body.size() >= 26);
  const std::uint32_t number = u32_big(body, 0);
  require(sequence_ ? std::uint64_t{*sequence_} + 1 == number : number == 0);
  sequence_ = number;
  const PngTile frame{u32_big(body, 12), u32_big(body, 16), u32_big(body, 4), u32_big(body, 8)};
  require(frame.x + frame.width <= width_ && frame.y + frame.height <= height_);
  frame_ = frame;
}

void PngChunks::start_image_data(std::uint64_t length) {
  tile_ = frame_ ? *frame_ : PngTile{0, 0, width_, height_};
  data_left_ = length;
}

/// fdAT is image data behind a sequence number.
void PngChunks::read_frame_data(const Chunk& chunk) {
  require(chunk.length >= 4 && bytes_.size() - chunk.begin >= 4);
  const std::uint32_t number = u32_big(bytes_, chunk.begin);
  require(sequence_ && std::uint64_t{*sequence_} + 1 == number);
  sequence_ = number;
  position_ = chunk.begin + 4;
  start_image_data(chunk.length - 4);
}

std::string_view PngChunks::next_piece() {
  while (data_left_ == 0) {
    skip_checksum();
    const std::size_t before = position_;
    const std::optional<Chunk> chunk = next_chunk();
    require(chunk.has_value());
    if (chunk->type == "fdAT") {
      read_frame_data(*chunk);
    } else if (chunk->type == "IDAT" || chunk->type == "DDAT") {
      data_left_ = chunk->length;
    } else {
      position_ = before;
      return {};
    }
  }
  if (at_end()) return {};
  const std::uint64_t wanted = std::min<std::uint64_t>(kPieceBytes, data_left_);
  const std::string_view piece = bytes_.substr(position_, static_cast<std::size_t>(wanted));
  data_left_ -= wanted;
  position_ += piece.size();
  return piece;
}

std::optional<std::string> PngChunks::whole_stream() const {
  std::string stream;
  std::size_t at = position_;
  std::uint64_t length = data_left_;
  while (true) {
    if (bytes_.size() - at < length || bytes_.size() - at - length < 12) return std::nullopt;
    stream += bytes_.substr(at, static_cast<std::size_t>(length));
    at += static_cast<std::size_t>(length) + 4;
    const std::string_view type = bytes_.substr(at + 4, 4);
    if (type == "fdAT" || type == "DDAT") return std::nullopt;
    if (type != "IDAT") return stream;
    length = u32_big(bytes_, at);
    at += 8;
  }
}

void PngChunks::read_rest() {
  position_ += static_cast<std::size_t>(std::min<std::uint64_t>(data_left_, bytes_.size()));
  while (true) {
    skip_checksum();
    const std::optional<Chunk> chunk = next_chunk();
    if (!chunk || chunk->type == "IEND") break;
    if (chunk->type == "fcTL" && animated_) break;
    if (read_chunk(*chunk) == Step::kImageData) {
      const std::uint64_t left = chunk->begin + chunk->length - position_;
      require(position_ <= bytes_.size() && left <= bytes_.size() - position_);
      position_ += static_cast<std::size_t>(left);
    }
  }
  check_unrepresentable_transparency();
}

/// Pillow carries a single transparent entry over to RGB by way of the palette, and fails without
/// one.
void PngChunks::check_unrepresentable_transparency() const {
  require(!transparent_index_ || format_.color != PngColor::kPalette || palette_known_);
}

}  // namespace jemm
