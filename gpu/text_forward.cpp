// The layers, in the order of the maths.
#include "gpu/text_forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <cuda_bf16.h>
#include <nvtx3/nvToolsExt.h>

#include "engine/stages.h"

namespace jemm::gpu {
namespace {

// A named range for profilers.
class Range {
 public:
  explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// The axis that a rotary frequency turns with: height for 1, 4, 7, ..., width for 2, 5, 8, ... up
// to their counts, time for the rest.
std::int32_t axis_of(const TextConfig& config, std::int64_t frequency) {
  const auto axis = static_cast<std::size_t>(frequency % 3);
  return axis != 0 && frequency < 3 * config.mrope_section[axis] ? static_cast<std::int32_t>(axis)
                                                                 : 0;
}

template <typename Value>
void upload(const std::vector<Value>& from, DeviceArray<Value>& to, const Stream& stream) {
  to.reserve(std::ssize(from), "a table");
  copy_to_device(to.data(), from.data(), from.size() * sizeof(Value), stream);
  stream.synchronize("copying a table");  // before `from` goes
}

}  // namespace

template <typename T>
TextForward<T>::TextForward(const TextConfig& config, TextWeights<T> weights, Gemms& gemms,
                            const Stream& stream)
    : config_(config),
      eps_(static_cast<float>(config.rms_norm_eps)),
      weights_(std::move(weights)),
      gemms_(gemms),
      stream_(stream) {
  std::vector<float> frequency;
  std::vector<std::int32_t> axes;
  for (std::int64_t i = 0; i < config.rotary_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.rotary_dim);
    frequency.push_back(
        1.0f / static_cast<float>(std::pow(config.rope_theta, static_cast<double>(exponent))));
    axes.push_back(axis_of(config, i));
  }
  upload(frequency, frequency_, stream);
  upload(axes, axes_, stream);
  for (const LayerWeights<T>& layer : weights_.layers) {
    widest_in_ = std::max(widest_in_, layer.in.n_out);
    for (const LinearGroup<T>* group : {&layer.in, &layer.out, &layer.gate_up, &layer.down}) {
      widest_low_ = std::max(widest_low_, group->low_width);
    }
  }
}

template <typename T>
void TextForward<T>::reserve(const DevicePass& pass) {
  const TextConfig& c = config_;
  const std::int64_t rows = pass.n_rows;
  const std::int64_t most = std::max(rows, pass.n_reads);  // a row may be read more than once
  const std::int64_t query_width = c.n_heads * c.head_dim, kv_width = c.n_kv_heads * c.head_dim;
  const std::int64_t mixed = std::max(c.value_dim(), query_width);
  const std::int64_t head_states = rows * c.n_value_heads;
  x_.reserve(rows * c.hidden_size);
  normed_.reserve(most * c.hidden_size);
  update_.reserve(most * c.hidden_size);
  projected_.reserve(rows * widest_in_);
  mixed_.reserve(rows * mixed);
  heads_.reserve(rows * std::max(c.conv_dim(), query_width + kv_width));
  core_.reserve(rows * c.value_dim());
  gate_up_.reserve(most * 2 * c.intermediate_size);
  activated_.reserve(most * c.intermediate_size);
  read_x_.reserve(pass.n_reads * c.hidden_size);
  final_.reserve(pass.n_reads * c.hidden_size);
  read_mixed_.reserve(pass.n_reads * mixed);
  low_.reserve(most * widest_low_);
  cosine_.reserve(rows * c.rotary_dim / 2);
  sine_.reserve(rows * c.rotary_dim / 2);
  solved_v_.reserve(head_states * c.value_head_dim);
  solved_k_.reserve(head_states * c.key_head_dim);
  ahead_.reserve(head_states * kDeltaChunk);
  decays_.reserve(head_states * 2);
  states_.reserve(pass.n_slots * c.n_value_heads * c.key_head_dim * c.value_head_dim,
                  "recurrent states");
  logits_.reserve(pass.n_reads * 32);
}

template <typename T>
float* TextForward<T>::embed(const DevicePass& pass) {
  reserve(pass);
  gpu::embed(weights_.embedding.data(), pass.token_ids, pass.n_rows, config_.hidden_size, x_.data(),
             stream_.get());
  return x_.data();
}

// y = x W^T, and the first factors of the group's updates in low_.
template <typename T>
LowRank TextForward<T>::multiply(const LinearGroup<T>& group, std::int64_t n_rows, const T* x,
                                 T* y) {
  constexpr Element kElement = element_of<T>();
  gemms_.run({.n_out = group.n_out, .n_in = group.n_in, .in = kElement, .out = kElement}, n_rows, x,
             group.w.data(), nullptr, y, stream_);
  if (group.rank > 0) {
    gemms_.run({.n_out = group.low_width, .n_in = group.n_in, .in = kElement, .out = Element::kF32},
               n_rows, x, group.a.data(), nullptr, low_.data(), stream_);
  }
  return group.update(low_.data());
}

template <typename T>
void TextForward<T>::run(const DevicePass& pass, const Observe& observe) {
  const StreamHandle stream = stream_.get();
  const std::int64_t width = config_.hidden_size;
  rotary_table(pass.positions, frequency_.data(), axes_.data(), pass.n_rows,
               static_cast<std::int32_t>(config_.rotary_dim / 2), cosine_.data(), sine_.data(),
               stream);
  float* x = x_.data();
  const T* mixed = mixed_.data();
  std::int64_t n_rows = pass.n_rows;
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights<T>& layer = weights_.layers[i];
    const std::string stage = layer_stage(static_cast<std::int64_t>(i));
    const Range range(stage);
    rms_norm(x, layer.input_norm.data(), eps_, n_rows, width, normed_.data(), stream);
    if (const auto* full = std::get_if<AttentionWeights<T>>(&layer.mixer)) {
      attend(layer, *full, pass);
    } else {
      delta_net(layer, std::get<DeltaNetWeights<T>>(layer.mixer), pass);
    }
    if (i + 1 == weights_.layers.size()) {  // nothing reads the other rows any more
      gather_rows(x, width, pass.read_rows, pass.n_reads, width, read_x_.data(), stream);
      gather_rows(mixed, layer.out.n_in, pass.read_rows, pass.n_reads, layer.out.n_in,
                  read_mixed_.data(), stream);
      x = read_x_.data();
      mixed = read_mixed_.data();
      n_rows = pass.n_reads;
    }
    const LowRank out = multiply(layer.out, n_rows, mixed, update_.data());
    add_residual(out, update_.data(), n_rows, width, x, stream);

    rms_norm(x, layer.post_norm.data(), eps_, n_rows, width, normed_.data(), stream);
    const LowRank gate_up = multiply(layer.gate_up, n_rows, normed_.data(), gate_up_.data());
    silu_multiply(gate_up, gate_up_.data(), n_rows, config_.intermediate_size, activated_.data(),
                  stream);
    const LowRank down = multiply(layer.down, n_rows, activated_.data(), update_.data());
    add_residual(down, update_.data(), n_rows, width, x, stream);
    if (observe) observe(stage, x, x == read_x_.data() ? nullptr : pass.read_rows);
  }
  rms_norm(x, weights_.final_norm.data(), eps_, n_rows, width, final_.data(), stream);
  if (observe) observe(std::string(kFinalNormStage), final_.data(), nullptr);
}

