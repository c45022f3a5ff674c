// The base model's tensors in one safetensors file or several, checked against the registry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/registry.h"
#include "checkpoint/safetensors.h"

namespace jemm {

/// A file as it was read, for hashing.
struct NamedBlob {
  std::string name;
  Blob blob;
};

/// "mtp.*": the multi-token heads, which the model ignores.
bool is_ignored_tensor(std::string_view name);

/// The names that BaseWeights reads in a directory, whether the files are there or not. Throws
/// Error(kInput) for an index that cannot be read.
std::vector<std::string> weight_file_names(const FileSource& base);

class BaseWeights {
 public:
  /// Reads model.safetensors, or without it the shards that model.safetensors.index.json names
  /// (Transformers prefers them in this order too). Throws Error(kInput) that lists what is
  /// missing, unexpected (but for ignored tensors) or of another shape or type.
  BaseWeights(const FileSource& base, const TensorRegistry& registry);

  /// `info` must be the registry's.
  Tensor tensor(const TensorInfo& info) const;
  /// What was read: the safetensors files, and the index when it decided.
  const std::vector<NamedBlob>& files() const { return files_; }
  /// The safetensors files, in the order of files().
  const std::vector<std::unique_ptr<SafetensorsFile>>& shards() const { return shards_; }

 private:
  struct Place {
    const SafetensorsFile* file = nullptr;
    const SafetensorsEntry* entry = nullptr;
  };
  void read_file(const FileSource& base, const std::string& name);
  void read_sharded(const FileSource& base);
  void place_all(const std::string& directory);
  void check_shapes() const;

  const TensorRegistry& registry_;
  std::vector<NamedBlob> files_;
  std::vector<std::unique_ptr<SafetensorsFile>> shards_;
  std::vector<Place> places_;  // one a tensor of the registry
};

}  // namespace jemm
