// libjpeg behind a source that suspends at the end of the bytes, as Pillow drives it.
#include "image/jpeg.h"

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <utility>

#include "image/jpeg_markers.h"

namespace jemm {
namespace {

constexpr int kMaxScans = 500;

/// What Pillow reads at a time. The end of a block shows: arithmetic decoding cannot wait for the
/// next.
constexpr std::size_t kBlockBytes = 65536;

/// libjpeg's state, where its errors jump to, and the bytes that it has not been shown yet.
struct Decompressor {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf on_error{};

  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  explicit Decompressor(std::string_view bytes);
  ~Decompressor() { jpeg_destroy_decompress(&info); }

  /// Shows the next block behind what is left of the last; false when there is none.
  bool show_more();
  void skip(std::size_t n_bytes);

 private:
  std::size_t hidden_bytes_ = 0;
  std::size_t to_skip_ = 0;
};

[[noreturn]] void jump_out(j_common_ptr info) {
  std::longjmp(static_cast<Decompressor*>(info->client_data)->on_error, 1);
}

void ignore_message(j_common_ptr) {}
void do_nothing(j_decompress_ptr) {}

boolean suspend(j_decompress_ptr) {
  return FALSE;
}

void skip_input(j_decompress_ptr info, long n_bytes) {
  if (n_bytes > 0)
    static_cast<Decompressor*>(info->client_data)->skip(static_cast<std::size_t>(n_bytes));
}

void limit_scans(j_common_ptr info) {
  if (static_cast<Decompressor*>(info->client_data)->info.input_scan_number > kMaxScans)
    jump_out(info);
}

Decompressor::Decompressor(std::string_view bytes) : hidden_bytes_(bytes.size()) {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = jump_out;
  errors.output_message = ignore_message;
  info.client_data = this;
  if (setjmp(on_error) != 0) throw ImageFault::kUndecodable;  // only without memory
  jpeg_create_decompress(&info);
  source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  source.init_source = do_nothing;
  source.fill_input_buffer = suspend;
  source.skip_input_data = skip_input;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = do_nothing;
  info.src = &source;
  progress.progress_monitor = limit_scans;
  info.progress = &progress;
}

bool Decompressor::show_more() {
  if (hidden_bytes_ == 0) return false;
  const std::size_t n = std::min(kBlockBytes, hidden_bytes_);
  hidden_bytes_ -= n;
  source.bytes_in_buffer += n;
  skip(std::exchange(to_skip_, 0));
  return true;
}

void Decompressor::skip(std::size_t n_bytes) {
  const std::size_t now = std::min(n_bytes, source.bytes_in_buffer);
  source.next_input_byte += now;
  source.bytes_in_buffer -= now;
  to_skip_ = n_bytes - now;
}

// The steps below run between setjmp and longjmp: no object with a destructor lives in them. Each
// asks for more bytes as long as there are some, and is false when they end or libjpeg gives up.

bool read_header(Decompressor& decompressor) {
  if (setjmp(decompressor.on_error) != 0) return false;
  while (true) {
    const int status = jpeg_read_header(&decompressor.info, FALSE);
    if (status == JPEG_HEADER_OK) return true;
    if (status == JPEG_SUSPENDED && !decompressor.show_more()) return false;
  }
}

bool start(Decompressor& decompressor) {
  if (setjmp(decompressor.on_error) != 0) return false;
  while (jpeg_start_decompress(&decompressor.info) == FALSE) {
    if (!decompressor.show_more()) return false;
  }
  return true;
}

bool read_row(Decompressor& decompressor, std::uint8_t* row) {
  if (setjmp(decompressor.on_error) != 0) return false;
  JSAMPROW rows[1] = {row};
  while (jpeg_read_scanlines(&decompressor.info, rows, 1) == 0) {
    if (!decompressor.show_more()) return false;
  }
  return true;
}

/// Bytes that end without an EOI are no fault once every row is there.
bool finish(Decompressor& decompressor) {
  if (setjmp(decompressor.on_error) != 0) return false;
  jpeg_finish_decompress(&decompressor.info);
  return true;
}

void require(bool condition) {
  if (!condition) throw ImageFault::kUndecodable;
}

J_COLOR_SPACE output_space(int n_components) {
  return n_components == 1 ? JCS_GRAYSCALE : n_components == 3 ? JCS_RGB : JCS_CMYK;
}

void expand_grey(const std::uint8_t* in, std::size_t n_pixels, std::uint8_t* out) {
  for (std::size_t i = 0; i < n_pixels; ++i) out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
}

/// a * b / 255, rounded as Pillow rounds it.
int multiply(int a, int b) {
  const int t = a * b + 128;
  return (t + (t >> 8)) >> 8;
}

/// Channel = K - (255 - C) K / 255 on libjpeg's raw output, which Pillow takes for inverted.
void expand_cmyk(const std::uint8_t* in, std::size_t n_pixels, std::uint8_t* out) {
  for (std::size_t i = 0; i < n_pixels; ++i) {
    const int k = in[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const int value = k - multiply(255 - in[4 * i + c], k);
      out[3 * i + c] = static_cast<std::uint8_t>(value < 0 ? 0 : value);
    }
  }
}

}  // namespace

Rgb decode_jpeg(std::string_view bytes) {
  const JpegHeader header = read_jpeg_header(bytes);
  if (header.is_mpo) throw ImageFault::kOtherKind;
  check_claimed_size(header.width, header.height);
  Decompressor decompressor(bytes);
  require(read_header(decompressor));
  jpeg_decompress_struct& info = decompressor.info;
  // Pillow trusts its own reading of the header and would write past its rows.
  require(info.image_width == header.width && info.image_height == header.height);
  info.out_color_space = output_space(header.n_components);
  require(start(decompressor) && info.output_components == header.n_components);
  Rgb rgb = black_rgb(header.width, header.height);
  const auto n_components = static_cast<std::size_t>(header.n_components);
  std::vector<std::uint8_t> samples(n_components == 3 ? 0 : n_components * header.width);
  for (std::uint32_t y = 0; y < header.height; ++y) {
    std::uint8_t* out = rgb.pixels.data() + std::size_t{y} * header.width * 3;
    require(read_row(decompressor, n_components == 3 ? out : samples.data()));
    if (n_components == 1) expand_grey(samples.data(), header.width, out);
    if (n_components == 4) expand_cmyk(samples.data(), header.width, out);
  }
  require(finish(decompressor));
  return rgb;
}

#define JEMM_QUOTE(x) #x
#define JEMM_QUOTE_VALUE(x) JEMM_QUOTE(x)

std::string jpeg_library_version() {
#ifdef LIBJPEG_TURBO_VERSION
  return "libjpeg-turbo " JEMM_QUOTE_VALUE(LIBJPEG_TURBO_VERSION);
#else
  return "libjpeg " JEMM_QUOTE_VALUE(JPEG_LIB_VERSION);
#endif
}

}  // namespace jemm
