// A hash with a random key, so that no file or text can be crafted to collide in a table.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace jemm {

/// Each step multiplies by a secret and folds the 128-bit product. Values differ from run to run:
/// they place entries in tables and must never reach a result.
class KeyedHash {
 public:
  KeyedHash() {
    std::random_device random;
    const auto word = [&random] { return std::uint64_t{random()} << 32 | random(); };
    seed_ = word();
    multiplier_ = word() | 1;
  }

  std::uint64_t operator()(std::uint64_t value) const { return fold(value ^ seed_, multiplier_); }

  std::uint64_t operator()(std::string_view bytes) const {
    std::uint64_t hash = seed_ + bytes.size();
    while (bytes.size() > 8) {
      hash = fold(hash ^ load(bytes.data(), 8), multiplier_);
      bytes.remove_prefix(8);
    }
    return fold(fold(hash ^ load(bytes.data(), bytes.size()), multiplier_) ^ seed_, multiplier_);
  }

 private:
  static std::uint64_t load(const char* data, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, data, size);
    return value;
  }
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t seed_, multiplier_;
};

}  // namespace jemm
