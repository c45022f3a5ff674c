// A device that is lost in the middle: a program of its own, since the device stays lost.
#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "core/cpu/small_checkpoint.h"
#include "core/cpu/support.h"
#include "gpu/cuda_engine.h"
#include "gpu/forests.h"
#include "gpu/kernels/kernels.h"
#include "gpu/support.h"

namespace jemm {

TEST_CASE("a lost device is one error a call, and no crash") {
  if (!test::has_device()) return;
  std::array<std::int32_t, 32> labels{};
  const auto checkpoint = std::make_shared<test::SmallCheckpoint>();
  const auto engine = make_cuda_engine(checkpoint, labels);
  Forest forest = test::forest_of({{-1, 70}});
  forest.read_last_row(0);
  CHECK(test::forward(*engine, forest).size() == 1);

  {  // A kernel that reads where no memory is.
    const gpu::Stream stream;
    gpu::DeviceArray<float> to(32);
    const gpu::DeviceArray<std::int32_t> rows = test::on_device<std::int32_t>({0}, stream);
    gpu::gather_rows(reinterpret_cast<const float*>(std::uintptr_t{64}), 32, rows.data(), 1, 32,
                     to.data(), stream.get());
    CHECK_THROWS_AS(stream.synchronize("the fault"), Error);
  }

  for (int i = 0; i < 2; ++i) {
    try {
      test::forward(*engine, forest);
      FAIL("a lost device answered");
    } catch (const OutOfMemory&) {
      FAIL("a lost device is not taken for one that is full");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
      MESSAGE(std::string(error.what()));
    }
  }
  CHECK_THROWS_AS(make_cuda_engine(checkpoint, labels), Error);
}

}  // namespace jemm
