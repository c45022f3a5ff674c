// The chat framing around a prompt, the template check that allows it, and the label ids.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/files.h"
#include "tokens/tokenizer.h"

namespace jemm {

inline constexpr std::string_view kImagePad = "<|image_pad|>";
inline constexpr std::string_view kVideoPad = "<|video_pad|>";

/// The whole text of a question: system turn, images, prompt, thinking off.
/// `pads`: for each image the number of image_pad tokens (1 for the unexpanded text of a golden).
std::string frame_prompt(std::string_view prompt, std::span<const std::size_t> pads = {});

/// Checks that the checkpoint's chat_template.jinja is one that renders frame_prompt. Throws
/// Error(kInput) with the file's SHA-256 otherwise, unless `accept_unknown`. Returns the SHA-256.
std::string check_chat_template(const FileSource& files, bool accept_unknown = false);

/// Whether a template of that SHA-256 is known to render frame_prompt.
bool is_known_template(std::string_view sha256);

/// Token ids of the 32 labels A..Z, 0..5. Throws Error(kInput) unless each is one distinct token.
std::array<std::int32_t, 32> label_token_ids(const Tokenizer& tokenizer);

}  // namespace jemm
