#include "evaluate/images.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "image/decode.h"
#include "image/envelope.h"

namespace jemm {
namespace {

void open_image(std::size_t index, const std::string& bytes, ImageHashes hashes,
                const PreprocessorConfig* config, EncodedImage& image) {
  {
    const StageTimer timer(image.decode_ms);
    image.rgb = decode_image(index, bytes);
    image.width = image.rgb.width;
    image.height = image.rgb.height;
    if (hashes == ImageHashes::kCompute) image.rgb_sha256 = rgb_sha256(image.rgb);
  }
  if (config == nullptr) return;
  const StageTimer timer(image.cut_ms);
  try {
    image.patches = preprocess_image(std::exchange(image.rgb, {}), *config);
  } catch (const Error& error) {
    image.uncuttable = error;
  }
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

std::size_t OpeningImages::n_new() const {
  return static_cast<std::size_t>(
      std::count_if(images.begin(), images.end(), [](const Image& image) { return image.is_new; }));
}

OpeningImages start_images(const Request& request, std::vector<std::string> files,
                           ImageHashes hashes, const PreprocessorConfig* config,
                           ImageCache& cache) {
  const std::size_t n_own = request.image_count(files.size());
  OpeningImages opening;
  for (std::size_t i = 0; i < n_own + files.size(); ++i) {
    std::string bytes;
    try {
      bytes = i < n_own ? decode_envelope(i, request.image(i)) : std::move(files[i - n_own]);
    } catch (const Error& error) {
      opening.refused = error;
      break;
    }
    const std::string file_sha256 = sha256_hex(bytes);
    EncodedImagePtr image = cache.find(file_sha256);
    if (image != nullptr) {
      opening.images.push_back({std::move(image), std::move(bytes), false});
      continue;
    }
    image = std::make_shared<EncodedImage>();
    image->file_sha256 = file_sha256;
    cache.add(image);
    image->opening = std::make_shared<ImageOpening>(
        [i, bytes = std::move(bytes), hashes, config, image = image.get()] {
          open_image(i, bytes, hashes, config, *image);
        });
    try {
      image->thread = std::async(std::launch::async, [work = image->opening]() mutable {
        std::exchange(work, nullptr)->run();  // the bytes go when nobody needs them
      });
    } catch (const std::system_error&) {  // no thread to be had: who needs it first opens it
    }
    opening.images.push_back({std::move(image), {}, true});
  }
  return opening;
}

std::vector<EncodedImagePtr> finish_images(const OpeningImages& opening, StageTimes& times) {
  std::vector<EncodedImagePtr> images;
  for (std::size_t i = 0; i < opening.images.size(); ++i) {
    const auto& [image, bytes, is_new] = opening.images[i];
    try {
      if (image->opening != nullptr) image->opening->wait();
    } catch (const Error&) {
      if (!is_new) decode_image(i, bytes);  // it has another number here
      throw;
    }
    image->opening = nullptr;  // and the bytes of its file
    if (is_new) {
      times[Stage::kImageDecode] += image->decode_ms;
      times[Stage::kImagePreprocess] += image->cut_ms;
    }
    images.push_back(image);
  }
  if (opening.refused) throw *opening.refused;
  return images;
}

}  // namespace jemm
