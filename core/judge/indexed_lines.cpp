// Lines by the hash of their key.
#include "judge/indexed_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"

namespace jemm {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{256} << 20;
constexpr int kEnd = std::char_traits<char>::eof();

}  // namespace

IndexedLines::IndexedLines(const std::string& path, KeyOf key_of) : path_(path) {
  map_file(path);  // for its errors: no such file, not a regular one
  file_.open(path, std::ios::binary);
  rewind();
  while (read_line()) index_.push_back({hash(key_of(line_, where())), line_begin_});
  std::sort(index_.begin(), index_.end());
  for (std::size_t i = 1; i < index_.size(); ++i) {
    const bool again = index_[i].key == index_[i - 1].key;
    const bool noted = i > 1 && index_[i].key == index_[i - 2].key;
    if (!again || noted) continue;
    seek(index_[i].offset);
    read_line();
    duplicates_.push_back(key_of(line_, where()));
  }
  rewind();
}

IndexedLines::Key IndexedLines::hash(std::string_view key) {
  const std::string hex = sha256_hex(key);
  Key halves{};
  for (std::size_t i = 0; i < halves.size(); ++i) {
    std::from_chars(hex.data() + 16 * i, hex.data() + 16 * (i + 1), halves[i], 16);
  }
  return halves;
}

const IndexedLines::Entry* IndexedLines::entry(std::string_view key) const {
  const Key wanted = hash(key);
  const auto found = std::lower_bound(index_.begin(), index_.end(), Entry{wanted, 0});
  return found != index_.end() && found->key == wanted ? &*found : nullptr;
}

bool IndexedLines::contains(std::string_view key) const {
  return entry(key) != nullptr;
}

void IndexedLines::rewind() {
  seek(0);
  line_number_ = 0;
}

/// Line numbers are lost.
void IndexedLines::seek(std::uint64_t offset) {
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  next_begin_ = offset;
}

/// The next line that is not blank.
bool IndexedLines::read_line() {
  std::streambuf& stream = *file_.rdbuf();
  while (true) {
    line_.clear();
    line_begin_ = next_begin_;
    ++line_number_;
    int c = stream.sbumpc();
    if (c == kEnd) return false;
    for (; c != kEnd && c != '\n'; c = stream.sbumpc()) {
      if (line_.size() == kMaxLineBytes) {
        fail(ErrorKind::kInput, "{} is longer than {} bytes", where(), kMaxLineBytes);
      }
      line_ += static_cast<char>(c);
    }
    next_begin_ = line_begin_ + line_.size() + 1;
    if (line_.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
}

std::optional<std::string_view> IndexedLines::next() {
  if (!read_line()) return std::nullopt;
  return line_;
}

std::optional<std::string_view> IndexedLines::find(std::string_view key) {
  const Entry* found = entry(key);
  if (found == nullptr) return std::nullopt;
  seek(found->offset);
  read_line();
  line_number_ = 0;
  return line_;
}

std::string IndexedLines::where() const {
  return line_number_ == 0 ? path_ : fmt::format("{}: line {}", path_, line_number_);
}

}  // namespace jemm
