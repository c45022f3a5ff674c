// The published checkpoints and the reference that this program follows (docs/adr/0001).
#pragma once

#include <string_view>

namespace jemm {

struct Pin {
  std::string_view role;
  std::string_view repository;
  std::string_view revision;
};

inline constexpr Pin kPins[] = {
    {"base", "Qwen/Qwen3.8-27B", "1d4bf0f2ff6012fd82039f2fa52739d0dd7c60c0"},
    {"adapter", "MaestroYan/JEMM", "76e3c209e8441fa658221c7ba2725bad2f811176"},
    {"reference", "ypcypc/JEMM", "6822fe0fd53c5e6670af6ba99fb2c857a661e532"},
};

}  // namespace jemm
