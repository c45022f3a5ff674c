#include "engine/stages.h"

#include <doctest/doctest.h>

namespace jemm {
namespace {

TEST_CASE("layer stages have two digits or more") {
  CHECK(layer_stage(0) == "layer.00");
  CHECK(layer_stage(63) == "layer.63");
  CHECK(layer_stage(100) == "layer.100");
}

}  // namespace
}  // namespace jemm
