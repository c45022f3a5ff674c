// Passes that cannot be recorded leave everything usable.
#include "gpu/pass_graphs.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "gpu/pass_upload.h"
#include "gpu/support.h"

namespace jemm::gpu {

TEST_CASE("a recording that fails leaves no error behind") {
  if (!test::has_device()) return;
  const Stream stream;
  PassGraphs graphs;
  DeviceArray<float> x(32);
  const DevicePass pass;
  int n_runs = 0;
  const auto enqueue = [&] {
    if (++n_runs == 2) {  // waiting ends a recording
      CHECK_THROWS_AS(stream.synchronize("a recorded stream"), Error);
      throw Error(ErrorKind::kDevice, "no more");
    }
    fill_zero(x.data(), 32 * sizeof(float), stream);
  };
  graphs.run(pass, stream, enqueue);
  CHECK_THROWS_WITH_AS(graphs.run(pass, stream, enqueue), "no more", Error);
  CHECK_NOTHROW(check_launch("the next kernel"));
  for (int i = 0; i < 3; ++i) graphs.run(pass, stream, enqueue);
  CHECK(n_runs == 3);  // recorded once, launched as a graph from then on
  stream.synchronize("a test");
}

}  // namespace jemm::gpu
