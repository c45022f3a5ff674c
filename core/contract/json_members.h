// The members of a JSON object as text: which keys it has and where their values stand.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jemm {

struct JsonMember {
  std::string key;
  std::string_view value;  ///< JSON text without surrounding space; never empty
};

/// Members of an object, in order, duplicates included. The text is cut at its brackets and commas,
/// not checked: for valid JSON the members are right, and whoever reads a value checks it. A
/// leading byte order mark is passed over. Throws Error::request when the text has not the form of
/// an object. `keys`: only members with one of these; all when empty.
std::vector<JsonMember> json_members(std::string_view text,
                                     std::span<const std::string_view> keys = {});

/// The elements of a list, likewise.
std::vector<std::string_view> json_elements(std::string_view text);

/// The value of a JSON string; throws Error::request for anything else.
std::string json_string_value(std::string_view text);

}  // namespace jemm
