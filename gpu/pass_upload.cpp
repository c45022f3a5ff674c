// Packs the arrays of a pass behind each other.
#include "gpu/pass_upload.h"

#include <bit>
#include <cstring>
#include <span>

namespace jemm::gpu {
namespace {

constexpr std::size_t kAlignment = 16;

// Lays arrays out, first to learn their places, then to copy them.
class Packer {
 public:
  template <typename T>
  std::size_t add(std::span<const T> values, std::byte* host) {
    const std::size_t begin = size_;
    if (host != nullptr && !values.empty()) {
      std::memcpy(host + begin, values.data(), values.size_bytes());
    }
    size_ += (values.size_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

struct Places {
  std::size_t token_ids, positions, read_rows, previous, chunks, delta_runs, attention_runs, tiles;
  std::size_t size;
};

Places pack(const Forest& forest, std::span<const std::int32_t> read_rows, const PassPlan& plan,
            std::byte* host) {
  Packer packer;
  Places places{};
  places.token_ids = packer.add(std::span(forest.token_ids), host);
  places.positions = packer.add(std::span(forest.positions), host);
  places.read_rows = packer.add(read_rows, host);
  places.previous = packer.add(std::span(plan.previous), host);
  places.chunks = packer.add(std::span(plan.chunks), host);
  places.delta_runs = packer.add(std::span(plan.delta_runs), host);
  places.attention_runs = packer.add(std::span(plan.attention_runs), host);
  places.tiles = packer.add(std::span(plan.tiles), host);
  places.size = packer.size();
  return places;
}

}  // namespace

DevicePass PassUpload::run(const Forest& forest, const PassPlan& plan, const Stream& stream) {
  std::vector<std::int32_t> read_rows;
  for (const std::int64_t row : forest.read_rows) {
    read_rows.push_back(static_cast<std::int32_t>(row));
  }
  const Places places = pack(forest, read_rows, plan, nullptr);
  // The device first and by this pass's need: where there is no room for a plan too large, later
  // ones ask for less.
  const std::size_t size = std::bit_ceil(places.size);
  const std::byte* device = device_.reserve(static_cast<std::int64_t>(size), "the plan of a pass");
  if (size > host_.size()) host_ = PinnedBytes(size);
  pack(forest, read_rows, plan, host_.data());
  copy_to_device(device_.data(), host_.data(), places.size, stream);
  const auto at = [device]<typename T>(std::size_t place, const T*& pointer) {
    pointer = reinterpret_cast<const T*>(device + place);
  };
  DevicePass pass{.n_rows = forest.n_rows(),
                  .n_reads = std::ssize(forest.read_rows),
                  .n_chunks = std::ssize(plan.chunks),
                  .n_tiles = std::ssize(plan.tiles),
                  .levels = plan.levels,
                  .n_slots = plan.n_slots};
  at(places.token_ids, pass.token_ids);
  at(places.positions, pass.positions);
  at(places.read_rows, pass.read_rows);
  at(places.previous, pass.previous);
  at(places.chunks, pass.chunks);
  at(places.delta_runs, pass.delta_runs);
  at(places.attention_runs, pass.attention_runs);
  at(places.tiles, pass.tiles);
  return pass;
}

}  // namespace jemm::gpu
