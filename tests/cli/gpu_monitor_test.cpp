// NVML as the program asks it, with a library in its place that the test's environment names.
#include <doctest/doctest.h>

#include "gpu_monitor.h"

namespace jemm::cli {

TEST_CASE("what the libraries say of the device") {
  const GpuMonitor monitor(0);
  const GpuFacts& facts = monitor.facts();
  CHECK(facts.name == "Fake GPU 40");
  CHECK(facts.driver == "580.1");
  CHECK(facts.unwatched.empty());
  CHECK(facts.max_sm_mhz == 1980);
  CHECK(facts.n_other_processes == 2);
  CHECK(facts.other_bytes == 42);
  const std::optional<GpuState> state = monitor.read();
  REQUIRE(state.has_value());
  CHECK(state->sm_mhz == 1500);
  CHECK(state->memory_mhz == 2600);
  CHECK(state->celsius == 41);
  CHECK(state->watts == 123.5);
  CHECK(state->used_bytes == 42);
  CHECK(state->throttle_reasons == 0x24);
}

TEST_CASE("a device that is not there is not watched, and that is said") {
  const GpuMonitor monitor(2);
  CHECK(monitor.facts().unwatched == "the driver does not name the device");
  CHECK_FALSE(monitor.read().has_value());
}

TEST_CASE("each mode has the clocks of its own GPU, and none on the CPU") {
  const GpuMonitors monitors({std::nullopt, 1, 0, 1, 2});
  CHECK_FALSE(monitors.read(0).has_value());
  REQUIRE(monitors.read(1).has_value());
  REQUIRE(monitors.read(2).has_value());
  REQUIRE(monitors.read(3).has_value());
  CHECK(monitors.read(1)->sm_mhz == 1600);
  CHECK(monitors.read(2)->sm_mhz == 1500);
  CHECK(monitors.read(3)->sm_mhz == 1600);
  CHECK_FALSE(monitors.read(4).has_value());
  REQUIRE(monitors.first_facts().has_value());
  CHECK(monitors.first_facts()->name == "Fake GPU 41");
  CHECK_FALSE(GpuMonitors({std::nullopt}).first_facts().has_value());
}

}  // namespace jemm::cli
