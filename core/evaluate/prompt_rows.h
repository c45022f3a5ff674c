// Prompts as rows that can be compared and packed: what of them is the same, and in which order
// those with a common beginning stand together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "evaluate/images.h"
#include "plan/reuse_plan.h"

namespace jemm {

/// Which questions may share rows: none, those of one request, all.
enum class PrefixReuse { kOff, kRequest, kFile };
inline constexpr std::array<std::string_view, 3> kPrefixReuseNames = {"off", "request", "file"};
inline std::string_view prefix_reuse_name(PrefixReuse reuse) {
  return kPrefixReuseNames[static_cast<std::size_t>(reuse)];
}

/// The rows of one question's prompt. Views of what the question holds.
struct PromptRows {
  std::span<const std::int32_t> token_ids;
  std::span<const Position> positions;  ///< [tokens]; empty for text, which counts up from 0
  std::span<const std::size_t> image_begins;
  std::span<const EncodedImagePtr> images;
  const void* request = nullptr;  ///< whose question it is
};

/// Rows that are the same from the first on, where they may be shared at all: their tokens, their
/// positions and, where they show an image, the image file's bytes.
std::int64_t common_rows(const PromptRows& a, const PromptRows& b, PrefixReuse reuse);

/// How many of them a plan could share: up to a split, or all when the prompts are equal.
std::int64_t sharable_rows(const PromptRows& a, const PromptRows& b, PrefixReuse reuse);

struct OrderedPrompts {
  std::vector<std::size_t> prompts;  ///< index of each sequence
  PrefixOrder order;
};

/// Prompts that may share kSplitRows rows and more stand together; such groups, like all others,
/// keep the order of their first prompts.
OrderedPrompts order_prompts(std::span<const PromptRows> prompts, PrefixReuse reuse);

/// A forest and the images that it refers to.
struct PackedPass {
  Forest forest;
  std::vector<EncodedImagePtr> images;
};

/// Packs the planned rows; the forest's reads are those of the pass. A split may stand within an
/// image. `prompts[i]`: sequence i; their images are cut.
PackedPass pack_pass(const PlannedPass& pass, std::span<const PromptRows> prompts);

}  // namespace jemm
