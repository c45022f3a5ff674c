#include "cpu/cpu_engine.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <thread>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "cpu/context.h"
#include "cpu/mixers.h"
#include "cpu/norms.h"
#include "cpu/vision.h"
#include "cpu/weights.h"
#include "engine/stages.h"
#include "plan/runs.h"

namespace jemm {
namespace cpu {
namespace {

LayerRows layer_rows(const std::vector<Run>& runs, std::vector<std::int64_t> rows) {
  LayerRows wanted{.rows = std::move(rows), .tiles = {}};
  wanted.tiles = make_query_tiles(runs, wanted.rows);
  return wanted;
}

std::vector<std::int64_t> all_rows(std::int64_t n) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

class CpuVisionRows : public VisionRows {
 public:
  explicit CpuVisionRows(Matrix rows) : rows_(std::move(rows)) {}
  std::int64_t n_rows() const override { return rows_.rows(); }
  std::size_t size_bytes() const override {
    return static_cast<std::size_t>(rows_.rows() * rows_.cols()) * sizeof(float);
  }
  const float* row(std::int64_t i) const { return rows_.row(i); }  // [D]

 private:
  Matrix rows_;
};

class CpuEngine : public Engine {
 public:
  CpuEngine(std::shared_ptr<const Checkpoint> checkpoint,
            std::span<const std::int32_t, 32> label_ids, int n_threads)
      : checkpoint_(std::move(checkpoint)),
        config_(checkpoint_->config().text),
        eps_(static_cast<float>(config_.rms_norm_eps)),
        weights_(load_text_weights(*checkpoint_, label_ids)),
        context_(n_threads),
        fingerprint_(fmt::format("cpu {} {} fp32 lora-{} {}", JEMM_VERSION, products_version(),
                                 lora_mode_name(checkpoint_->lora_mode()),
                                 checkpoint_->fingerprint())) {}

  const std::string& fingerprint() const override { return fingerprint_; }

  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images,
                                    StageTimes& times) override {
    const StageTimer timer(times[Stage::kVision]);
    if (!tower_) tower_.emplace(*checkpoint_);
    std::vector<VisionRowsPtr> results;
    for (Matrix& rows : tower_->run(context_, images)) {
      results.push_back(std::make_shared<CpuVisionRows>(std::move(rows)));
    }
    return results;
  }

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr> images,
                                   StageTimes& times, Tap* tap) override {
    check_forest(forest);
    if (forest.read_rows.empty()) return {};
    {
      const StageTimer timer(times[Stage::kText]);
      embed(forest, images, tap);
      run_text(forest, tap);
    }
    const StageTimer timer(times[Stage::kHead]);
    return read_logits(forest.read_rows.size());
  }

 private:
  /// Layers and final norm; leaves the read rows, normed, in normed_.
  void run_text(const Forest& forest, Tap* tap) {
    PassPlan plan{.runs = runs_of(forest), .slots = {}, .rotary = {}};
    plan.slots = assign_state_slots(plan.runs);
    make_rotary_table(config_, forest.positions, plan.rotary);
    const LayerRows every = layer_rows(plan.runs, all_rows(forest.n_rows()));
    const LayerRows read = layer_rows(plan.runs, forest.read_rows);

    for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
      const LayerWeights& layer = weights_.layers[i];
      const bool is_last = i + 1 == weights_.layers.size();
      rms_norm(context_, x_, layer.input_norm, eps_, normed_);
      if (is_last) {  // nothing reads the other rows any more
        gather_rows(x_, read.rows, read_x_);
        gather_rows(normed_, read.rows, read_normed_);
      }
      Tiles& x = is_last ? read_x_ : x_;
      mix(layer, {.config = config_,
                  .plan = plan,
                  .wanted = is_last ? read : every,
                  .all = normed_,
                  .queried = is_last ? read_normed_ : normed_});
      add_to(context_.pool, x, update_);

      rms_norm(context_, x, layer.post_norm, eps_, normed_);
      apply_swiglu(context_, normed_, layer.gate, layer.up, activated_);
      apply(context_, activated_, {{layer.down, update_}});
      add_to(context_.pool, x, update_);
      if (tap != nullptr) {
        show(*tap, layer_stage(static_cast<std::int64_t>(i)), x, is_last, forest.read_rows);
      }
    }
    rms_norm(context_, read_x_, weights_.final_norm, eps_, normed_);
    if (tap != nullptr) show(*tap, kFinalNormStage, normed_, true, forest.read_rows);
  }

