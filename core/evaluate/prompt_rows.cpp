// Comparing, ordering and packing.
#include "evaluate/prompt_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

namespace jemm {
namespace {

Position position_at(const PromptRows& prompt, std::size_t row) {
  if (!prompt.positions.empty()) return prompt.positions[row];
  const auto p = static_cast<std::int32_t>(row);
  return {p, p, p};
}

/// The image that the row shows, by its file's hash; empty for text.
std::string_view image_at(const PromptRows& prompt, std::size_t row) {
  for (std::size_t i = 0; i < prompt.images.size(); ++i) {
    const std::size_t begin = prompt.image_begins[i];
    if (row >= begin && row - begin < prompt.images[i]->n_tokens()) {
      return prompt.images[i]->file_sha256;
    }
  }
  return {};
}

/// Where the images of two prompts are no longer the same.
std::size_t first_other_image(const PromptRows& a, const PromptRows& b) {
  const std::size_t n = std::min(a.images.size(), b.images.size());
  for (std::size_t i = 0; i < n; ++i) {
    const bool same = a.image_begins[i] == b.image_begins[i] &&
                      a.images[i]->file_sha256 == b.images[i]->file_sha256;
    if (!same) return std::min(a.image_begins[i], b.image_begins[i]);
  }
  const PromptRows& longer = a.images.size() > n ? a : b;
  return longer.images.size() > n ? longer.image_begins[n] : longer.token_ids.size();
}

std::size_t first_other_position(const PromptRows& a, const PromptRows& b, std::size_t n) {
  if (a.positions.empty() && b.positions.empty()) return n;
  std::size_t row = 0;
  while (row < n && position_at(a, row) == position_at(b, row)) ++row;
  return row;
}

std::int64_t same_rows(const PromptRows& a, const PromptRows& b) {
  const auto ends =
      std::mismatch(a.token_ids.begin(), a.token_ids.end(), b.token_ids.begin(), b.token_ids.end());
  const auto n_tokens = static_cast<std::size_t>(ends.first - a.token_ids.begin());
  const std::size_t n = std::min(n_tokens, first_other_image(a, b));
  return static_cast<std::int64_t>(first_other_position(a, b, n));
}

/// Lexicographic, row by row; a prompt stands behind its own beginning.
bool precedes(const PromptRows& a, const PromptRows& b) {
  const auto row = static_cast<std::size_t>(same_rows(a, b));
  if (row == a.token_ids.size() || row == b.token_ids.size()) {
    return a.token_ids.size() < b.token_ids.size();
  }
  const auto key = [row](const PromptRows& prompt) {
    return std::tuple(prompt.token_ids[row], image_at(prompt, row), position_at(prompt, row));
  };
  return key(a) < key(b);
}

}  // namespace

std::int64_t common_rows(const PromptRows& a, const PromptRows& b, PrefixReuse reuse) {
  const bool may_share =
      reuse == PrefixReuse::kFile || (reuse == PrefixReuse::kRequest && a.request == b.request);
  return may_share ? same_rows(a, b) : 0;
}

std::int64_t sharable_rows(const PromptRows& a, const PromptRows& b, PrefixReuse reuse) {
  const std::int64_t n = common_rows(a, b, reuse);
  const auto is_all = [n](const PromptRows& p) {
    return n == static_cast<std::int64_t>(p.token_ids.size());
  };
  return is_all(a) && is_all(b) ? n : n / kSplitRows * kSplitRows;
}

OrderedPrompts order_prompts(std::span<const PromptRows> prompts, PrefixReuse reuse) {
  OrderedPrompts ordered;
  std::vector<std::size_t> sorted(prompts.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  const auto sort = [&](std::size_t begin, std::size_t end) {
    std::stable_sort(
        sorted.begin() + static_cast<std::ptrdiff_t>(begin),
        sorted.begin() + static_cast<std::ptrdiff_t>(end),
        [&](std::size_t a, std::size_t b) { return precedes(prompts[a], prompts[b]); });
  };
  if (reuse == PrefixReuse::kFile) sort(0, prompts.size());
  for (std::size_t i = 0, end = 0; reuse == PrefixReuse::kRequest && i < prompts.size(); i = end) {
    while (end < prompts.size() && prompts[end].request == prompts[i].request) ++end;
    sort(i, end);
  }

  struct Group {
    std::size_t first_prompt;
    std::size_t begin, end;  // in `sorted`
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool joins =
        i > 0 && sharable_rows(prompts[sorted[i - 1]], prompts[sorted[i]], reuse) > 0;
    if (!joins) groups.push_back({sorted[i], i, i});
    groups.back().end = i + 1;
    groups.back().first_prompt = std::min(groups.back().first_prompt, sorted[i]);
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.first_prompt < b.first_prompt; });
  for (const Group& group : groups) {
    for (std::size_t i = group.begin; i < group.end; ++i) ordered.prompts.push_back(sorted[i]);
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const PromptRows& prompt = prompts[ordered.prompts[i]];
    ordered.order.n_rows.push_back(static_cast<std::int64_t>(prompt.token_ids.size()));
    ordered.order.n_common.push_back(
        i == 0 ? 0 : common_rows(prompts[ordered.prompts[i - 1]], prompt, reuse));
  }
  return ordered;
}

namespace {

/// The parts of the prompt's images that rows [begin, end) show; they stand at `row_begin`.
void add_images(const PromptRows& prompt, std::int64_t begin, std::int64_t end,
                std::int64_t row_begin, std::map<const EncodedImage*, std::int32_t>& known,
                PackedPass& packed) {
  for (std::size_t i = 0; i < prompt.images.size(); ++i) {
    const auto image_begin = static_cast<std::int64_t>(prompt.image_begins[i]);
    const auto image_end = image_begin + static_cast<std::int64_t>(prompt.images[i]->n_tokens());
    const std::int64_t from = std::max(begin, image_begin), to = std::min(end, image_end);
    if (from >= to) continue;
    const auto [at, is_new] =
        known.try_emplace(prompt.images[i].get(), static_cast<std::int32_t>(packed.images.size()));
    if (is_new) packed.images.push_back(prompt.images[i]);
    packed.forest.image_rows.push_back({.image = at->second,
                                        .image_row = from - image_begin,
                                        .row_begin = row_begin + from - begin,
                                        .n_rows = to - from});
  }
}

}  // namespace

PackedPass pack_pass(const PlannedPass& pass, std::span<const PromptRows> prompts) {
  PackedPass packed;
  std::map<const EncodedImage*, std::int32_t> known;
  for (const PlannedSegment& segment : pass.segments) {
    const PromptRows& prompt = prompts[static_cast<std::size_t>(segment.sequence)];
    const auto begin = static_cast<std::size_t>(segment.begin);
    const auto n_rows = static_cast<std::size_t>(segment.n_rows);
    add_images(prompt, segment.begin, segment.begin + segment.n_rows, packed.forest.n_rows(), known,
               packed);
    packed.forest.add(
        segment.parent, prompt.token_ids.subspan(begin, n_rows),
        prompt.positions.empty() ? prompt.positions : prompt.positions.subspan(begin, n_rows));
  }
  for (const PlannedRead& read : pass.reads) packed.forest.read_last_row(read.segment);
  return packed;
}

}  // namespace jemm
