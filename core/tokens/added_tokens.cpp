// Builds the trie and searches it.
#include "tokens/added_tokens.h"

#include <algorithm>

#include "base/error.h"

namespace jemm {
namespace {

void check(const std::vector<AddedToken>& sorted, const std::string& name) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::string& content = sorted[i].content;
    if (content.empty() || content.size() > AddedTokens::kMaxBytes) {
      fail(ErrorKind::kInput, "{}: added token {} has {} bytes, not 1 to {}", name,
           std::string_view(content).substr(0, 40), content.size(), AddedTokens::kMaxBytes);
    }
    if (i > 0 && sorted[i - 1].content == content) {
      fail(ErrorKind::kInput, "{}: added token {} stands twice", name, content);
    }
  }
}

}  // namespace

// Breadth first over ranges of the sorted tokens, so that the edges of a node lie side by side.
AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::string& name)
    : nodes_(1), n_tokens_(tokens.size()) {
  std::sort(tokens.begin(), tokens.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  check(tokens, name);
  struct Range {
    std::size_t first, last, depth;
  };
  std::vector<Range> ranges{{0, tokens.size(), 0}};  // the tokens below each node
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    auto [first, last, depth] = ranges[i];
    if (first < last && tokens[first].content.size() == depth) nodes_[i].id = tokens[first++].id;
    nodes_[i].first_edge = static_cast<std::uint32_t>(edges_.size());
    while (first < last) {
      const char byte = tokens[first].content[depth];
      std::size_t end = first;
      while (end < last && tokens[end].content[depth] == byte) ++end;
      edges_.push_back(
          {static_cast<unsigned char>(byte), static_cast<std::uint32_t>(nodes_.size())});
      if (depth == 0) starts_[static_cast<unsigned char>(byte)] = true;
      nodes_.emplace_back();
      ranges.push_back({first, end, depth + 1});
      first = end;
    }
    nodes_[i].n_edges = static_cast<std::uint32_t>(edges_.size()) - nodes_[i].first_edge;
  }
}

const AddedTokens::Node* AddedTokens::follow(const Node& node, char byte) const {
  const auto first = edges_.begin() + node.first_edge;
  const auto last = first + node.n_edges;
  const auto wanted = static_cast<unsigned char>(byte);
  const auto found = std::lower_bound(
      first, last, wanted, [](const Edge& edge, unsigned char value) { return edge.byte < value; });
  return found == last || found->byte != wanted ? nullptr : &nodes_[found->node];
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Match> longest;
    const Node* node = nodes_.data();
    for (std::size_t i = begin; i < text.size(); ++i) {
      node = follow(*node, text[i]);
      if (node == nullptr) break;
      if (node->id >= 0) longest = Match{begin, i + 1, node->id};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::int32_t AddedTokens::id(std::string_view content) const {
  const Node* node = nodes_.data();
  for (const char byte : content) {
    node = follow(*node, byte);
    if (node == nullptr) return -1;
  }
  return node->id;
}

std::int32_t AddedTokens::max_id() const {
  std::int32_t largest = -1;
  for (const Node& node : nodes_) largest = std::max(largest, node.id);
  return largest;
}

std::size_t AddedTokens::count(std::string_view text) const {
  std::size_t n = 0;
  for (auto match = find(text, 0); match; match = find(text, match->end)) ++n;
  return n;
}

}  // namespace jemm
