// Added tokens, found in raw text: leftmost, of several the longest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tokens/tokenizer_json.h"

namespace jemm {

/// A flat trie. A search looks at each character at most kMaxBytes times.
class AddedTokens {
 public:
  static constexpr std::size_t kMaxBytes = 256;

  struct Match {
    std::size_t begin, end;  ///< bytes
    std::int32_t id;
  };

  /// Throws Error(kInput), beginning with `name`, for a token that is empty, longer than kMaxBytes
  /// or there twice.
  AddedTokens(std::vector<AddedToken> tokens, const std::string& name);

  /// The first match at or behind `from`.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

  /// Id of the token that is exactly `content`, or -1.
  std::int32_t id(std::string_view content) const;

  /// The largest id; -1 without tokens.
  std::int32_t max_id() const;

  /// Number of matches, one after the other.
  std::size_t count(std::string_view text) const;

  std::size_t size() const { return n_tokens_; }

 private:
  struct Node {
    std::uint32_t first_edge = 0, n_edges = 0;
    std::int32_t id = -1;
  };
  struct Edge {
    unsigned char byte;
    std::uint32_t node;
  };
  const Node* follow(const Node& node, char byte) const;

  std::vector<Node> nodes_;  // the root first
  std::vector<Edge> edges_;  // of one node side by side, in order of byte
  std::array<bool, 256> starts_{};
  std::size_t n_tokens_;
};

}  // namespace jemm