// mixed_ [rows, Hv Dv] of normed_.
template <typename T>
void TextForward<T>::delta_net(const LayerWeights<T>& layer, const DeltaNetWeights<T>& mixer,
                               const DevicePass& pass) {
  const StreamHandle stream = stream_.get();
  const std::int64_t stride = layer.in.n_out;
  T* projected = projected_.data();
  const LowRank update = multiply(layer.in, pass.n_rows, normed_.data(), projected);
  add_low_rank(update, pass.n_rows, stride, stride, projected, stream);
  const T* z = projected + config_.conv_dim();
  const T* b = z + config_.value_dim();
  const T* a = b + config_.n_value_heads;

  const auto n_key_heads = static_cast<std::int32_t>(config_.n_key_heads);
  const auto n_value_heads = static_cast<std::int32_t>(config_.n_value_heads);
  const auto key_dim = static_cast<std::int32_t>(config_.key_head_dim);
  const auto value_dim = static_cast<std::int32_t>(config_.value_head_dim);
  causal_conv({.n_rows = pass.n_rows,
               .x_stride = stride,
               .n_key_heads = n_key_heads,
               .n_value_heads = n_value_heads,
               .key_dim = key_dim,
               .value_dim = value_dim,
               .width = static_cast<std::int32_t>(config_.conv_width),
               .taps = mixer.taps.data(),
               .previous = pass.previous},
              projected, heads_.data(), stream);
  const DeltaArgs<T> delta{.n_key_heads = n_key_heads,
                        .n_value_heads = n_value_heads,
                        .key_dim = key_dim,
                        .value_dim = value_dim,
                        .gate_stride = stride,
                        .decay = mixer.decay.data(),
                        .time_bias = mixer.time_bias.data(),
                        .chunks = pass.chunks,
                        .solved_v = solved_v_.data(),
                        .solved_k = solved_k_.data(),
                        .ahead = ahead_.data(),
                        .decays = decays_.data(),
                        .states = states_.data()};
  delta_prepare(delta, pass.n_chunks, heads_.data(), a, b, stream);
  for (const DeltaLevel& level : pass.levels) {
    delta_scan(delta, pass.delta_runs + level.first_run, level.n_runs, heads_.data(), core_.data(),
               stream);
  }
  gated_norm(core_.data(), z, stride, mixer.norm.data(), eps_, pass.n_rows, n_value_heads,
             value_dim, mixed_.data(), stream);
}