  std::vector<LabelLogits> read_logits(std::size_t n_reads) {
    apply(context_, normed_, {{weights_.head, logits_}});
    std::vector<LabelLogits> results(n_reads);
    for (std::size_t i = 0; i < results.size(); ++i) {
      for (std::size_t label = 0; label < results[i].size(); ++label) {
        results[i][label] =
            logits_.at(static_cast<std::int64_t>(i), static_cast<std::int64_t>(label));
      }
    }
    return results;
  }

  /// x = the tokens' embeddings, and the images' rows where they are shown.
  void embed(const Forest& forest, std::span<const VisionRowsPtr> images, Tap* tap) {
    const std::vector<std::int32_t>& token_ids = forest.token_ids;
    const Tensor& table = weights_.embedding;
    const std::int64_t width = config_.hidden_size;
    const std::size_t row_bytes = static_cast<std::size_t>(width) * dtype_size(table.dtype);
    embedded_.reshape(static_cast<std::int64_t>(token_ids.size()), width);
    for (std::size_t i = 0; i < token_ids.size(); ++i) {
      if (token_ids[i] < 0 || token_ids[i] >= table.shape[0]) {
        fail(ErrorKind::kDevice, "token {} of row {} is outside the vocabulary of {}", token_ids[i],
             i, table.shape[0]);
      }
      widen(table.dtype,
            table.data.bytes.subspan(static_cast<std::size_t>(token_ids[i]) * row_bytes, row_bytes),
            {embedded_.row(static_cast<std::int64_t>(i)), static_cast<std::size_t>(width)});
    }
    for (const ImageRows& rows : forest.image_rows) {
      const CpuVisionRows& image = image_of(rows, images);
      for (std::int64_t i = 0; i < rows.n_rows; ++i) {
        const std::span<const float> values(image.row(rows.image_row + i),
                                            static_cast<std::size_t>(width));
        std::copy(values.begin(), values.end(), embedded_.row(rows.row_begin + i));
        if (tap != nullptr) tap->observe(kVisionStage, rows.row_begin + i, values);
      }
    }
    to_tiles(context_.pool, embedded_, x_);
  }

  static const CpuVisionRows& image_of(const ImageRows& rows,
                                       std::span<const VisionRowsPtr> images) {
    const auto i = static_cast<std::size_t>(rows.image);
    const auto* image =
        i < images.size() ? dynamic_cast<const CpuVisionRows*>(images[i].get()) : nullptr;
    if (image == nullptr || rows.n_rows > image->n_rows() - rows.image_row) {
      fail(ErrorKind::kDevice, "image {} of {} has no rows {} to {}", i, images.size(),
           rows.image_row, rows.image_row + rows.n_rows);
    }
    return *image;
  }

  void mix(const LayerWeights& layer, const MixerArgs& args) {
    if (const auto* full = std::get_if<AttentionWeights>(&layer.mixer)) {
      attention_mixer(context_, *full, args, memory_, update_);
    } else {
      delta_net_mixer(context_, std::get<DeltaNetWeights>(layer.mixer), args, memory_, update_);
    }
  }

  // `rows_are_reads`: row i of x is entry i of read_rows, not packed row i.
  static void show(Tap& tap, std::string_view stage, const Tiles& x, bool rows_are_reads,
                   const std::vector<std::int64_t>& read_rows) {
    std::vector<float> values(static_cast<std::size_t>(x.cols()));
    for (std::size_t i = 0; i < read_rows.size(); ++i) {
      const std::int64_t row = rows_are_reads ? static_cast<std::int64_t>(i) : read_rows[i];
      for (std::int64_t c = 0; c < x.cols(); ++c) {
        values[static_cast<std::size_t>(c)] = x.at(row, c);
      }
      tap.observe(stage, read_rows[i], values);
    }
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const TextConfig& config_;
  float eps_;
  TextWeights weights_;
  std::optional<VisionTower> tower_;  // once an image comes
  Context context_;
  std::string fingerprint_;

  // Activations, kept from pass to pass.
  Matrix embedded_;             // [rows, D]
  Tiles x_, normed_, update_;   // [rows, D]
  Tiles activated_;             // [rows, F]
  Tiles read_x_, read_normed_;  // [reads, D]
  Tiles logits_;                // [reads, 32]
  MixerMemory memory_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Engine> make_cpu_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                        std::span<const std::int32_t, 32> label_ids,
                                        int n_threads) {
  if (n_threads == 0) n_threads = static_cast<int>(std::thread::hardware_concurrency());
  return std::make_unique<cpu::CpuEngine>(std::move(checkpoint), label_ids, std::max(n_threads, 1));
}

}  // namespace jemm
