// Checkpoints made piece by piece from the input: safetensors files whose parts fit or lie, and
// shards with an index that is right or wrong. What is taken must be what an independent reading of
// the rules takes.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoint/base_weights.h"
#include "checkpoint/manifest.h"
#include "checkpoint/weight_scan.h"

namespace {

using namespace jemm;

/// Decisions from the input; 0, the ordinary choice, when it is used up.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

struct Described {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

const std::map<std::string, unsigned> kBits = {{"BF16", 16}, {"F16", 16}, {"F32", 32}, {"F64", 64},
                                               {"I64", 64},  {"U8", 8},   {"BOOL", 8}};

std::string file_text(const std::vector<Described>& tensors, std::size_t n_bytes,
                      std::uint8_t lie) {
  std::string header = "{";
  for (const Described& t : tensors) {
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", t.name, t.dtype, fmt::join(t.shape, ","),
                          t.begin, t.end);
  }
  header += '}';
  header.append(lie % 8, ' ');
  std::uint64_t length = header.size();
  if (lie >= 250) length += lie - 252U;  // too long or too short by a few
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(n_bytes, '\x01');
}

/// The rules, with numbers that cannot overflow.
bool is_sound(std::vector<Described> tensors, std::size_t n_bytes) {
  std::set<std::string> names;
  for (const Described& t : tensors) {
    if (!names.insert(t.name).second) return false;
    // The library multiplies in 64 bits, the extents in their order, then the type's size.
    unsigned __int128 bits = 1;
    std::vector<std::uint64_t> factors = t.shape;
    factors.push_back(kBits.at(t.dtype));
    for (const std::uint64_t factor : factors) {
      bits *= factor;
      if (bits >> 64 != 0) return false;
    }
    if (t.end < t.begin || bits != static_cast<unsigned __int128>(t.end - t.begin) * 8) {
      return false;
    }
    for (const std::uint64_t extent : t.shape) {
      if (extent > INT64_MAX) return false;
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const Described& a, const Described& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const Described& t : tensors) {
    if (t.begin != covered) return false;
    covered = t.end;
  }
  return covered == n_bytes;
}

std::uint64_t extent(Choices& choices) {
  const std::uint8_t kind = choices.byte();
  return kind < 200 ? kind % 5 : kind < 250 ? kind : choices.number();
}

void one_file(Choices& choices) {
  std::vector<Described> tensors;
  std::uint64_t offset = 0;
  const std::size_t n_tensors = choices.byte() % 7;
  for (std::size_t i = 0; i < n_tensors; ++i) {
    Described t;
    t.name = fmt::format("t{}", choices.byte() < 240 ? i : 0);
    auto dtype = kBits.begin();
    std::advance(dtype, choices.byte() % kBits.size());
    t.dtype = dtype->first;
    std::uint64_t bytes = dtype->second / 8;
    for (std::size_t axis = choices.byte() % 4; axis > 0; --axis) {
      t.shape.push_back(extent(choices));
      bytes *= t.shape.back();
    }
    t.begin = offset;
    t.end = offset + bytes;
    const std::uint8_t lie = choices.byte();
    if (lie == 255) t.begin = choices.number();
    if (lie == 254) t.end = choices.number();
    if (lie == 253) ++t.end;
    if (lie == 252) std::swap(t.begin, t.end);
    offset = t.end;
    tensors.push_back(t);
  }
  if (choices.byte() % 2 == 1) std::reverse(tensors.begin(), tensors.end());
  const std::uint8_t data_lie = choices.byte();
  const std::size_t n_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(offset, 1 << 16)) +
                              (data_lie >= 250 ? data_lie - 249U : 0U);
  const std::uint8_t header_lie = choices.byte();
  const auto text = std::make_shared<std::string>(file_text(tensors, n_bytes, header_lie));
  bool taken = false;
  try {
    const SafetensorsFile file({std::as_bytes(std::span(*text)), text}, "FILE");
    taken = true;
    for (const Described& t : tensors) {
      const SafetensorsEntry* entry = file.find(t.name);
      if (entry == nullptr || entry->end - entry->begin != t.end - t.begin) __builtin_trap();
    }
    try {
      if (scan_mapped(file).size() != 64) __builtin_trap();
    } catch (const Error&) {  // a type that is none of weights
    }
  } catch (const Error&) {
  }
  if (header_lie >= 250 && header_lie != 252) return;  // what is then read is another header
  if (taken != is_sound(tensors, n_bytes)) __builtin_trap();
}

constexpr const char* kConfig = R"({"model_type":"qwen3_5","image_token_id":1,"video_token_id":2,
  "text_config":{"vocab_size":4,"hidden_size":2,"intermediate_size":2,"num_hidden_layers":1,
    "num_attention_heads":1,"num_key_value_heads":1,"head_dim":8,"linear_num_key_heads":1,
    "linear_num_value_heads":1,"linear_key_head_dim":1,"linear_value_head_dim":1,
    "linear_conv_kernel_dim":2,"rope_parameters":{"mrope_section":[1,0,0]}},
  "vision_config":{"depth":1,"hidden_size":4,"intermediate_size":2,"num_heads":1,"patch_size":1,
    "temporal_patch_size":1,"spatial_merge_size":1,"num_position_embeddings":1,
    "out_hidden_size":2}})";

