// A JSON text read as CPython 3.12's json.loads reads it: same accept and reject, same values, same
// errors. Knows nothing of requests. Values live in one flat array, 16 bytes each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

inline constexpr std::size_t kMaxJsonDepth = 900;
inline constexpr std::size_t kMaxIntegerDigits = 4300;

enum class JsonKind : std::uint8_t {
  kNull,
  kFalse,
  kTrue,
  kInt,
  kFloat,
  kString,
  kList,
  kDict,
  kKey,         ///< the key of a dict entry, directly before its value
  kDroppedKey,  ///< a later duplicate of a key; the first one has taken over the last value
};

/// One value of the array. A list or dict is followed by its contents, in order.
struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  std::uint32_t size = 0;  ///< bytes of a string, key or integer; entries of a list or dict
  std::uint64_t data = 0;  ///< a float's bits; otherwise `place` (low half) and `link` (high)

  std::uint32_t place() const { return static_cast<std::uint32_t>(data); }  ///< offset of the text
  std::uint32_t link() const { return static_cast<std::uint32_t>(data >> 32); }
  void set(std::uint32_t place, std::uint32_t link) { data = std::uint64_t{link} << 32 | place; }
  // link: for a list or dict the index behind its contents, for a key the index of its value.
};

class JsonValue;

/// Owns the values of one text. Values and cursors point into it: it must outlive them, in place.
class JsonDocument {
 public:
  JsonValue root() const;

 private:
  friend class JsonReader;
  friend class JsonValue;
  friend class JsonCursor;
  std::uint32_t behind(std::uint32_t index) const;
  std::string_view text_of(const JsonNode& node) const {
    return std::string_view(text_).substr(node.place(), node.size);
  }

  std::vector<JsonNode> nodes_;
  std::string text_;  // decoded strings and canonical integers, one after the other
};

/// A value in a document; as cheap to copy as a pointer.
class JsonValue {
 public:
  JsonValue(const JsonDocument& document, std::uint32_t index)
      : document_(&document), index_(index) {}

  JsonKind kind() const { return node().kind; }
  bool is_null() const { return kind() == JsonKind::kNull; }
  bool is_string() const { return kind() == JsonKind::kString; }
  bool is_list() const { return kind() == JsonKind::kList; }
  bool is_dict() const { return kind() == JsonKind::kDict; }

  /// A string's text (lone surrogates in three-byte form) or an integer's canonical digits.
  std::string_view text() const { return document_->text_of(node()); }
  double number() const { return std::bit_cast<double>(node().data); }  ///< of a float
  std::size_t size() const { return node().size; }  ///< entries of a list or dict

  /// The value under `key` when this is a dict that has it. Time: the number of entries.
  std::optional<JsonValue> find(std::string_view key) const;

 private:
  friend class JsonCursor;
  const JsonNode& node() const { return document_->nodes_[index_]; }

  const JsonDocument* document_;
  std::uint32_t index_;
};

/// Walks the entries of a list or dict in Python's order.
class JsonCursor {
 public:
  explicit JsonCursor(JsonValue container);
  bool at_end() const { return index_ == end_; }
  void advance();
  std::string_view key() const;  ///< dicts only
  JsonValue value() const;
  bool in_dict() const { return in_dict_; }

 private:
  void skip_dropped();

  const JsonDocument* document_;
  std::uint32_t index_;  // of the element, or of the key
  std::uint32_t end_;
  bool in_dict_;
};

/// json.loads(text) for valid text (UTF-8, surrogates allowed in three-byte form, below 4 GiB).
/// Duplicate keys keep the first position and the last value. Throws Error::request with
/// JSONDecodeError and CPython's very message, or ValueError for an integer of more than
/// kMaxIntegerDigits and for nesting over kMaxJsonDepth. No recursion; time n log n at most.
JsonDocument parse_json(std::string_view text);

/// What bytes.decode("utf-8", "surrogatepass") accepts after one optional byte order mark: returns
/// the text without the mark. Throws Error::request("UnicodeDecodeError") with CPython's message.
std::string_view decode_json_bytes(std::string_view bytes);

}  // namespace jemm
