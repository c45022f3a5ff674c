// From a forest to logits: planning, copies, vision rows, the tap; and what devices will do.
#include "gpu/cuda_engine.h"

#include <algorithm>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <cuda_bf16.h>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/stages.h"
#include "gpu/algorithm_cache.h"
#include "gpu/cuda.h"
#include "gpu/device_facts.h"
#include "gpu/gemm.h"
#include "gpu/kernels/fill.h"
#include "gpu/loader.h"
#include "gpu/pass_plan.h"
#include "gpu/pass_upload.h"
#include "gpu/text_forward.h"
#include "gpu/text_weights.h"
#include "gpu/vision.h"
#include "gpu/vision_rows.h"

namespace jemm {
namespace gpu {
namespace {

DeviceFacts facts_of(int device) {
  DeviceFacts facts{.device = device};
  cudaDriverGetVersion(&facts.driver);
  facts.status = cudaGetDeviceCount(&facts.n_devices);
  if (facts.status != cudaSuccess) cudaGetLastError();
  if (facts.status == cudaSuccess && device >= 0 && device < facts.n_devices) {
    int shared_bytes = 0;
    cudaDeviceGetAttribute(&facts.major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&facts.minor, cudaDevAttrComputeCapabilityMinor, device);
    cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    facts.shared_bytes = static_cast<std::size_t>(shared_bytes);
  }
  return facts;
}

cudaDeviceProp use_device(int device, const TextConfig& config, Precision precision) {
  const DeviceFacts facts = facts_of(device);
  const CudaPresence presence = presence_of(facts, JEMM_CUDA_ARCHITECTURES);
  if (!presence.usable) fail(ErrorKind::kDevice, "CUDA device {}: {}", device, presence.reason);
  check_shared_memory(facts, config, precision);
  cuda_check(cudaSetDevice(device), "choosing the device");
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties");
  return properties;
}

template <typename T>
class CudaEngine : public Engine {
 public:
  CudaEngine(std::shared_ptr<const Checkpoint> checkpoint,
             std::span<const std::int32_t, 32> label_ids, const CudaOptions& options)
      : checkpoint_(std::move(checkpoint)),
        device_(options.device),
        properties_(use_device(options.device, checkpoint_->config().text, options.precision)),
        hash_(std::async(std::launch::async, [this] { return checkpoint_->fingerprint(); })),
        gemms_(gemm_mode(options), AlgorithmCache::default_directory()),
        loader_(std::make_unique<Loader>(*checkpoint_)),
        text_(checkpoint_->config().text, load_text_weights<T>(*loader_, label_ids), gemms_,
              stream_, options.graphs) {
    loader_->finish();
    text_.settle_products();
    gemms_.save();
    const std::string settled = gemms_.settled();
    fingerprint_ =
        fmt::format("cuda {} {} {} {}{}{} lora-{} {}", JEMM_VERSION,
                    device_identity(properties_, options.deterministic), Gemms::library(),
                    sizeof(T) == 2 ? "bf16" : "fp32", options.deterministic ? " deterministic" : "",
                    settled.empty() ? "" : "-" + settled, lora_mode_name(checkpoint_->lora_mode()),
                    hash_.get());
  }

  const std::string& fingerprint() const override { return fingerprint_; }

  std::vector<VisionRowsPtr> vision(std::span<const ImagePatches> images,
                                    StageTimes& times) override {
    const StageTimer timer(times[Stage::kVision]);
    cuda_check(cudaSetDevice(device_), "choosing the device");
    if (!tower_) tower_ = std::make_unique<VisionTower<T>>(*loader_, gemms_, stream_);
    std::vector<VisionRowsPtr> results;
    for (auto& rows : tower_->run(images)) results.push_back(std::move(rows));
    return results;
  }

  std::vector<LabelLogits> forward(const Forest& forest, std::span<const VisionRowsPtr> images,
                                   StageTimes& times, Tap* tap) override {
    check_forest(forest);
    if (forest.read_rows.empty()) return {};
    check_tokens(forest);
    cuda_check(cudaSetDevice(device_), "choosing the device");
    DevicePass pass;
    {
      const StageTimer timer(times[Stage::kText]);
      const PassPlan plan = plan_pass(forest, checkpoint_->config().text.conv_width);
      pass = upload_.run(forest, plan, stream_);
      show_images(forest, images, text_.embed(pass), tap);
      typename TextForward<T>::Observe observe;
      if (tap != nullptr) {
        observe = [&](const std::string& stage, const float* x, const std::int32_t* indices) {
          show(*tap, stage, x, indices, forest.read_rows);
        };
      }
      text_.run(pass, observe);
      stream_.synchronize("the text layers");
    }
    gemms_.save();
    const StageTimer timer(times[Stage::kHead]);
    std::vector<LabelLogits> logits(forest.read_rows.size());
    copy_to_host(logits.data(), text_.label_logits(pass), logits.size() * sizeof(LabelLogits),
                 stream_);
    stream_.synchronize("the label head");
    return logits;
  }

