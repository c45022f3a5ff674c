// Reading in blocks, and work shared by threads.
#include "base/blocks.h"

#include <doctest/doctest.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "base/error.h"
#include "base/new_file.h"
#include "base/sha256.h"

namespace jemm {
namespace {

struct TempFile {
  std::string path;
  explicit TempFile(const std::string& content) {
    path = (std::filesystem::temp_directory_path() / "jemm-blocks-XXXXXX").string();
    ::close(::mkstemp(path.data()));
    std::ofstream(path, std::ios::binary) << content;
  }
  ~TempFile() { std::filesystem::remove(path); }
};

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

TEST_CASE("ranges cover what they should") {
  CHECK(block_ranges(5, 5).empty());
  const auto ranges = block_ranges(7, 7 + kBlockBytes + 1);
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].offset == 7);
  CHECK(ranges[0].size == kBlockBytes);
  CHECK(ranges[1].offset == 7 + kBlockBytes);
  CHECK(ranges[1].size == 1);
}

TEST_CASE("ranges are handed over in order, small and large") {
  const std::string content = pattern(5'000'000);
  const TempFile temp(content);
  const BlockFile file(temp.path);
  CHECK(file.size() == content.size());
  const std::vector<FileRange> ranges = {{3, 10}, {100, 2'000'000}, {0, 0}, {2'000'100, 2'999'900}};
  std::vector<std::string> seen;
  for_each_range(file, ranges, [&](std::size_t i, std::span<const std::byte> bytes) {
    CHECK(i == seen.size());
    seen.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  REQUIRE(seen.size() == ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    CHECK(seen[i] == content.substr(ranges[i].offset, ranges[i].size));
  }
  CHECK(sha256_of_file(temp.path) == sha256_hex(content));
}

TEST_CASE("an empty file, and one that ends too soon") {
  const TempFile empty("");
  CHECK(sha256_of_file(empty.path) == sha256_hex(std::string_view()));
  const TempFile shorter("abc");
  const BlockFile file(shorter.path);
  std::byte to[4];
  CHECK_THROWS_WITH_AS(file.read(0, to),
                       (shorter.path + " ends at byte 3, before it should").c_str(), Error);
  CHECK_THROWS_AS(BlockFile("/nonexistent"), Error);
  CHECK_THROWS_AS(BlockFile("/"), Error);
}

TEST_CASE("a file appears whole or not at all, and a link replaces what is there") {
  const TempFile first("first");
  const std::string path = first.path + ".new";
  {
    NewFile file(path);
    file.write("half");
    CHECK(std::filesystem::exists(path + ".partial"));
  }
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  CHECK_FALSE(std::filesystem::exists(path));
  write_new_file(path, "whole");
  CHECK(sha256_of_file(path) == sha256_hex("whole"));
  CHECK(link_or_copy(first.path, path));
  CHECK(std::filesystem::equivalent(first.path, path));
  CHECK(link_or_copy(first.path, path));  // which is it already
  CHECK(link_or_copy(first.path, first.path));
  CHECK(sha256_of_file(path) == sha256_hex("first"));
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  std::filesystem::remove(path);
  CHECK_FALSE(link_or_copy("/proc/version", path));  // of another file system: copied
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
  CHECK_THROWS_AS(write_new_file("/proc/nowhere", ""), Error);
  std::filesystem::remove(path);
}

TEST_CASE("only a regular file is replaced") {
  const TempFile target("target");
  const std::string link = target.path + ".link", pipe = target.path + ".pipe";
  std::filesystem::create_symlink(target.path, link);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {link, pipe, std::string("/tmp")}) {
    CAPTURE(path);
    const std::string refusal = path + " is no regular file, so it is not replaced";
    CHECK_THROWS_WITH_AS(write_new_file(path, "new"), refusal.c_str(), Error);
    CHECK_THROWS_WITH_AS(link_or_copy(target.path, path), refusal.c_str(), Error);
  }
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(sha256_of_file(target.path) == sha256_hex("target"));
  std::filesystem::remove(link);
  std::filesystem::remove(pipe);
}

TEST_CASE("threads share the work, and the first exception comes out") {
  std::atomic<int> sum = 0;
  in_threads(100, 4, [&](std::size_t i) { sum += static_cast<int>(i); });
  CHECK(sum == 4950);
  in_threads(0, 4, [&](std::size_t) { sum = 0; });
  CHECK(sum == 4950);
  CHECK_THROWS_AS(in_threads(50, 3,
                             [](std::size_t i) {
                               if (i == 20) fail(ErrorKind::kInput, "twenty");
                             }),
                  Error);
}

}  // namespace
}  // namespace jemm