class Files : public FileSource {
 public:
  std::map<std::string, std::string> files;
  std::string name() const override { return "BASE"; }
  bool contains(std::string_view file) const override { return files.contains(std::string(file)); }
  Blob open(std::string_view file) const override {
    const std::string& content = files.at(std::string(file));
    return {std::as_bytes(std::span(content)), nullptr};
  }
};

constexpr std::size_t kShards = 3;

struct Sharded {
  std::vector<Described> shards[kShards];
  std::uint64_t sizes[kShards] = {};
  std::map<std::string, std::size_t> index;  ///< tensor -> shard
  std::set<std::size_t> absent;

  void place(const std::string& name, const Shape& shape, std::size_t shard) {
    Described t{name, "BF16", {shape.begin(), shape.end()}, sizes[shard], 0};
    t.end = t.begin + 2 * static_cast<std::uint64_t>(element_count(shape));
    sizes[shard] = t.end;
    shards[shard].push_back(t);
  }

  Files files() const {
    Files files;
    std::string lines;
    for (const auto& [tensor, shard] : index) {
      lines += fmt::format(R"({}"{}":"s{}")", lines.empty() ? "" : ",", tensor, shard);
    }
    files.files["model.safetensors.index.json"] = R"({"weight_map":{)" + lines + "}}";
    for (std::size_t i = 0; i < kShards; ++i) {
      if (absent.contains(i)) continue;
      files.files[fmt::format("s{}", i)] =
          file_text(shards[i], static_cast<std::size_t>(sizes[i]), 0);
    }
    return files;
  }

  /// Every shard that the index names is there and holds what is said of it; of what is in them,
  /// each tensor of the model is there once, in its shape, and nothing else but "mtp".
  bool is_sound(const TensorRegistry& registry) const {
    std::set<std::size_t> read;
    for (const auto& [tensor, shard] : index) read.insert(shard);
    std::map<std::string, int> n_copies;
    std::map<std::string, std::set<std::size_t>> places;
    for (const std::size_t shard : read) {
      if (absent.contains(shard)) return false;
      for (const Described& t : shards[shard]) {
        places[t.name].insert(shard);
        if (t.name.starts_with("mtp")) continue;
        const TensorInfo* info = registry.find(t.name);
        if (info == nullptr || ++n_copies[t.name] > 1) return false;
        if (!std::equal(t.shape.begin(), t.shape.end(), info->shape.begin(), info->shape.end(),
                        [](std::uint64_t a, std::int64_t b) {
                          return a == static_cast<std::uint64_t>(b);
                        })) {
          return false;
        }
      }
    }
    for (const auto& [tensor, shard] : index) {
      if (!places[tensor].contains(shard)) return false;
    }
    return n_copies.size() == registry.tensors().size();
  }
};

void shards_and_index(Choices& choices) {
  static const TensorRegistry registry(parse_model_config(kConfig, "CONFIG"));
  Sharded sharded;
  for (const TensorInfo& info : registry.tensors()) {
    const std::uint8_t choice = choices.byte();
    const std::size_t shard = choice % kShards;
    const std::size_t next = (shard + 1) % kShards;
    if (choice != 255) sharded.index[info.name] = choice == 251 ? next : shard;
    Shape shape = info.shape;
    if (choice == 253) shape.push_back(1);
    if (choice != 254) sharded.place(info.name, shape, shard);
    if (choice == 252) sharded.place(info.name, shape, next);
  }
  if (choices.byte() == 255) sharded.place("unexpected.weight", {1}, 0);
  if (choices.byte() == 255) sharded.place("mtp.fc.weight", {1}, 1);
  const std::uint8_t absent = choices.byte();
  if (absent > 252) sharded.absent.insert(255U - absent);
  if (sharded.index.empty()) return;
  const Files files = sharded.files();
  bool taken = false;
  try {
    const BaseWeights weights(files, registry);
    taken = true;
    for (const TensorInfo& info : registry.tensors()) {
      if (weights.tensor(info).shape != info.shape) __builtin_trap();
    }
  } catch (const Error&) {
  }
  if (taken != sharded.is_sound(registry)) __builtin_trap();
}

void manifest(Choices& choices) {
  ExportManifest base;
  base.inputs = {{"base/config.json", 1, 2, std::string(64, 'a')}};
  base.outputs = {{"config.json", 1, 2, std::string(64, 'b')}};
  base.decision = {1, 1, 0.5};
  std::string text = manifest_text(base);
  for (int i = choices.byte() % 8; i > 0; --i) {  // replaced, cut or doubled bytes
    const std::size_t at = choices.number() % text.size();
    const std::uint8_t how = choices.byte();
    if (how % 3 == 0) text[at] = static_cast<char>(choices.byte());
    if (how % 3 == 1) text.erase(at, 1);
    if (how % 3 == 2) text.insert(at, text, at, choices.byte());
  }
  const ExportManifest parsed = parse_manifest(text, "FILE");
  const std::string again = manifest_text(parsed);
  if (manifest_text(parse_manifest(again, "FILE")) != again) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  try {
    switch (choices.byte() % 3) {
      case 0:
        one_file(choices);
        break;
      case 1:
        shards_and_index(choices);
        break;
      case 2:
        manifest(choices);
        break;
    }
  } catch (const jemm::Error&) {
  }
  return 0;
}
