// The layers, in the order of the maths.
#include "gpu/text_forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <cuda_bf16.h>
#include <nvtx3/nvToolsExt.h>

#include "engine/stages.h"
#include "gpu/reserve.h"

namespace jemm::gpu {
namespace {

// Above this, the device is busy for so long that launches hide behind its work.
constexpr std::int64_t kMostGraphRows = 1024;

// Up to this, products wait for their weights. Much of the time between two products is enough to
// bring the first of the next one's weights into the cache, where they leave room for activations.
constexpr std::int64_t kMostAheadRows = 192;
constexpr std::int64_t kAheadBytes = 16 << 20;

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
                            const Stream& stream, bool graphs)
    : config_(config),
      eps_(static_cast<float>(config.rms_norm_eps)),
      weights_(std::move(weights)),
      gemms_(gemms),
      stream_(stream),
      uses_graphs_(graphs) {
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
    widest_in_ = std::max(widest_in_, layer.in.width);
    widest_update_ = std::max({widest_update_, layer.out.width, layer.down.width});
    widest_gate_up_ = std::max(widest_gate_up_, layer.gate_up.width);
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
  const auto each = [&](const auto& visit) {
    visit(x_, rows * c.hidden_size);
    visit(normed_, most * c.hidden_size);
    visit(update_, most * widest_update_);
    visit(projected_, rows * widest_in_);
    visit(mixed_, rows * mixed);
    visit(heads_, rows * std::max(c.conv_dim(), query_width + kv_width));
    visit(core_, rows * c.value_dim());
    visit(gate_up_, most * widest_gate_up_);
    visit(activated_, most * c.intermediate_size);
    visit(read_x_, pass.n_reads * c.hidden_size);
    visit(final_, pass.n_reads * c.hidden_size);
    visit(read_mixed_, pass.n_reads * mixed);
    visit(cosine_, rows * c.rotary_dim / 2);
    visit(sine_, rows * c.rotary_dim / 2);
    visit(solved_v_, head_states * c.value_head_dim);
    visit(solved_k_, head_states * c.key_head_dim);
    visit(ahead_, head_states * kDeltaChunk);
    visit(decays_, head_states * 2);
    visit(states_, pass.n_slots * c.n_value_heads * c.key_head_dim * c.value_head_dim);
    visit(logits_, pass.n_reads * 32);
  };
  reserve_together("activations", each, [&](std::size_t n_wanted, std::size_t n_freed) {
    check_free_memory(n_wanted, n_freed, "activations");
    stream_.synchronize("the text layers");
    graphs_.clear();  // they hold the old addresses
  });
}

template <typename T>
Product TextForward<T>::product_of(const LinearGroup<T>& group) {
  return {.n_out = group.width, .n_in = group.n_in, .in = element_of<T>(), .out = element_of<T>()};
}

template <typename T>
void TextForward<T>::settle_products() {
  for (const LayerWeights<T>& layer : weights_.layers) {
    for (const LinearGroup<T>* group : {&layer.in, &layer.out, &layer.gate_up, &layer.down}) {
      gemms_.settle(product_of(*group), group->w.data(), stream_);
    }
  }
}

template <typename T>
float* TextForward<T>::embed(const DevicePass& pass) {
  reserve(pass);
  gpu::embed(weights_.embedding.data(), pass.token_ids, pass.n_rows, config_.hidden_size, x_.data(),
             stream_.get());
  return x_.data();
}

// y [rows, group.width] = x w^T: the outputs, and the low-rank inputs of their updates. `next`, if
// any: the product behind it, whose weights are wanted while the update is added.
template <typename T>
LowRank<T> TextForward<T>::multiply(const LinearGroup<T>& group, std::int64_t n_rows, const T* x,
                                    T* y, const LinearGroup<T>* next) {
  gemms_.run(product_of(group), n_rows, x, group.w.data(), nullptr, y, stream_);
  LowRank<T> update = group.update(y);
  if (next != nullptr && n_rows <= kMostAheadRows) {
    const auto n_bytes = next->width * next->n_in * static_cast<std::int64_t>(sizeof(T));
    update.ahead = {.data = next->w.data(), .n_bytes = std::min(n_bytes, kAheadBytes) / 16 * 16};
  }
  return update;
}

template <typename T>
void TextForward<T>::run(const DevicePass& pass, const Observe& observe) {
  if (!uses_graphs_ || observe || pass.n_rows > kMostGraphRows) {
    enqueue(pass, observe);
  } else {
    graphs_.run(pass, stream_, [&] { enqueue(pass, {}); });
  }
}

template <typename T>
void TextForward<T>::enqueue(const DevicePass& pass, const Observe& observe) {
  const StreamHandle stream = stream_.get();
  const std::int64_t width = config_.hidden_size;
  rotary_table(pass.positions, frequency_.data(), axes_.data(), pass.n_rows,
               static_cast<std::int32_t>(config_.rotary_dim / 2), cosine_.data(), sine_.data(),
               stream);
  float* x = x_.data();
  const T* mixed = mixed_.data();
  std::int64_t n_rows = pass.n_rows;
  rms_norm(x, weights_.layers.front().input_norm.data(), eps_, n_rows, width, normed_.data(),
           stream);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights<T>& layer = weights_.layers[i];
    const std::string stage = layer_stage(static_cast<std::int64_t>(i));
    const Range range(stage);
    if (const auto* full = std::get_if<AttentionWeights<T>>(&layer.mixer)) {
      attend(layer, *full, pass);
    } else {
      delta_net(layer, std::get<DeltaNetWeights<T>>(layer.mixer), pass);
    }
    const bool last = i + 1 == weights_.layers.size();
    if (last) {  // nothing reads the other rows any more
      gather_rows(x, width, pass.read_rows, pass.n_reads, width, read_x_.data(), stream);
      gather_rows(mixed, layer.out.n_in, pass.read_rows, pass.n_reads, layer.out.n_in,
                  read_mixed_.data(), stream);
      x = read_x_.data();
      mixed = read_mixed_.data();
      n_rows = pass.n_reads;
    }
    const LowRank<T> out = multiply(layer.out, n_rows, mixed, update_.data(), &layer.gate_up);
    add_residual(out, update_.data(), n_rows, width, layer.post_norm.data(), eps_, x,
                 normed_.data(), stream);

    const LowRank<T> gate_up =
        multiply(layer.gate_up, n_rows, normed_.data(), gate_up_.data(), &layer.down);
    silu_multiply(gate_up, gate_up_.data(), n_rows, config_.intermediate_size, activated_.data(),
                  stream);
    const LowRank<T> down = multiply(layer.down, n_rows, activated_.data(), update_.data(),
                                     last ? nullptr : &weights_.layers[i + 1].in);
    if (last) {
      add_residual(down, update_.data(), n_rows, width, weights_.final_norm.data(), eps_, x,
                   final_.data(), stream);
    } else {
      add_residual(down, update_.data(), n_rows, width, weights_.layers[i + 1].input_norm.data(),
                   eps_, x, normed_.data(), stream);
    }
    if (observe) observe(stage, x, x == read_x_.data() ? nullptr : pass.read_rows);
  }
  if (observe) observe(std::string(kFinalNormStage), final_.data(), nullptr);
}

// mixed_ [rows, Hv Dv] of normed_.
template <typename T>
void TextForward<T>::delta_net(const LayerWeights<T>& layer, const DeltaNetWeights<T>& mixer,
                               const DevicePass& pass) {
  const StreamHandle stream = stream_.get();
  const std::int64_t stride = layer.in.width;
  T* projected = projected_.data();
  const LowRank<T> update = multiply(layer.in, pass.n_rows, normed_.data(), projected, &layer.out);
  add_low_rank(update, pass.n_rows, layer.in.n_out, projected, stream);
  const T* z = projected + layer.in.begin(1);
  const T* b = projected + layer.in.begin(2);
  const T* a = projected + layer.in.begin(3);

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
  const std::int64_t stride = layer.in.width;
  const std::int64_t query_width = config_.n_heads * config_.head_dim;
  const std::int64_t kv_width = config_.n_kv_heads * config_.head_dim;
  T* projected = projected_.data();
  const LowRank<T> update = multiply(layer.in, pass.n_rows, normed_.data(), projected, &layer.out);
  add_low_rank(update, pass.n_rows, layer.in.n_out, projected, stream);
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
