// Reads the safetensors format from untrusted bytes. Knows no models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkpoint/tensor.h"

namespace jemm {

/// One tensor as the header describes it, already checked.
struct SafetensorsEntry {
  std::string name;
  std::string_view dtype;  ///< static text: "BF16", "I64", ...
  Shape shape;
  std::size_t begin = 0;  ///< offsets into the file's bytes
  std::size_t end = 0;
};

/// A file whose header has been checked by the rules of the safetensors library 0.8: the tensors
/// cover everything behind the header, in some order, without overlap or hole, and each has as many
/// bytes as its shape and type need. Stricter than the library in three points that no writer uses:
/// a tensor name given twice, a description that is an array, and a type that is an object.
class SafetensorsFile {
 public:
  /// `name` is for messages. Throws Error(kInput) saying what is wrong and where.
  SafetensorsFile(Blob file, std::string name);

  const std::string& name() const { return name_; }
  const Blob& blob() const { return file_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  ///< sorted by name
  const SafetensorsEntry* find(std::string_view tensor) const;

  /// Throws Error(kInput) when the entry's type is none that weights are kept in.
  DType weight_type(const SafetensorsEntry& entry) const;
  /// An entry of this file as a tensor. Bytes that are not aligned for their type are copied.
  /// Throws as weight_type does.
  Tensor tensor(const SafetensorsEntry& entry) const;

 private:
  Blob file_;
  std::string name_;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace jemm
