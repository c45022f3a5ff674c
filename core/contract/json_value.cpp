// Walking the flat array of a JSON document.
#include "contract/json.h"

namespace jemm {

JsonValue JsonDocument::root() const {
  return {*this, 0};
}

std::uint32_t JsonDocument::behind(std::uint32_t index) const {
  const JsonNode& node = nodes_[index];
  const bool container = node.kind == JsonKind::kList || node.kind == JsonKind::kDict;
  return container ? node.link() : index + 1;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_dict()) return std::nullopt;
  for (JsonCursor entry(*this); !entry.at_end(); entry.advance()) {
    if (entry.key() == key) return entry.value();
  }
  return std::nullopt;
}

JsonCursor::JsonCursor(JsonValue container)
    : document_(container.document_),
      index_(container.index_ + 1),
      end_(document_->behind(container.index_)),
      in_dict_(container.is_dict()) {
  skip_dropped();
}

void JsonCursor::advance() {
  index_ = document_->behind(in_dict_ ? index_ + 1 : index_);
  skip_dropped();
}

void JsonCursor::skip_dropped() {
  while (index_ != end_ && document_->nodes_[index_].kind == JsonKind::kDroppedKey) {
    index_ = document_->behind(index_ + 1);
  }
}

std::string_view JsonCursor::key() const {
  return document_->text_of(document_->nodes_[index_]);
}

JsonValue JsonCursor::value() const {
  return {*document_, in_dict_ ? document_->nodes_[index_].link() : index_};
}

}  // namespace jemm
