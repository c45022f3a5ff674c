#include "bench/sweep.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/error.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxValues = 64;
constexpr std::int64_t kMaxImages = 4;
constexpr std::int64_t kMaxSide = 8192;
constexpr std::int64_t kMaxPixels = std::int64_t{4096} * 4096;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// A whole number without sign, or -1.
std::int64_t number(std::string_view text) {
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [at, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && at == end && !text.starts_with('-') ? value : -1;
}

class SweepParser {
 public:
  SweepParser(std::string_view text, const SweepRange& range) : text_(text), range_(range) {}

  std::vector<std::int64_t> run() {
    for (const std::string_view part : split(text_, ',')) add_part(part);
    return std::move(values_);
  }

 private:
  [[noreturn]] void refuse() const {
    fail(ErrorKind::kUsage,
         "{} takes numbers from {} to {} like 98,278,512 or 64-512+64 or 64-4096*2, not {}",
         range_.option, range_.lowest, range_.highest, text_);
  }

  void add_part(std::string_view part) {
    const std::size_t dash = part.find('-');
    if (dash == std::string_view::npos) return add(number(part));
    const std::string_view rest = part.substr(dash + 1);
    const std::size_t sign = rest.find_first_of("+*");
    const bool multiplies = sign != std::string_view::npos && rest[sign] == '*';
    const std::int64_t step = sign == std::string_view::npos ? 1 : number(rest.substr(sign + 1));
    const std::int64_t first = number(part.substr(0, dash)), last = number(rest.substr(0, sign));
    if (step < (multiplies ? 2 : 1) || step > range_.highest || last < first || first < 1) {
      refuse();
    }
    for (std::int64_t value = first; value <= last;
         value = multiplies ? value * step : value + step)
      add(value);
  }

  void add(std::int64_t value) {
    if (value < range_.lowest || value > range_.highest) refuse();
    if (std::find(values_.begin(), values_.end(), value) != values_.end()) return;
    if (values_.size() == kMaxValues) {
      fail(ErrorKind::kUsage, "{} {} has more than {} values", range_.option, text_, kMaxValues);
    }
    values_.push_back(value);
  }

  std::string_view text_;
  const SweepRange& range_;
  std::vector<std::int64_t> values_;
};

ImageSet parse_image_set(std::string_view text) {
  if (text == "0") return {};
  const std::vector<std::string_view> parts = split(text, 'x');
  ImageSet images{.width = number(parts[0]),
                  .height = parts.size() > 1 ? number(parts[1]) : -1,
                  .count = parts.size() > 2 ? number(parts[2]) : 1};
  const auto is_side = [](std::int64_t side) { return side >= 1 && side <= kMaxSide; };
  if (parts.size() > 3 || !is_side(images.width) || !is_side(images.height) ||
      images.width * images.height > kMaxPixels || images.count < 1 || images.count > kMaxImages) {
    fail(ErrorKind::kUsage,
         "--images takes sizes like 1280x800 or 640x480x4 (at most {} images of sides to {} and "
         "{} pixels) or 0, not {}",
         kMaxImages, kMaxSide, kMaxPixels, text);
  }
  return images;
}

}  // namespace

std::vector<std::int64_t> parse_sweep(std::string_view text, const SweepRange& range) {
  return SweepParser(text, range).run();
}

std::string image_set_text(const ImageSet& images) {
  if (images.count == 0) return "0";
  std::string text = fmt::format("{}x{}", images.width, images.height);
  if (images.count > 1) text += fmt::format("x{}", images.count);
  return text;
}

std::vector<ImageSet> parse_images(std::string_view text) {
  std::vector<ImageSet> sets;
  for (const std::string_view part : split(text, ',')) {
    const ImageSet images = parse_image_set(part);
    if (std::find(sets.begin(), sets.end(), images) == sets.end()) sets.push_back(images);
    if (sets.size() > kMaxValues) {
      fail(ErrorKind::kUsage, "--images has more than {} values", kMaxValues);
    }
  }
  return sets;
}

}  // namespace jemm
