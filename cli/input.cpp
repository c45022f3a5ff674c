#include "input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/files.h"
#include "base/sha256.h"
#include "contract/answer.h"
#include "contract/json.h"
#include "contract/json_members.h"
#include "contract/request.h"
#include "image_files.h"
#include "progress.h"

namespace jemm::cli {
namespace {

// A body inside a JSON string may take six bytes for one ("\u0041"); ids and the like come on top.
constexpr std::size_t kMaxLineBytes = 6 * kMaxBodyBytes + (std::size_t{1} << 20);

constexpr std::string_view kRecordKeys[] = {"id",      "custom_id", "questions",  "raw",
                                            "request", "body",      "image_files"};

const JsonMember* find(const std::vector<JsonMember>& members, std::string_view key) {
  const auto last = std::find_if(members.rbegin(), members.rend(),
                                 [&](const JsonMember& member) { return member.key == key; });
  return last == members.rend() ? nullptr : &*last;
}

/// An id as JSON text: a string, or for wrapped requests an integer. Nothing for any other value.
std::optional<std::string> id_text(const JsonMember& member, bool bare) {
  const JsonDocument document = parse_json(member.value);
  const JsonValue value = document.root();
  if (value.is_string()) return json_string(value.text());
  if (!bare && value.kind() == JsonKind::kInt) return std::string(value.text());
  return std::nullopt;
}

bool is_blank(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::vector<std::string> read_image_files(const Record& record) {
  std::vector<std::string> files;
  for (const std::filesystem::path& path : record.image_files) {
    files.push_back(read_image_file(path));
  }
  return files;
}

std::vector<std::string> take_image_files(Record& record) {
  try {
    return read_image_files(record);
  } catch (const Error& error) {
    record.error = error;
    return {};
  }
}

std::string request_sha256(const Record& record, const std::vector<std::string>& image_files) {
  const std::string of_body = sha256_hex(record.body);
  if (image_files.empty()) return of_body;
  Sha256 sum;
  sum.update(of_body);
  for (const std::string& file : image_files) sum.update(sha256_hex(file));
  return sum.hex();
}

Record parse_record(std::string line, const std::string& default_id,
                    const std::filesystem::path& directory) {
  Record record;
  record.id = json_string(default_id);
  if (line.size() > kMaxLineBytes) {
    record.error = Error::request("ValueError", "invalid request size");
    return record;
  }
  record.body = std::move(line);
  std::vector<JsonMember> members;
  try {
    members = json_members(record.body, kRecordKeys);
  } catch (const Error&) {
    return record;  // not an object: the request reader words the refusal
  }
  record.is_object = true;
  const bool bare = find(members, "questions") != nullptr;
  const JsonMember* content = nullptr;
  for (const char* key : {"raw", "request", "body"}) {
    if (!bare && content == nullptr) content = find(members, key);
  }
  if (const JsonMember* files = find(members, "image_files")) {
    try {
      record.image_files = image_paths(files->value, directory);
    } catch (const Error& error) {
      record.error = error;
    }
  }
  try {
    if (content != nullptr) parse_json(decode_json_bytes(record.body));
    const JsonMember* id = find(members, "id");
    if (id == nullptr && !bare) id = find(members, "custom_id");
    if (id != nullptr) record.id = id_text(*id, bare).value_or(record.id);
    if (content != nullptr) {
      record.body =
          content->key == "raw" ? json_string_value(content->value) : std::string(content->value);
    }
  } catch (const Error& error) {
    if (!bare) record.error = error;  // a bare body's own refusal is the request reader's to word
  }
  return record;
}

Inputs::Inputs(const std::vector<std::string>& paths) {
  if (paths.empty()) add("-");
  for (const std::string& path : paths) add(path);
}

void Inputs::add(const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (text == "-") {
    sources_.push_back({text, false});
    total_bytes_.reset();
    return;
  }
  if (!fs::is_directory(text, error)) {
    if (!fs::exists(text, error)) {
      fail(ErrorKind::kIo, "cannot open {}: {}", text, error ? error.message() : "no such file");
    }
    sources_.push_back({text, false});
    const std::uintmax_t size = fs::file_size(text, error);
    if (error) total_bytes_.reset();
    if (total_bytes_) *total_bytes_ += size;
    return;
  }
  std::vector<Source> found;
  fs::directory_iterator entry(text, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if (extension != ".jsonl" && extension != ".json") continue;
    struct stat status {};
    if (::stat(entry->path().c_str(), &status) != 0) {
      fail(ErrorKind::kIo, "cannot open {}: {}", entry->path().string(), std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) continue;
    found.push_back({entry->path(), extension == ".json"});
    if (total_bytes_) *total_bytes_ += static_cast<std::uint64_t>(status.st_size);
  }
  if (error) fail(ErrorKind::kIo, "cannot read {}: {}", text, error.message());
  std::sort(found.begin(), found.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  sources_.insert(sources_.end(), found.begin(), found.end());
}

void Inputs::open(const Source& source) {
  if (source.path == "-") {
    if (::isatty(STDIN_FILENO) == 1) {
      log_line("reading requests from the terminal; Ctrl-D ends");
    }
    reader_ = std::make_unique<LineReader>(STDIN_FILENO, false, "standard input", kMaxLineBytes);
    return;
  }
  const int fd = ::open(source.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    fail(ErrorKind::kIo, "cannot open {}: {}", source.path.string(), std::strerror(errno));
  }
  reader_ = std::make_unique<LineReader>(fd, true, source.path.string(), kMaxLineBytes);
}

ReadStatus Inputs::next(Record& record, Wait wait) {
  for (; source_idx_ < sources_.size(); ++source_idx_) {
    const Source& source = sources_[source_idx_];
    if (source.single_request) {
      ++source_idx_;
      return next_single(record);
    }
    if (!reader_) open(source);
    std::string line;
    for (;;) {
      const ReadStatus status = reader_->next(line, wait);
      if (status == ReadStatus::kEnd) break;
      if (status != ReadStatus::kLine) return status;
      if (is_blank(line)) continue;
      record = parse_record(std::move(line), default_id(source), source.path.parent_path());
      record.line = reader_->line_number();
      record.input_end = bytes_before_ + reader_->bytes_consumed();
      count(record);
      return ReadStatus::kLine;
    }
    bytes_before_ += reader_->bytes_consumed();
    reader_.reset();
  }
  return ReadStatus::kEnd;
}

ReadStatus Inputs::next_single(Record& record) {
  const std::filesystem::path& path = sources_[source_idx_ - 1].path;
  const Blob content = map_file(path);
  bytes_before_ += content.bytes.size();
  const std::string stem = path.stem().string();
  record = parse_record(std::string(content.text().substr(0, kMaxLineBytes + 1)), stem,
                        path.parent_path());
  record.id = json_string(stem);
  record.line = 1;
  record.input_end = bytes_before_;
  count(record);
  return ReadStatus::kLine;
}

void Inputs::count(const Record& record) {
  ++n_records_;
  if (record.is_object) ++n_objects_;
}

std::string Inputs::default_id(const Source& source) const {
  const std::string number = std::to_string(reader_->line_number());
  if (sources_.size() == 1 || source.path == "-") return number;
  return source.path.filename().string() + ":" + number;
}

bool Inputs::include(const std::string& path) const {
  return std::any_of(sources_.begin(), sources_.end(), [&](const Source& source) {
    std::error_code ignored;
    return std::filesystem::equivalent(source.path == "-" ? "/dev/stdin" : source.path, path,
                                       ignored);
  });
}

void Inputs::require_regular_files(std::string_view needed_by) const {
  for (const Source& source : sources_) {
    struct stat status {};
    const bool is_standard_input = source.path == "-";
    const int result =
        is_standard_input ? ::fstat(STDIN_FILENO, &status) : ::stat(source.path.c_str(), &status);
    if (result == 0 && S_ISREG(status.st_mode)) continue;
    fail(ErrorKind::kUsage, "{} needs regular files, and {} is none", needed_by,
         is_standard_input ? "standard input" : source.path.string());
  }
}

std::optional<double> Inputs::fraction(std::uint64_t input_end) const {
  if (!total_bytes_ || *total_bytes_ == 0) return std::nullopt;
  return static_cast<double>(input_end) / static_cast<double>(*total_bytes_);
}

void Inputs::explain() const {
  if (n_records_ == 0) {
    log_line("error: the input holds no requests");
  } else if (n_objects_ == 0) {
    log_line("no line was a JSON object: the input is JSON lines, one request a line");
  }
}

}  // namespace jemm::cli
