// Time of the CUDA vision tower and of its kernels: vision_bench DIR, where DIR/base/config.json
// and DIR/adapter describe a model whose weights are made by the formula.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <cuda_bf16.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "gpu/kernels/fill.h"
#include "gpu/vision.h"

namespace {

using namespace jemm;
using namespace jemm::gpu;

constexpr int kRuns = 15;

struct Spread {
  double least = 0, median = 0, most = 0;
};

Spread spread_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2], times.back()};
}

// Device time of work that is enqueued by `enqueue`, after two runs to warm up.
Spread device_ms(const Stream& stream, const std::function<void()>& enqueue) {
  std::vector<double> times;
  for (int i = 0; i < kRuns + 2; ++i) {
    const Event start(Event::Timing::kMeasured), end(Event::Timing::kMeasured);
    start.record(stream);
    enqueue();
    end.record(stream);
    end.wait();
    if (i >= 2) times.push_back(end.milliseconds_since(start));
  }
  return spread_of(times);
}

void print(const char* what, const Spread& ms, double n_operations, double n_bytes) {
  std::printf("%-34s %9.4f ms (%.4f to %.4f)", what, ms.median, ms.least, ms.most);
  if (n_operations > 0) std::printf(", %.1f TFLOP/s", n_operations / ms.median * 1e-9);
  if (n_bytes > 0) std::printf(", %.2f TB/s", n_bytes / ms.median * 1e-9);
  std::printf("\n");
}

template <typename T>
DeviceArray<T> some_values(std::int64_t n, const Stream& stream) {
  DeviceArray<T> values(n);
  fill_by_formula({.name_hash = 17, .first = 0, .centre = 0, .width = 1}, n, values.data(),
                  stream.get());
  return values;
}

template <typename T>
void time_kernels(const VisionConfig& config, std::int32_t n_rows, std::int32_t n_columns) {
  const Stream stream;
  const std::int64_t n = std::int64_t{n_rows} * n_columns, width = config.hidden_size;
  const std::int64_t head_dim = width / config.n_heads;
  std::vector<PatchPlace> places;
  std::vector<ImageTile> tiles;
  for (std::int32_t i = 0; i < n; ++i) {
    places.push_back({i / n_columns, i % n_columns, n_rows, n_columns});
    if (i % kImageQueries == 0) tiles.push_back({0, static_cast<std::int32_t>(n), i});
  }
  const std::vector<Turn> turns(
      static_cast<std::size_t>(std::max(n_rows, n_columns) * head_dim / 4), Turn{0.6f, 0.8f});
  DeviceArray<PatchPlace> device_places(static_cast<std::int64_t>(places.size()));
  DeviceArray<ImageTile> device_tiles(static_cast<std::int64_t>(tiles.size()));
  DeviceArray<Turn> device_turns(static_cast<std::int64_t>(turns.size()));
  copy_to_device(device_places.data(), places.data(), places.size() * sizeof(PatchPlace), stream);
  copy_to_device(device_tiles.data(), tiles.data(), tiles.size() * sizeof(ImageTile), stream);
  copy_to_device(device_turns.data(), turns.data(), turns.size() * sizeof(Turn), stream);
  const auto qkv = some_values<T>(n * 3 * width, stream), x = some_values<T>(n * width, stream);
  const auto update = some_values<T>(n * width, stream), y = some_values<T>(n * width, stream);
  const auto inner = some_values<T>(n * config.intermediate_size, stream);
  const auto weight = some_values<T>(width, stream);
  const auto grid = some_values<T>(config.n_position_embeddings * width, stream);
  const auto bytes = [](std::int64_t n_values) {
    return static_cast<double>(n_values) * static_cast<double>(sizeof(T));
  };

  print("attend_images",
        device_ms(stream,
                  [&] {
                    attend_images(
                        ImageAttention<T>{.qkv = qkv.data(),
                                          .tiles = device_tiles.data(),
                                          .n_tiles = static_cast<std::int64_t>(tiles.size()),
                                          .n_heads = config.n_heads,
                                          .head_dim = head_dim,
                                          .attended = y.data()},
                        stream.get());
                  }),
        4.0 * static_cast<double>(n) * static_cast<double>(n * width), 0);
  print("rotate_patches",
        device_ms(stream,
                  [&] {
                    rotate_patches(device_places.data(), device_turns.data(), qkv.data(), n,
                                   config.n_heads, head_dim, stream.get());
                  }),
        0, bytes(4 * n * width));
  print("layer_norm with sum",
        device_ms(stream,
                  [&] {
                    layer_norm(LayerNorm<T>{.x = x.data(),
                                            .update = update.data(),
                                            .weight = weight.data(),
                                            .bias = weight.data(),
                                            .eps = 1e-6f,
                                            .y = y.data()},
                               n, width, stream.get());
                  }),
        0, bytes(4 * n * width));
  print("gelu_tanh",
        device_ms(stream,
                  [&] { gelu_tanh(inner.data(), n * config.intermediate_size, stream.get()); }),
        0, bytes(2 * n * config.intermediate_size));
  print("add_positions",
        device_ms(stream,
                  [&] {
                    add_positions(grid.data(), 48, device_places.data(), x.data(), n, width,
                                  stream.get());
                  }),
        0, bytes(6 * n * width));
}

template <typename T>
void time_tower(const Checkpoint& checkpoint) {
  const Stream stream;
  Gemms gemms;
  Loader loader(checkpoint);
  VisionTower<T> tower(loader, gemms, stream);
  const std::int64_t n_values =
      checkpoint.config().vision.n_channels * checkpoint.config().vision.temporal_patch_size *
      checkpoint.config().vision.patch_size * checkpoint.config().vision.patch_size;
  struct Shape {
    const char* name;
    std::size_t n_images;
    std::int64_t n_rows, n_columns;
  };
  for (const Shape& shape : {Shape{"tower, 1280x800", 1, 50, 80},
                             {"tower, 4 of 640x480", 4, 30, 40},
                             {"tower, 256x256", 1, 16, 16}}) {
    std::vector<float> values(static_cast<std::size_t>(shape.n_rows * shape.n_columns * n_values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (static_cast<float>((7919 * i + 31 * i / 1000) % 256) - 127.5f) / 127.5f;
    }
    const std::vector<ImagePatches> images(shape.n_images,
                                           {{1, shape.n_rows, shape.n_columns}, values});
    std::vector<double> times;
    for (int i = 0; i < kRuns + 2; ++i) {
      const auto start = std::chrono::steady_clock::now();
      tower.run(images);
      const std::chrono::duration<double, std::milli> spent =
          std::chrono::steady_clock::now() - start;
      if (i >= 2) times.push_back(spent.count());
    }
    print(shape.name, spread_of(times), 0, 0);
  }
}

template <typename T>
void time_all(const char* name, const Checkpoint& checkpoint) {
  std::printf("%s\n", name);
  time_kernels<T>(checkpoint.config().vision, 50, 80);
  time_tower<T>(checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string directory = argc == 2 ? argv[1] : ".";
    const auto checkpoint = open_synthetic(
        {open_directory(directory + "/base"), open_directory(directory + "/adapter")}, 1);
    time_all<bf16>("BF16; kernels at 1280x800, towers with upload, wall clock", *checkpoint);
    time_all<float>("FP32", *checkpoint);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
