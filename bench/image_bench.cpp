// Times image files: bytes to RGB, and RGB to the rows of the vision tower; one thread.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include "base/files.h"
#include "image/decode.h"
#include "image/patches.h"

namespace {

struct Spread {
  double low, median, high;
};

/// Tenth, fiftieth and ninetieth percentile.
Spread spread(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&samples](double p) {
    return samples[static_cast<std::size_t>(p * static_cast<double>(samples.size() - 1) + 0.5)];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

/// Processor time of this thread, so that a busy machine does not count.
double now_ms() {
  std::timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

void time_file(const std::string& path) {
  constexpr int kRuns = 15;
  const jemm::Blob file = jemm::map_file(path);
  std::vector<double> decode, rest, total;
  jemm::Patches patches;  // its memory is reused, as in a run over many images
  for (int i = 0; i < kRuns; ++i) {
    const double start = now_ms();
    jemm::Rgb image = jemm::decode_image(0, file.text());
    decode.push_back(now_ms() - start);
    patches = jemm::preprocess_image(std::move(image), {65536, 16777216}, std::move(patches));
    total.push_back(now_ms() - start);
    rest.push_back(total.back() - decode.back());
  }
  const Spread t = spread(total);
  std::printf(
      "%-28s decode %6.1f  resize and patches %6.1f  total %6.1f ms (p10 %.1f, p90 %.1f, n %d)\n",
      path.substr(path.rfind('/') + 1).c_str(), spread(decode).median, spread(rest).median,
      t.median, t.low, t.high, kRuns);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) time_file(argv[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::printf("%s\n", jemm::image_library_versions().c_str());
  return 0;
}
