// SHA-256 over lines of hashes and names.
#include "checkpoint/fingerprint.h"

#include <fmt/format.h>

#include "base/sha256.h"

namespace jemm {
namespace {

std::string hash_lines(const std::string& title, std::span<const FileHash> files) {
  Sha256 whole;
  whole.update(title);
  for (const FileHash& file : files) whole.update(fmt::format("{} {}\n", file.sha256, file.name));
  return whole.hex();
}

}  // namespace

std::string fingerprint_of(std::span<const FileHash> files) {
  return hash_lines("", files);
}

std::string synthetic_fingerprint_of(std::uint32_t seed, std::span<const FileHash> files) {
  return hash_lines(fmt::format("synthetic, seed {}\n", seed), files);
}

std::string merged_fingerprint_of(const std::string& unmerged) {
  return sha256_hex("merged " + unmerged);
}

}  // namespace jemm
