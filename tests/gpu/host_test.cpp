// What the CUDA engine keeps on the host: the file of algorithms, what was used last. No device.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <unistd.h>

#include "gpu/algorithm_cache.h"
#include "gpu/gemm.h"
#include "gpu/recently_used.h"

namespace jemm::gpu {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("jemm-algorithms-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

constexpr AlgorithmBytes kFirst = {1, 2, 3, 4, 5, 6, 7, 0xfedcba9876543210};
constexpr AlgorithmBytes kSecond = {~std::uint64_t{0}, 0, 0, 0, 0, 0, 0, 9};

TEST_CASE("algorithms come back for the same identity alone") {
  const Folder folder;
  {
    AlgorithmCache cache(folder.path() / "below", "a GPU, driver 1");
    CHECK_FALSE(cache.find("one"));
    cache.put("one", kFirst);
    cache.put("two 3", kSecond);
    CHECK(cache.find("one") == kFirst);
    cache.save();
  }
  const AlgorithmCache again(folder.path() / "below", "a GPU, driver 1");
  CHECK(again.find("one") == kFirst);
  CHECK(again.find("two 3") == kSecond);
  CHECK_FALSE(again.find("two"));
  CHECK_FALSE(AlgorithmCache(folder.path() / "below", "a GPU, driver 2").find("one"));
  // The file of another identity under this one's name.
  const AlgorithmCache other(folder.path() / "below", "a GPU, driver 2");
  fs::copy_file(again.file(), other.file());
  CHECK_FALSE(AlgorithmCache(folder.path() / "below", "a GPU, driver 2").find("one"));
}

TEST_CASE("a damaged file counts as none and is written anew") {
  const Folder folder;
  AlgorithmCache first(folder.path(), "x");
  first.put("one", kFirst);
  first.save();
  const std::string whole = text_of(first.file());
  REQUIRE(AlgorithmCache(folder.path(), "x").find("one"));
  const auto refused = [&](const std::string& text) {
    write(first.file(), text);
    return !AlgorithmCache(folder.path(), "x").find("one");
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    CHECK(refused(whole.substr(0, i)));
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK(refused(changed));
  }
  CHECK(refused(whole + "\n"));
  CHECK(refused(std::string(std::size_t{5} << 20, 'x') + whole));
  CHECK_FALSE(refused(whole));

  write(first.file(), "not ours");
  AlgorithmCache repaired(folder.path(), "x");
  repaired.put("two", kSecond);
  repaired.save();
  CHECK(AlgorithmCache(folder.path(), "x").find("two") == kSecond);
}

TEST_CASE("a place that cannot be written is no error") {
  const Folder folder;
  fs::create_directories(folder.path());
  write(folder.path() / "file", "");
  for (const fs::path& place : {folder.path() / "file", fs::path()}) {
    AlgorithmCache cache(place, "x");
    cache.put("one", kFirst);
    cache.save();
    CHECK(cache.find("one") == kFirst);
    CHECK_FALSE(AlgorithmCache(place, "x").find("one"));
  }
}

TEST_CASE("numbers of rows share algorithms in ranges") {
  CHECK(row_bucket(1) == 16);
  CHECK(row_bucket(16) == 16);
  CHECK(row_bucket(17) == 32);
  CHECK(row_bucket(98) == 112);
  CHECK(row_bucket(129) == 160);
  CHECK(row_bucket(513) == 640);
  CHECK(row_bucket(2049) == 3072);
  CHECK(row_bucket(8192) == 8192);
  CHECK(row_bucket(1 << 20) == 8192);
  for (std::int64_t n = 1; n < 10000; ++n) {
    CHECK(row_bucket(n) >= std::min<std::int64_t>(n, 8192));
    CHECK(row_bucket(row_bucket(n)) == row_bucket(n));
  }
}

TEST_CASE("what was not used for longest goes first") {
  RecentlyUsed<int, std::unique_ptr<int>> values(2);
  CHECK(values.find(1) == nullptr);
  values.put(1, std::make_unique<int>(10));
  values.put(2, std::make_unique<int>(20));
  REQUIRE(values.find(1) != nullptr);
  values.put(3, nullptr);
  CHECK(values.find(2) == nullptr);
  REQUIRE(values.find(1) != nullptr);
  CHECK(**values.find(1) == 10);
  REQUIRE(values.find(3) != nullptr);
  CHECK(*values.find(3) == nullptr);
  CHECK(values.size() == 2);
  values.clear();
  CHECK(values.find(1) == nullptr);
}

}  // namespace
}  // namespace jemm::gpu
