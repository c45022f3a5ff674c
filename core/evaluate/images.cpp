#include "evaluate/images.h"

#include <algorithm>
#include <future>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "image/decode.h"
#include "image/envelope.h"

namespace jemm {
namespace {

/// Calls work(i) for every i < n at the same time. Of several exceptions the one of the lowest i is
/// thrown, when all are done.
template <typename Work>
void at_once(std::size_t n, Work work) {
  if (n == 0) return;
  std::vector<std::future<void>> others;  // a future waits for its thread when it is destroyed
  for (std::size_t i = 1; i < n; ++i) others.push_back(std::async(work, i));
  work(0);
  for (std::future<void>& other : others) other.get();
}

void decode(std::size_t index, std::string_view bytes, ImageHashes hashes, EncodedImage& image) {
  Rgb rgb = decode_image(index, bytes);
  image.width = rgb.width;
  image.height = rgb.height;
  if (hashes == ImageHashes::kCompute) image.rgb_sha256 = rgb_sha256(rgb);
  image.rgb = std::move(rgb);
}

}  // namespace

EncodedImagePtr ImageCache::find(const std::string& file_sha256) const {
  const auto at = known_.find(file_sha256);
  return at == known_.end() ? nullptr : at->second.lock();
}

void ImageCache::add(const EncodedImagePtr& image) {
  if (known_.size() >= prune_size_) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    prune_size_ = 2 * known_.size() + 64;
  }
  known_[image->file_sha256] = image;
}

void ImageCache::keep(const EncodedImagePtr& image) {
  kept_.push_back(image);
  kept_bytes_ += image->rows->size_bytes();
  while (kept_bytes_ > max_bytes_) {
    kept_bytes_ -= kept_.front()->rows->size_bytes();
    kept_.pop_front();
  }
}

std::vector<EncodedImagePtr> open_images(const Request& request, std::vector<std::string> files,
                                         ImageHashes hashes, ImageCache& cache) {
  struct Undecoded {
    std::size_t index;
    std::string bytes;
    EncodedImage* image;
  };
  const std::size_t n_own = request.image_count(files.size());
  std::vector<EncodedImagePtr> images;
  std::vector<Undecoded> undecoded;
  std::optional<Error>
      refused;  // for its envelope; what is wrong with an earlier image comes first
  for (std::size_t i = 0; i < n_own + files.size(); ++i) {
    std::string bytes;
    try {
      bytes = i < n_own ? decode_envelope(i, request.image(i)) : std::move(files[i - n_own]);
    } catch (const Error& error) {
      refused = error;
      break;
    }
    const std::string file_sha256 = sha256_hex(bytes);
    EncodedImagePtr image = cache.find(file_sha256);
    if (image == nullptr) {
      image = std::make_shared<EncodedImage>();
      image->file_sha256 = file_sha256;
      cache.add(image);
      undecoded.push_back({i, std::move(bytes), image.get()});
    }
    images.push_back(std::move(image));
  }
  at_once(undecoded.size(), [&](std::size_t i) {
    decode(undecoded[i].index, undecoded[i].bytes, hashes, *undecoded[i].image);
  });
  if (refused) throw *refused;
  return images;
}

void cut_images(std::span<const EncodedImagePtr> images, const PreprocessorConfig& config) {
  std::vector<EncodedImage*> uncut;
  for (const EncodedImagePtr& image : images) {
    const bool seen = std::find(uncut.begin(), uncut.end(), image.get()) != uncut.end();
    if (!image->is_cut() && !seen) uncut.push_back(image.get());
  }
  at_once(uncut.size(), [&](std::size_t i) {
    uncut[i]->patches = preprocess_image(std::exchange(uncut[i]->rgb, {}), config);
  });
}

}  // namespace jemm
