// What the CUDA engine does on the host: the file of algorithms, their order, what is kept. No
// device.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "gpu/algorithm_cache.h"
#include "gpu/blas_lt.h"
#include "gpu/cuda.h"
#include "gpu/gemm.h"
#include "gpu/gemm_search.h"
#include "gpu/recently_used.h"
#include "gpu/reserve.h"

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

TEST_CASE("what several write is kept") {
  const Folder folder;
  AlgorithmCache first(folder.path(), "x"), second(folder.path(), "x");
  first.put("one", kFirst);
  first.put("both", kFirst);
  first.save();
  second.put("two", kSecond);
  second.put("both", kSecond);
  second.save();
  const AlgorithmCache merged(folder.path(), "x");
  CHECK(merged.find("one") == kFirst);
  CHECK(merged.find("two") == kSecond);
  CHECK(merged.find("both") == kSecond);
  CHECK(second.find("one") == kFirst);

  // What another is about to write is not touched.
  const fs::path others = fs::path(first.file()) += ".partial";
  fs::create_directory(others);
  first.put("three", kFirst);
  first.save();
  CHECK(AlgorithmCache(folder.path(), "x").find("three") == kFirst);
  fs::remove(others);

  // At the same time: the file is whole whenever it is read, and nothing is left beside it.
  constexpr int kWriters = 4;
  std::atomic<int> n_done = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      AlgorithmCache own(folder.path(), "x");
      for (int n = 0; n < 20; ++n) {
        for (int k = 0; k < 1 + i * 10; ++k) own.put(fmt::format("{} {} {}", i, n, k), kFirst);
        own.save();
      }
      ++n_done;
    });
  }
  while (n_done < kWriters) CHECK(AlgorithmCache(folder.path(), "x").find("one") == kFirst);
  for (std::thread& writer : writers) writer.join();
  CHECK(AlgorithmCache(folder.path(), "x").find("one") == kFirst);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
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

TEST_CASE("what has no time is never the fastest") {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto order = [](const std::vector<std::vector<double>>& times) {
    std::vector<Candidate> candidates;
    for (const auto& ms : times) {
      candidates.push_back({.ms = ms});
      candidates.back().algorithm.data[0] = candidates.size() - 1;
    }
    rank(candidates);
    std::vector<std::uint64_t> places;
    for (const Candidate& c : candidates) places.push_back(c.algorithm.data[0]);
    return places;
  };
  using Places = std::vector<std::uint64_t>;
  CHECK(order({}).empty());
  CHECK(order({{kNone, kNone}, {kNone, kNone}}).empty());
  CHECK(order({{1, kNone}, {2, 3}, {kNone, 1}, {2, 2}}) == Places{3, 1});
  CHECK(order({{std::nan(""), 1}, {1, 1}, {0, 1}}) == Places{2, 1});
  CHECK(order({{1, 4}, {2, 2}, {1.5, 1}}) == Places{2, 1, 0});  // sums 5, 4, 2.5
}

TEST_CASE("an algorithm that splits sums is known by its bits") {
  cublasLtMatmulAlgo_t algorithm{};
  CHECK(is_whole(algorithm));
  int n_split = 0;  // the library alone knows which bits they are
  for (std::uint64_t& word : algorithm.data) {
    for (int bit = 0; bit < 64; ++bit) {
      word ^= std::uint64_t{1} << bit;
      n_split += is_whole(algorithm) ? 0 : 1;
      word ^= std::uint64_t{1} << bit;
    }
  }
  CAPTURE(n_split);
  CHECK(n_split >= 16);
  CHECK(n_split < 128);
}

TEST_CASE("what holds for a device is computed once for each") {
  PerDevice<int> values;
  int n_computed = 0;
  const auto compute = [&n_computed] { return 10 * ++n_computed; };
  CHECK(values.get(0, compute) == 10);
  CHECK(values.get(1, compute) == 20);
  CHECK(values.get(0, compute) == 10);
  CHECK(n_computed == 2);
}

// As DeviceArray, in a memory of `free` bytes whose largest piece has `piece`.
struct Memory {
  std::int64_t free, piece;
};
class FakeArray {
 public:
  explicit FakeArray(Memory& memory) : memory_(memory) {}
  std::int64_t capacity() const { return n_; }
  std::size_t size_bytes() const { return static_cast<std::size_t>(n_); }
  const char* data() const { return nullptr; }
  void release() { memory_.free += std::exchange(n_, 0); }
  void reserve(std::int64_t n, std::string_view what) {
    if (n <= n_) return;
    release();
    if (n > memory_.free || n > memory_.piece) throw OutOfMemory(std::string(what));
    memory_.free -= n_ = n;
  }

 private:
  Memory& memory_;
  std::int64_t n_ = 0;
};

TEST_CASE("arrays grow together or not at all") {
  Memory memory{100, 100};
  FakeArray a(memory), b(memory);
  int n_prepared = 0;
  const auto reserve = [&](std::int64_t n_a, std::int64_t n_b) {
    reserve_together(
        "a test",
        [&](const auto& visit) {
          visit(a, n_a);
          visit(b, n_b);
        },
        [&](std::size_t n_wanted, std::size_t n_freed) {
          ++n_prepared;
          if (static_cast<std::int64_t>(n_wanted) >
              memory.free + static_cast<std::int64_t>(n_freed))
            throw OutOfMemory("all");
        });
  };
  reserve(30, 20);
  CHECK(n_prepared == 1);
  CHECK(memory.free == 50);
  reserve(10, 20);
  CHECK(n_prepared == 1);
  CHECK(a.capacity() == 30);
  // Too large: refused before anything has changed.
  CHECK_THROWS_WITH_AS(reserve(60, 60), "all", OutOfMemory);
  CHECK(a.capacity() == 30);
  CHECK(b.capacity() == 20);
  // Room that must come from both at once.
  reserve(55, 45);
  CHECK(memory.free == 0);
  // In pieces: the second does not fit, so neither stays, and less fits again.
  memory.piece = 50;
  reserve(55, 45);
  a.release();
  b.release();
  CHECK_THROWS_WITH_AS(reserve(20, 60), "a test", OutOfMemory);
  CHECK(memory.free == 100);
  CHECK(a.capacity() == 0);
  reserve(50, 50);
  CHECK(memory.free == 0);
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
