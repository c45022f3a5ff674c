// The images of a request: from its text to patches and on to an engine's rows, each done once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "contract/request.h"
#include "engine/engine.h"
#include "engine/timings.h"
#include "image/patches.h"
#include "image/size.h"

namespace jemm {

/// The decoding and cutting of an image, by a thread or by whoever needs the image before that
/// thread has begun: waking a thread can take longer than a small image.
class ImageOpening {
 public:
  explicit ImageOpening(std::function<void()> work) : work_(std::move(work)) {}
  /// Does it, or leaves it to who does it already.
  void run() {
    if (!is_taken_.test_and_set()) work_();
  }
  /// Returns when it is done; throws what it threw.
  void wait() {
    run();
    done_.get();
  }

 private:
  std::packaged_task<void()> work_;
  std::shared_future<void> done_ = work_.get_future().share();
  std::atomic_flag is_taken_;
};

/// An image, shared by all that show it. While `opening` is there the rest is for whoever opens it,
/// then for the thread that submits requests; but `rows`, as long as patches have values, are for
/// whoever runs passes (PassRunner).
struct EncodedImage {
  std::string file_sha256;  ///< of the image file's bytes
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::string rgb_sha256;           ///< of the decoded bytes; empty unless asked for
  Rgb rgb;                          ///< empty once cut
  Patches patches;                  ///< grid 0 until cut; no values once it is looked at
  VisionRowsPtr rows;               ///< what the engine has made of it, once it has
  std::optional<Error> uncuttable;  ///< set: why it has no patches
  double decode_ms = 0, cut_ms = 0;
  /// Fills in all of the above but `rows` and the file's hash; null afterwards.
  std::shared_ptr<ImageOpening> opening;
  std::future<void> thread;  ///< of the opening; the last member, so that it ends before they go

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

/// The images of a request while threads open them.
struct OpeningImages {
  struct Image {
    EncodedImagePtr image;
    std::string bytes;    ///< of the file, if the image is not new: for a refusal of its own
    bool is_new = false;  ///< not of the cache: it was this request that had it opened
  };
  std::vector<Image> images;
  std::optional<Error> refused;  ///< for the envelope of the next image; those before come first

  std::size_t n_new() const;
};

/// Finds the images of a request, then those of `files` (the bytes of image files), in the cache;
/// each new one is decoded and, when `config` is given, cut into patches on a thread of its own.
/// Throws Error::request as the reference does for the number of images.
OpeningImages start_images(const Request& request, std::vector<std::string> files,
                           ImageHashes hashes, const PreprocessorConfig* config, ImageCache& cache);

/// The images, when they are there. Throws Error::request as the reference does for the first image
/// that it would have refused. Adds to `times` what those that were new have taken.
std::vector<EncodedImagePtr> finish_images(const OpeningImages& opening, StageTimes& times);

}  // namespace jemm
