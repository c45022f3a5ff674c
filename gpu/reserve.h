// Arrays that grow together. Knows no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jemm::gpu {

/// Reserves every array of a set, or leaves none of them large: what a pass too large has taken
/// before memory ran out, no other would need. each(visit) calls visit(array, n) for every array.
/// Where one has to grow, prepare(bytes wanted, bytes freed for them) comes first, and may throw:
/// then nothing has changed. Where memory is short all the same, because it lies in pieces or
/// another process has taken it, all arrays are empty afterwards, and the error goes on.
template <typename Each, typename Prepare>
void reserve_together(std::string_view what, const Each& each, const Prepare& prepare) {
  std::size_t n_wanted = 0, n_freed = 0;
  each([&](const auto& array, std::int64_t n) {
    if (n <= array.capacity()) return;
    n_wanted += static_cast<std::size_t>(n) * sizeof(*array.data());
    n_freed += array.size_bytes();
  });
  if (n_wanted == 0) return;
  prepare(n_wanted, n_freed);
  each([](auto& array, std::int64_t n) {  // all before the first is taken: larger pieces
    if (n > array.capacity()) array.release();
  });
  try {
    each([&](auto& array, std::int64_t n) { array.reserve(n, what); });
  } catch (...) {
    each([](auto& array, std::int64_t) { array.release(); });
    throw;
  }
}

}  // namespace jemm::gpu
