// Rounding to multiples of 32, as Transformers' smart_resize does it.
#include "image/size.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace jemm {
namespace {

using nlohmann::json;

constexpr std::int64_t kFactor = kPatchSize * kMergeSize;
constexpr double kMaxRatio = 200;
/// Keeps every later product of sizes within bounds.
constexpr std::int64_t kMaxConfigPixels = std::int64_t{1} << 28;

class Reader {
 public:
  Reader(const json& root, const std::string& file) : root_(root), file_(file) {}

  /// Refuses any other value; a key that is absent counts as `absent`.
  void expect(const char* key, const json& wanted, const json& absent) const {
    const json value = root_.value(key, absent);
    if (value != wanted) refuse(key, value, wanted.dump());
  }
  std::int64_t pixels(const char* key) const {
    const json size = root_.value("size", json::object());
    const json value = size.is_object() ? size.value(key, json()) : json();
    if (!value.is_number_integer() || value < 1 || value > kMaxConfigPixels) {
      refuse(std::string("size.") + key, value, fmt::format("1 to {}", kMaxConfigPixels));
    }
    return value.get<std::int64_t>();
  }

 private:
  [[noreturn]] void refuse(const std::string& key, const json& value,
                           const std::string& wanted) const {
    fail(ErrorKind::kInput, "{}: {} is {}, but only {} is supported", file_, key,
         value.dump(-1, ' ', false, json::error_handler_t::replace), wanted);
  }

  const json& root_;
  const std::string& file_;
};

/// repr() of a Python float below 1e16.
std::string python_float(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::int64_t multiple(double units) {
  return static_cast<std::int64_t>(units) * kFactor;
}

}  // namespace

PreprocessorConfig parse_preprocessor_config(std::string_view text, const std::string& file) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) fail(ErrorKind::kInput, "{}: not a JSON object", file);
  const Reader reader(root, file);
  // The class's own defaults are those of Qwen2-VL, which are not supported: absent is refused.
  reader.expect("patch_size", kPatchSize, nullptr);
  reader.expect("merge_size", kMergeSize, kMergeSize);
  reader.expect("temporal_patch_size", kTemporalPatchSize, kTemporalPatchSize);
  reader.expect("image_mean", {0.5, 0.5, 0.5}, nullptr);
  reader.expect("image_std", {0.5, 0.5, 0.5}, nullptr);
  for (const char* step : {"do_convert_rgb", "do_resize", "do_rescale", "do_normalize"}) {
    reader.expect(step, true, true);
  }
  reader.expect("resample", 3, 3);
  reader.expect("rescale_factor", 1.0 / 255, 1.0 / 255);
  reader.expect("min_pixels", nullptr, nullptr);
  reader.expect("max_pixels", nullptr, nullptr);
  const PreprocessorConfig config{reader.pixels("shortest_edge"), reader.pixels("longest_edge")};
  if (config.min_pixels > config.max_pixels) {
    fail(ErrorKind::kInput, "{}: size.shortest_edge {} is above size.longest_edge {}", file,
         config.min_pixels, config.max_pixels);
  }
  return config;
}

ImageSize resized_size(ImageSize original, const PreprocessorConfig& config) {
  const auto width = static_cast<double>(original.width);
  const auto height = static_cast<double>(original.height);
  const double ratio = std::max(width, height) / std::min(width, height);
  if (ratio > kMaxRatio) {
    throw Error::request(
        "ValueError", "absolute aspect ratio must be smaller than 200, got " + python_float(ratio));
  }
  constexpr auto factor = static_cast<double>(kFactor);
  // nearbyint rounds halves to even, as Python's round.
  const ImageSize rounded{multiple(std::nearbyint(width / factor)),
                          multiple(std::nearbyint(height / factor))};
  const std::int64_t n_pixels = rounded.width * rounded.height;
  if (n_pixels > config.max_pixels) {
    const double beta = std::sqrt(width * height / static_cast<double>(config.max_pixels));
    return {std::max(kFactor, multiple(std::floor(width / beta / factor))),
            std::max(kFactor, multiple(std::floor(height / beta / factor)))};
  }
  if (n_pixels < config.min_pixels) {
    const double beta = std::sqrt(static_cast<double>(config.min_pixels) / (width * height));
    return {multiple(std::ceil(width * beta / factor)),
            multiple(std::ceil(height * beta / factor))};
  }
  return rounded;
}

}  // namespace jemm
