#include "bench_floor.h"

#include "base/error.h"
#if defined(JEMM_CUDA)
#include "gpu/floor.h"
#endif

namespace jemm::cli {
namespace {

double pass_floor_ms(int device, const TextConfig& config, std::int64_t n_rows) {
#if defined(JEMM_CUDA)
  return text_floor_ms(device, config, n_rows);
#else
  static_cast<void>(device);
  static_cast<void>(config);
  fail(ErrorKind::kDevice, "no floor of {} rows: this build has no CUDA engine", n_rows);
#endif
}

}  // namespace

double FloorTimes::ms(const std::vector<std::int64_t>& pass_rows) {
  double sum = 0;
  for (const std::int64_t n_rows : pass_rows) {
    const auto [at, is_new] = known_.try_emplace(n_rows);
    if (is_new) at->second = pass_floor_ms(device_, config_, n_rows);
    sum += at->second;
  }
  return sum;
}

}  // namespace jemm::cli