// mixed_ [rows, Hq Dh] of normed_.
template <typename T>
void TextForward<T>::attend(const LayerWeights<T>& layer, const AttentionWeights<T>& mixer,
                            const DevicePass& pass) {
  const StreamHandle stream = stream_.get();
  const std::int64_t stride = layer.in.n_out;
  const std::int64_t query_width = config_.n_heads * config_.head_dim;
  const std::int64_t kv_width = config_.n_kv_heads * config_.head_dim;
  T* projected = projected_.data();
  const LowRank update = multiply(layer.in, pass.n_rows, normed_.data(), projected);
  add_low_rank(update, pass.n_rows, stride, stride, projected, stream);
  T* q = heads_.data();
  T* k = q + pass.n_rows * query_width;
  norm_and_rotate({.n_rows = pass.n_rows,
                   .stride = stride,
                   .n_heads = static_cast<std::int32_t>(config_.n_heads),
                   .n_kv_heads = static_cast<std::int32_t>(config_.n_kv_heads),
                   .head_dim = static_cast<std::int32_t>(config_.head_dim),
                   .half = static_cast<std::int32_t>(config_.rotary_dim / 2),
                   .eps = eps_,
                   .q_factor = mixer.q_norm.data(),
                   .k_factor = mixer.k_norm.data(),
                   .cosine = cosine_.data(),
                   .sine = sine_.data()},
                  projected, q, k, stream);
  attention({.n_heads = static_cast<std::int32_t>(config_.n_heads),
             .n_kv_heads = static_cast<std::int32_t>(config_.n_kv_heads),
             .head_dim = static_cast<std::int32_t>(config_.head_dim),
             .v_stride = stride,
             .gate_stride = stride,
             .runs = pass.attention_runs,
             .tiles = pass.tiles,
             .n_tiles = pass.n_tiles},
            q, k, projected + 2 * query_width + kv_width, projected + config_.head_dim,
            mixed_.data(), stream);
}

template <typename T>
const float* TextForward<T>::label_logits(const DevicePass& pass) {
  gpu::label_logits(final_.data(), weights_.head.data(), pass.n_reads, config_.hidden_size,
                    logits_.data(), stream_.get());
  return logits_.data();
}

template class TextForward<float>;
template class TextForward<__nv_bfloat16>;

}  // namespace jemm::gpu
