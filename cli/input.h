// Requests from files, directories and standard input, as (id, body) records in order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "line_reader.h"

namespace jemm::cli {

/// One request of the input, its body not yet parsed.
struct Record {
  std::string id;                                  ///< JSON text: a string or a number
  std::string body;                                ///< bytes for Request::parse
  std::vector<std::filesystem::path> image_files;  ///< named beside the request, not yet read
  std::optional<Error> error;   ///< the line is no request record; `body` is the line or empty
  std::uint64_t line = 0;       ///< in its file, from 1
  std::uint64_t input_end = 0;  ///< bytes of all inputs up to its end
  bool is_object = false;       ///< the line has the form of a JSON object
};

/// Reads a line as a bare body, {"id", "request"}, {"id", "raw"} or {"custom_id", "body"}, each
/// with or without "image_files". `default_id`: the id of a record without one (plain text).
/// `directory`: where the paths of image files begin.
Record parse_record(std::string line, const std::string& default_id,
                    const std::filesystem::path& directory);

/// The bytes of a record's image files. Throws Error::request("OSError").
std::vector<std::string> read_image_files(const Record& record);
/// The same for records that are answered in any case: the error becomes the record's.
std::vector<std::string> take_image_files(Record& record);

/// SHA-256 of a request: of its body or, with image files, of the hashes of body and files in
/// order.
std::string request_sha256(const Record& record, const std::vector<std::string>& image_files);

/// The inputs of a command, opened one after the other. A directory stands for its *.jsonl files
/// and its other *.json files (one request each, its id the file's stem), in name order.
class Inputs {
 public:
  /// `paths`: files, directories or "-"; none means "-". Throws Error(kIo) when one does not exist,
  /// before anything is read.
  explicit Inputs(const std::vector<std::string>& paths);

  /// The next record; blank lines are passed over. Throws Error(kIo).
  ReadStatus next(Record& record, Wait wait);

  /// Whether `path` names one of the files that are read.
  bool include(const std::string& path) const;

  /// Throws Error(kUsage), naming the input and what needs it, when one is no regular file.
  void require_regular_files(std::string_view needed_by) const;

  /// The share of the input that ends with a record (its input_end); unknown unless every input is
  /// a regular file.
  std::optional<double> fraction(std::uint64_t input_end) const;

  /// A closing line on standard error when there was no record, or when no line read was an object.
  void explain() const;

 private:
  struct Source {
    std::filesystem::path path;  ///< "-" for standard input
    bool single_request = false;
  };

  void add(const std::string& path);
  void open(const Source& source);
  ReadStatus next_single(Record& record);
  void count(const Record& record);
  std::string default_id(const Source& source) const;

  std::vector<Source> sources_;
  std::size_t source_idx_ = 0;
  std::unique_ptr<LineReader> reader_;
  std::uint64_t bytes_before_ = 0;  ///< of the sources that are done
  std::uint64_t n_records_ = 0;
  std::uint64_t n_objects_ = 0;
  std::optional<std::uint64_t> total_bytes_ = 0;
};

}  // namespace jemm::cli
