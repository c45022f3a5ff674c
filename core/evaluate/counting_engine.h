// An engine without weights: every logit is 0. Shows what an evaluator would ask for.
#pragma once

#include "engine/engine.h"
#include "image/size.h"

namespace jemm {

class CountingEngine : public Engine {
 public:
  /// `vision_row_bytes`: what a real engine keeps for each merged row of an image.
  explicit CountingEngine(std::size_t vision_row_bytes) : vision_row_bytes_(vision_row_bytes) {}

  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images, StageTimes&) override {
    std::vector<VisionRowsPtr> rows;
    for (const ImagePatches& image : images) {
      const std::int64_t n = image.grid_thw[1] * image.grid_thw[2] / (kMergeSize * kMergeSize);
      rows.push_back(std::make_shared<Rows>(n, vision_row_bytes_));
    }
    return rows;
  }
  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr>,
                                   StageTimes&, Tap*) override {
    check_forest(forest);
    return std::vector<LabelLogits>(forest.read_rows.size(), LabelLogits{});
  }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  class Rows : public VisionRows {
   public:
    Rows(std::int64_t n, std::size_t row_bytes) : n_(n), row_bytes_(row_bytes) {}
    std::int64_t n_rows() const override { return n_; }
    std::size_t size_bytes() const override { return static_cast<std::size_t>(n_) * row_bytes_; }

   private:
    std::int64_t n_;
    std::size_t row_bytes_;
  };

  std::size_t vision_row_bytes_;
  std::string fingerprint_ = "no weights";
};

}  // namespace jemm
