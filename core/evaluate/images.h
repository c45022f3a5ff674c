// The images of a request: from its text to patches and on to an engine's rows, each done once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contract/request.h"
#include "engine/engine.h"
#include "image/patches.h"
#include "image/size.h"

namespace jemm {

/// An image, shared by all that show it. `rows` are an engine's (PassRunner) as long as patches
/// have values; everything else is for the thread that opens images.
struct EncodedImage {
  std::string file_sha256;  ///< of the image file's bytes
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string rgb_sha256;  ///< of the decoded bytes; empty unless asked for
  Rgb rgb;                 ///< empty once cut
  Patches patches;         ///< grid 0 until cut; no values once it is looked at
  VisionRowsPtr rows;      ///< what the engine has made of it, once it has

  bool is_cut() const { return patches.grid_thw[0] != 0; }
  bool is_looked_at() const { return is_cut() && patches.values.empty(); }
  std::size_t n_tokens() const {
    return static_cast<std::size_t>(patches.grid_thw[1] / kMergeSize * patches.grid_thw[2] /
                                    kMergeSize);
  }
  std::size_t n_bytes() const {
    return rgb.pixels.size() + patches.values.size() * sizeof(float) +
           (is_looked_at() ? rows->size_bytes() : 0);
  }
};
using EncodedImagePtr = std::shared_ptr<EncodedImage>;

/// Finds images by the hash of their files' bytes, as long as anyone holds them, and holds those
/// with rows itself, up to a limit. Not thread-safe.
class ImageCache {
 public:
  /// max_bytes: of the rows that it holds; the oldest go first.
  explicit ImageCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  EncodedImagePtr find(const std::string& file_sha256) const;  ///< or null
  void add(const EncodedImagePtr& image);
  /// Holds an image that was added and has rows.
  void keep(const EncodedImagePtr& image);
  std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  std::size_t max_bytes_;
  std::size_t kept_bytes_ = 0;
  std::deque<EncodedImagePtr> kept_;  // oldest first
  std::map<std::string, std::weak_ptr<EncodedImage>> known_;
  std::size_t prune_size_ = 64;  // of known_, at which it is rid of those that are gone
};

enum class ImageHashes { kSkip, kCompute };

/// The images of a request, then those of `files` (the bytes of image files). New ones are decoded,
/// several at a time; the others come from the cache. Throws Error::request as the reference does:
/// for the number of images, then for the first image that it would have refused.
std::vector<EncodedImagePtr> open_images(const Request& request, std::vector<std::string> files,
                                         ImageHashes hashes, ImageCache& cache);

/// Cuts what is not cut yet into patches, several at a time. Throws Error::request for the aspect
/// ratio.
void cut_images(std::span<const EncodedImagePtr> images, const PreprocessorConfig& config);

}  // namespace jemm
