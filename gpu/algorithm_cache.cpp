// A line for the format, one for the identity, one an algorithm, and a hash of all before it.
#include "gpu/algorithm_cache.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/new_file.h"
#include "base/sha256.h"

namespace jemm::gpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "jemm-algorithms 2";
constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
constexpr std::size_t kHexDigits = 16;

// The file's text, or nothing when it is absent or longer than any that we write.
std::string read_text(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text.size() > kMaxBytes ? std::string() : text;
}

// Beside the file, and of no other process or thread.
fs::path unique_name(const fs::path& file) {
  static std::atomic<unsigned> n_names = 0;
  return fs::path(file) += fmt::format(".{}-{}", ::getpid(), n_names++);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<AlgorithmBytes> parse_algorithm(std::string_view hex) {
  AlgorithmBytes algorithm{};
  if (hex.size() != kHexDigits * algorithm.size()) return std::nullopt;
  for (std::uint64_t& word : algorithm) {
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + kHexDigits, word, 16);
    if (error != std::errc() || end != hex.data() + kHexDigits) return std::nullopt;
    hex.remove_prefix(kHexDigits);
  }
  return algorithm;
}

std::map<std::string, AlgorithmBytes> parse(std::string_view text, std::string_view identity) {
  const std::size_t hash = text.rfind("sha256 ");
  if (hash == std::string_view::npos ||
      text.substr(hash) != fmt::format("sha256 {}\n", sha256_hex(text.substr(0, hash)))) {
    return {};
  }
  text = text.substr(0, hash);
  if (take_line(text) != kFormat || take_line(text) != identity) return {};
  std::map<std::string, AlgorithmBytes> algorithms;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return {};
    const auto algorithm = parse_algorithm(line.substr(tab + 1));
    if (!algorithm) return {};
    algorithms.emplace(line.substr(0, tab), *algorithm);
  }
  return algorithms;
}

}  // namespace

AlgorithmCache::AlgorithmCache(const fs::path& directory, std::string identity)
    : identity_(std::move(identity)) {
  if (directory.empty()) return;
  file_ = directory / fmt::format("algorithms-{}.txt", sha256_hex(identity_).substr(0, 12));
  algorithms_ = parse(read_text(file_), identity_);
}

fs::path AlgorithmCache::default_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (fs::path own = variable("JEMM_CACHE_DIR"); !own.empty()) return own;
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "jemm";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "jemm";
  return {};
}

std::optional<AlgorithmBytes> AlgorithmCache::find(const std::string& key) const {
  const auto at = algorithms_.find(key);
  return at == algorithms_.end() ? std::nullopt : std::optional(at->second);
}

void AlgorithmCache::put(const std::string& key, const AlgorithmBytes& algorithm) {
  algorithms_[key] = algorithm;
  changed_ = true;
}

void AlgorithmCache::save() {
  if (!std::exchange(changed_, false) || file_.empty()) return;
  algorithms_.merge(parse(read_text(file_), identity_));  // what is known here stays
  std::string text = fmt::format("{}\n{}\n", kFormat, identity_);
  for (const auto& [key, algorithm] : algorithms_) {
    text += fmt::format("{}\t", key);
    for (const std::uint64_t word : algorithm) text += fmt::format("{:016x}", word);
    text += '\n';
  }
  text += fmt::format("sha256 {}\n", sha256_hex(text));
  const fs::path own = unique_name(file_);  // others may write meanwhile
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  try {
    write_new_file(own, text);
    fs::rename(own, file_, error);
  } catch (const Error&) {  // a full or read-only disk: searched again next time
    error = std::make_error_code(std::errc::io_error);
  }
  if (error) fs::remove(own, error);
}

}  // namespace jemm::gpu
