// A golden directory ("jemm-golden/1"): what a reference said, and where it came from.
#pragma once

#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/record.h"

namespace jemm {

class SafetensorsFile;

struct GoldenManifest {
  std::string mode;                                      ///< "contract", "full", ...
  std::string dtype;                                     ///< "float32", "bfloat16"
  std::map<std::string, std::string> checkpoint_sha256;  ///< by file name, base and adapter alike
  std::optional<std::int64_t> synthetic_seed;
  std::optional<std::uint64_t> n_cases;  ///< as the manifest claims
  /// The rest, for reports: device, reference revision, library versions.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// A directory that is read case by case. Holds 24 bytes a case in memory and the header of
/// stages.safetensors. Not thread-safe.
class Golden {
 public:
  /// Reads the manifest and finds all cases. Throws Error(kIo) for a missing file and Error(kInput)
  /// for an unusable one.
  explicit Golden(const std::string& directory);
  ~Golden();
  Golden(Golden&&) noexcept;

  const std::string& name() const { return directory_; }
  const GoldenManifest& manifest() const { return manifest_; }
  std::uint64_t n_cases() const { return n_cases_; }
  bool has_tensors() const { return stages_ != nullptr; }
  /// Ids that occur more than once, each one once.
  const std::vector<std::string>& duplicates() const { return duplicates_; }
  /// Tensors of stages.safetensors whose name begins with no case's id; the first of them.
  std::uint64_t n_stray_tensors() const { return n_stray_tensors_; }
  const std::string& stray_tensor() const { return stray_tensor_; }

  /// The next case in the order of the file; false behind the last one. Throws Error(kInput).
  bool next(CaseRecord& record);
  void rewind();
  /// The case of that id, the first one of several; nothing when there is none.
  std::optional<CaseRecord> find(const std::string& id);
  bool contains(const std::string& id) const;

 private:
  using Key = std::array<std::uint64_t, 2>;  // of an id: the first half of its SHA-256
  struct Entry {
    Key key;
    std::uint64_t offset = 0;
    auto operator<=>(const Entry&) const = default;
  };

  static Key key_of(const std::string& id);
  void read_manifest();
  void index_cases();
  bool read_line();
  void mark_tensors(const std::string& id, std::vector<bool>& claimed) const;
  void add_tensors(CaseRecord& record) const;
  std::string where() const;

  std::string directory_;
  GoldenManifest manifest_;
  std::unique_ptr<const SafetensorsFile> stages_;
  std::ifstream cases_;
  std::string line_;
  std::uint64_t line_begin_ = 0;   // offset of line_
  std::uint64_t next_begin_ = 0;   // offset behind it
  std::uint64_t line_number_ = 0;  // 0: unknown, after find
  std::uint64_t n_cases_ = 0;
  std::vector<Entry> index_;  // sorted
  std::vector<std::string> duplicates_;
  std::uint64_t n_stray_tensors_ = 0;
  std::string stray_tensor_;
};

/// What makes two lists of checkpoint files, or two seeds, those of different checkpoints: a file
/// that both have with another hash, or unequal seeds. Empty when nothing does. Nothing in common
/// is no difference.
std::string checkpoint_difference(const std::map<std::string, std::string>& a,
                                  std::optional<std::int64_t> seed_a,
                                  const std::map<std::string, std::string>& b,
                                  std::optional<std::int64_t> seed_b);

}  // namespace jemm
