// A golden directory ("jemm-golden/1"): what a reference said, and where it came from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "judge/indexed_lines.h"
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

/// A directory that is read case by case; in memory is its index, and the header of
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
  std::uint64_t n_cases() const { return cases_->size(); }
  bool has_tensors() const { return stages_ != nullptr; }
  /// Ids that occur more than once, each one once.
  const std::vector<std::string>& duplicates() const { return cases_->duplicates(); }
  /// Tensors of stages.safetensors whose name begins with no case's id.
  std::uint64_t n_stray_tensors() const { return n_stray_tensors_; }

  /// The next case in the order of the file; false behind the last one. Throws Error(kInput).
  bool next(CaseRecord& record);
  void rewind() { cases_->rewind(); }
  /// The case of that id, the first one of several; nothing when there is none.
  std::optional<CaseRecord> find(const std::string& id);
  bool contains(const std::string& id) const { return cases_->contains(id); }

 private:
  void read_manifest();
  void open_cases();
  CaseRecord read_whole(std::string_view line) const;
  void add_tensors(CaseRecord& record) const;
  void note_lost_tensors(CaseRecord& record) const;

  std::string directory_;
  GoldenManifest manifest_;
  std::unique_ptr<const SafetensorsFile> stages_;
  std::optional<IndexedLines> cases_;
  std::set<StageId> tensor_stages_;  ///< of which any question has a tensor
  std::uint64_t n_stray_tensors_ = 0;
};

/// What makes two lists of checkpoint files, or two seeds, those of different checkpoints: a file
/// that both have with another hash, or unequal seeds. Empty when nothing does. Nothing in common
/// is no difference.
std::string checkpoint_difference(const std::map<std::string, std::string>& a,
                                  std::optional<std::int64_t> seed_a,
                                  const std::map<std::string, std::string>& b,
                                  std::optional<std::int64_t> seed_b);

}  // namespace jemm
