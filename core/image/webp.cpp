// The demuxer for the canvas and the first frame, the decoder straight into the canvas.
#include "image/webp.h"

#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

namespace jemm {
namespace {

struct DemuxDelete {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DemuxDelete>;

struct Frame {
  WebPIterator iterator{};
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { WebPDemuxReleaseIterator(&iterator); }
};

void require(bool condition) {
  if (!condition) throw ImageFault::kUndecodable;
}

/// WebPAnimDecoder would give the same first canvas as RGBA, by way of two more canvases.
void decode_frame(const WebPIterator& frame, Rgb& canvas) {
  require(frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 && frame.height > 0);
  require(frame.x_offset + frame.width <= canvas.width);
  require(frame.y_offset + frame.height <= canvas.height);
  WebPDecoderConfig config;
  require(WebPInitDecoderConfig(&config) != 0);
  const int stride = 3 * canvas.width;
  const std::size_t begin =
      static_cast<std::size_t>(frame.y_offset) * static_cast<std::size_t>(stride) +
      3 * static_cast<std::size_t>(frame.x_offset);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = canvas.pixels.data() + begin;
  config.output.u.RGBA.stride = stride;
  config.output.u.RGBA.size = canvas.pixels.size() - begin;
  const VP8StatusCode status = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  WebPFreeDecBuffer(&config.output);
  require(status == VP8_STATUS_OK);
}

}  // namespace

Rgb decode_webp(std::string_view bytes) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  const Demuxer demuxer(WebPDemux(&data));
  require(demuxer != nullptr);
  const std::uint32_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::uint32_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  check_claimed_size(width, height);
  Frame frame;
  require(WebPDemuxGetFrame(demuxer.get(), 1, &frame.iterator) != 0);
  Rgb canvas = black_rgb(width, height);
  decode_frame(frame.iterator, canvas);
  return canvas;
}

std::string webp_library_version() {
  const auto v = static_cast<unsigned>(WebPGetDecoderVersion());
  return fmt::format("libwebp {}.{}.{}", v >> 16, v >> 8 & 0xFF, v & 0xFF);
}

}  // namespace jemm
