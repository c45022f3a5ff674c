// How a layer is named as a stage.
#include "engine/stages.h"

#include <fmt/format.h>

namespace jemm {

std::string layer_stage(std::int64_t layer) {
  return fmt::format("layer.{:02}", layer);
}

}  // namespace jemm
