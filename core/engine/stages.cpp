// The names, those of a layer's stages with its number.
#include "engine/stages.h"

#include <fmt/format.h>

namespace jemm {

std::string layer_stage(std::int64_t layer) {
  return fmt::format("layer.{:02}", layer);
}

}  // namespace jemm