 private:
  static GemmMode gemm_mode(const CudaOptions& options) {
    if (options.deterministic) return GemmMode::kDeterministic;
    return sizeof(T) == 2 ? GemmMode::kFastest : GemmMode::kProposed;
  }

  void check_tokens(const Forest& forest) const {
    const std::int64_t n = checkpoint_->config().text.vocab_size;
    for (std::size_t i = 0; i < forest.token_ids.size(); ++i) {
      if (forest.token_ids[i] < 0 || forest.token_ids[i] >= n) {
        fail(ErrorKind::kDevice, "token {} of row {} is outside the vocabulary of {}",
             forest.token_ids[i], i, n);
      }
    }
  }

  // Overwrites the rows of x that show images.
  void show_images(const Forest& forest, std::span<const VisionRowsPtr> images, float* x,
                   Tap* tap) {
    const std::int64_t width = checkpoint_->config().text.hidden_size;
    for (const ImageRows& rows : forest.image_rows) {
      const CudaVisionRows& image = image_of(rows, images);
      const T* from = static_cast<const T*>(image.values()) + rows.image_row * width;
      convert(from, sizeof(T) == 2 ? StoredType::kBf16 : StoredType::kF32, rows.n_rows * width,
              x + rows.row_begin * width, stream_.get());
      if (tap == nullptr) continue;
      const std::vector<float> values = image.floats(stream_);
      for (std::int64_t i = 0; i < rows.n_rows; ++i) {
        tap->observe(
            kVisionStage, rows.row_begin + i,
            std::span(values).subspan(static_cast<std::size_t>((rows.image_row + i) * width),
                                      static_cast<std::size_t>(width)));
      }
    }
  }

  static const CudaVisionRows& image_of(const ImageRows& rows,
                                        std::span<const VisionRowsPtr> images) {
    const auto i = static_cast<std::size_t>(rows.image);
    const auto* image =
        i < images.size() ? dynamic_cast<const CudaVisionRows*>(images[i].get()) : nullptr;
    if (image == nullptr || image->element() != element_of<T>() ||
        rows.n_rows > image->n_rows() - rows.image_row) {
      fail(ErrorKind::kDevice, "image {} of {} has no rows {} to {}", i, images.size(),
           rows.image_row, rows.image_row + rows.n_rows);
    }
    return *image;
  }

  void show(Tap& tap, const std::string& stage, const float* x, const std::int32_t* indices,
            const std::vector<std::int64_t>& read_rows) {
    const std::int64_t width = checkpoint_->config().text.hidden_size;
    const auto n = static_cast<std::int64_t>(read_rows.size());
    shown_.reserve(n * width, "the observed rows");
    if (indices != nullptr) {
      gather_rows(x, width, indices, n, width, shown_.data(), stream_.get());
      x = shown_.data();
    }
    std::vector<float> values(static_cast<std::size_t>(n * width));
    copy_to_host(values.data(), x, values.size() * sizeof(float), stream_);
    stream_.synchronize(stage);
    for (std::int64_t i = 0; i < n; ++i) {
      tap.observe(stage, read_rows[static_cast<std::size_t>(i)],
                  std::span(values).subspan(static_cast<std::size_t>(i * width),
                                            static_cast<std::size_t>(width)));
    }
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  int device_;
  cudaDeviceProp properties_;
  Stream stream_;
  // Made while the weights are loaded. Where that fails, the error waits for it.
  std::future<std::string> hash_;
  Gemms gemms_;
  std::unique_ptr<Loader> loader_;
  TextForward<T> text_;
  std::unique_ptr<VisionTower<T>> tower_;  // once an image comes
  std::string fingerprint_;
  PassUpload upload_;
  DeviceArray<float> shown_;
};

}  // namespace
}  // namespace gpu

CudaPresence cuda_presence(int device) {
  return gpu::presence_of(gpu::facts_of(device), JEMM_CUDA_ARCHITECTURES);
}

std::unique_ptr<Engine> make_cuda_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                         std::span<const std::int32_t, 32> label_ids,
                                         const CudaOptions& options) {
  if (options.precision == Precision::kBf16) {
    return std::make_unique<gpu::CudaEngine<__nv_bfloat16>>(std::move(checkpoint), label_ids,
                                                            options);
  }
  return std::make_unique<gpu::CudaEngine<float>>(std::move(checkpoint), label_ids, options);
}

}  // namespace jemm
