// Writes a golden directory ("jemm-golden/1") case by case: what golden.h reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/new_file.h"
#include "judge/record.h"

namespace jemm {

/// An image, or a question, as the object of its case that cases.jsonl and `jemm encode` show.
std::string record_json(const ImageRecord& image);
std::string record_json(const QuestionRecord& question);

/// A case as its line of cases.jsonl, with the newline. A body that is not plain UTF-8 is stored as
/// body_base64. Tensors are not part of it.
std::string case_line(const CaseRecord& record);

/// Files are written beside their places. finish() puts them there, the manifest last; before that
/// a golden in the directory stays as it is. In memory are ids and tensor names.
class GoldenWriter {
 public:
  /// Makes the directory. Throws Error(kUsage) when it holds a golden already, unless `force`;
  /// Error(kIo) when nothing can be written there.
  GoldenWriter(const std::filesystem::path& directory, bool force);
  ~GoldenWriter();
  GoldenWriter(const GoldenWriter&) = delete;
  GoldenWriter& operator=(const GoldenWriter&) = delete;

  /// Throws Error(kInput) for an id that is empty or has been there, Error(kIo).
  void add(const CaseRecord& record);

  /// What the manifest says beside format, mode "full" and counts.
  struct Source {
    std::string dtype, device;
    std::vector<std::pair<std::string, std::string>> versions;  ///< program, libraries
    std::map<std::string, std::string> checkpoint_sha256;
    std::optional<std::int64_t> synthetic_seed;
  };
  void finish(const Source& source);

 private:
  struct TensorPlace {
    std::string name;
    std::size_t n_values = 0;
  };
  void write_stages(NewFile& stages);

  std::filesystem::path directory_;
  NewFile cases_;
  std::optional<NewFile> values_;  ///< of the tensors, until the header before them is known
  std::vector<TensorPlace> tensors_;
  std::set<std::string> ids_;
  std::uint64_t n_ok_ = 0;
};

}  // namespace jemm
