// Copies the vision tower's tensors to the device.
#include "gpu/vision_weights.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <cuda_bf16.h>
#include <fmt/format.h>

#include "checkpoint/registry.h"

namespace jemm::gpu {
namespace {

constexpr std::string_view kTower = "model.visual.";
constexpr std::int64_t kAlignment = 256;  // what cuBLASLt's fastest algorithms want

// All tensors of the tower in one piece of memory.
template <typename T>
class DeviceTensors {
 public:
  explicit DeviceTensors(Loader& loader) {
    std::int64_t n_bytes = 0;
    const TensorRegistry registry(loader.checkpoint().config());
    for (const TensorInfo& info : registry.tensors()) {
      if (!info.name.starts_with(kTower)) continue;
      places_[info.name] = n_bytes;
      const auto size = element_count(info.shape) * static_cast<std::int64_t>(sizeof(T));
      n_bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
    }
    memory_ = DeviceBytes(static_cast<std::size_t>(n_bytes), "the vision tower's weights");
    for (const auto& [name, place] : places_) loader.tensor(name, at(name));
    loader.finish();
  }

  T* at(const std::string& name) const {
    return reinterpret_cast<T*>(memory_.data() + places_.at(name));
  }
  DeviceBytes release() { return std::move(memory_); }

 private:
  std::map<std::string, std::int64_t> places_;  // bytes from the start
  DeviceBytes memory_;
};

}  // namespace

template <typename T>
VisionWeights<T> load_vision_weights(Loader& loader) {
  const VisionConfig& config = loader.checkpoint().config().vision;
  DeviceTensors<T> tensors(loader);
  const auto linear = [&](const std::string& module, std::int64_t n_out, std::int64_t n_in) {
    return BiasedLinear<T>{n_out, n_in, tensors.at(module + ".weight"),
                           tensors.at(module + ".bias")};
  };
  const auto norm = [&](const std::string& module) {
    return LayerNormWeights<T>{tensors.at(module + ".weight"), tensors.at(module + ".bias")};
  };

  const std::string tower(kTower);
  const std::int64_t width = config.hidden_size;
  const std::int64_t merged = config.merge_size * config.merge_size * width;
  VisionWeights<T> weights;
  weights.patch_embed = linear(
      tower + "patch_embed.proj", width,
      config.n_channels * config.temporal_patch_size * config.patch_size * config.patch_size);
  weights.position_grid = tensors.at(tower + "pos_embed.weight");
  for (std::int64_t i = 0; i < config.depth; ++i) {
    const std::string name = fmt::format("{}blocks.{}.", tower, i);
    weights.blocks.push_back(
        {.norm1 = norm(name + "norm1"),
         .norm2 = norm(name + "norm2"),
         .qkv = linear(name + "attn.qkv", 3 * width, width),
         .proj = linear(name + "attn.proj", width, width),
         .fc1 = linear(name + "mlp.linear_fc1", config.intermediate_size, width),
         .fc2 = linear(name + "mlp.linear_fc2", width, config.intermediate_size)});
  }
  weights.merger_norm = norm(tower + "merger.norm");
  weights.merger_fc1 = linear(tower + "merger.linear_fc1", merged, merged);
  weights.merger_fc2 = linear(tower + "merger.linear_fc2", config.out_hidden_size, merged);
  weights.memory = tensors.release();
  return weights;
}

template VisionWeights<float> load_vision_weights(Loader&);
template VisionWeights<__nv_bfloat16> load_vision_weights(Loader&);

}  // namespace jemm::gpu
