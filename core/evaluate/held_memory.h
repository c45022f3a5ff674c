// Bytes that waiting questions hold, an image once for all that show it.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "evaluate/images.h"

namespace jemm {

class HeldMemory {
 public:
  /// A question of `n_bytes` and its images.
  void add(std::size_t n_bytes, std::span<const EncodedImagePtr> images) {
    n_bytes_ += n_bytes;
    for (const EncodedImagePtr& image : images) {
      const auto [use, is_new] = images_.try_emplace(image.get(), Use{0, image->n_bytes()});
      if (is_new) n_bytes_ += use->second.n_bytes;
      ++use->second.n_users;
    }
  }
  /// One that was added.
  void remove(std::size_t n_bytes, std::span<const EncodedImagePtr> images) {
    n_bytes_ -= n_bytes;
    for (const EncodedImagePtr& image : images) {
      const auto use = images_.find(image.get());
      if (--use->second.n_users > 0) continue;
      n_bytes_ -= use->second.n_bytes;
      images_.erase(use);
    }
  }
  /// After the image's own size has changed.
  void update(const EncodedImage& image) {
    const auto use = images_.find(&image);
    if (use == images_.end()) return;
    n_bytes_ -= std::exchange(use->second.n_bytes, image.n_bytes());
    n_bytes_ += use->second.n_bytes;
  }
  std::size_t n_bytes() const { return n_bytes_; }

 private:
  struct Use {
    std::size_t n_users;
    std::size_t n_bytes;
  };
  std::size_t n_bytes_ = 0;
  std::map<const EncodedImage*, Use> images_;
};

}  // namespace jemm
