// One image file directory, read as Pillow's ImageFileDirectory_v2 does.
#include "image/tiff_directory.h"

#include <array>
#include <map>
#include <optional>

#include "image/bytes.h"

namespace jemm {
namespace {

using namespace std::string_view_literals;

/// Bytes of one value of each type; 0 for types that are skipped.
constexpr std::array<std::size_t, 17> kTypeBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2,
                                                    4, 8, 4, 8, 4, 0, 0, 8};

struct Tag {
  unsigned type = 0;
  std::string_view data;
};

struct Directory {
  bool big_endian = false;
  std::map<unsigned, Tag> tags;

  std::uint64_t number(std::string_view data, std::size_t offset, std::size_t n_bytes) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < n_bytes; ++i) {
      const std::size_t at = big_endian ? offset + i : offset + n_bytes - 1 - i;
      value = value << 8 | byte_at(data, at);
    }
    return value;
  }
};

/// Reads the tags of one entry table; what is cut ends the table.
void read_entries(std::string_view tiff, std::uint64_t offset, bool big_tiff,
                  Directory& directory) {
  const std::size_t word = big_tiff ? 8 : 4;
  const std::size_t count_bytes = big_tiff ? 8 : 2;
  const std::size_t entry_bytes = 4 + 2 * word;
  if (offset > tiff.size() || tiff.size() - offset < count_bytes) return;
  auto at = static_cast<std::size_t>(offset);
  const std::uint64_t n_entries = directory.number(tiff, at, count_bytes);
  at += count_bytes;
  for (std::uint64_t i = 0; i < n_entries && tiff.size() - at >= entry_bytes;
       ++i, at += entry_bytes) {
    const auto type = static_cast<unsigned>(directory.number(tiff, at + 2, 2));
    const std::uint64_t count = directory.number(tiff, at + 4, word);
    if (type >= kTypeBytes.size() || kTypeBytes[type] == 0 || count == 0) continue;
    std::size_t begin = at + 4 + word;
    if (count > tiff.size()) return;
    const std::size_t size = static_cast<std::size_t>(count) * kTypeBytes[type];
    if (size > word) {
      const std::uint64_t where = directory.number(tiff, begin, word);
      if (where > tiff.size() || size > tiff.size() - where) return;
      begin = static_cast<std::size_t>(where);
    }
    directory.tags[static_cast<unsigned>(directory.number(tiff, at, 2))] = {
        type, tiff.substr(begin, size)};
  }
}

/// Nothing when the header is none of a TIFF's.
std::optional<Directory> read_directory(std::string_view tiff) {
  if (tiff.size() < 8) return std::nullopt;
  Directory directory;
  directory.big_endian = tiff.starts_with("MM");
  constexpr std::array kHeaders = {"MM\0*"sv, "II*\0"sv, "MM*\0"sv,
                                   "II\0*"sv, "MM\0+"sv, "II+\0"sv};
  bool known = false;
  for (const std::string_view header : kHeaders) known |= tiff.starts_with(header);
  if (!known) return std::nullopt;
  // Pillow hands over eight bytes of header, too few for the one BigTIFF form that it knows.
  if (tiff[2] == '+') return std::nullopt;
  read_entries(tiff, directory.number(tiff, 4, 4), false, directory);
  return directory;
}

/// The first value of a tag that holds integers; nothing for other types.
std::optional<std::int64_t> first_integer(const Directory& directory, const Tag& tag) {
  const bool is_signed = tag.type == 6 || tag.type == 8 || tag.type == 9;
  const bool is_unsigned = tag.type == 3 || tag.type == 4 || tag.type == 13 || tag.type == 16;
  if (!is_signed && !is_unsigned) return std::nullopt;
  const std::size_t n_bytes = kTypeBytes[tag.type];
  const std::uint64_t value = directory.number(tag.data, 0, n_bytes);
  if (!is_signed) return static_cast<std::int64_t>(value);
  const std::size_t shift = 64 - 8 * n_bytes;
  return static_cast<std::int64_t>(value << shift) >> shift;
}

}  // namespace

std::uint64_t count_mp_pictures(std::string_view index) {
  constexpr unsigned kNumberOfImages = 0xB001;
  constexpr unsigned kEntries = 0xB002;
  const auto directory = read_directory(index);
  if (!directory || !directory->tags.contains(kNumberOfImages)) return 1;
  const auto count = first_integer(*directory, directory->tags.at(kNumberOfImages));
  if (!count || !directory->tags.contains(kEntries)) return 1;
  const Tag& entries = directory->tags.at(kEntries);
  if (entries.type != 1 && entries.type != 7) return 1;
  // The entries' byte order is Pillow's own test of the header, which misspelt headers fail.
  const bool big_endian = index.starts_with("MM\0*"sv);
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto begin = static_cast<std::size_t>(i) * 16;
    if (entries.data.size() < begin + 16) throw ImageFault::kUndecodable;
    const unsigned attribute_high = byte_at(entries.data, begin + (big_endian ? 0 : 3));
    if ((attribute_high & 7) != 0) return 1;  // a picture format other than JPEG
  }
  return *count < 0 ? 0 : static_cast<std::uint64_t>(*count);
}

bool exif_resolution_is_fatal(std::string_view exif) {
  constexpr unsigned kXResolution = 0x011A;
  constexpr unsigned kResolutionUnit = 0x0128;
  while (exif.starts_with("Exif\0\0"sv)) exif.remove_prefix(6);
  const auto directory = read_directory(exif);
  if (!directory || !directory->tags.contains(kXResolution)) return false;
  if (!directory->tags.contains(kResolutionUnit)) return false;
  const Tag& resolution = directory->tags.at(kXResolution);
  if (resolution.type == 1 || resolution.type == 7) return resolution.data.size() == 1;
  if (resolution.type != 2) return false;
  std::string_view text = resolution.data;
  if (text.ends_with('\0')) text.remove_suffix(1);
  return text.empty() || (text.size() == 1 && text[0] >= '0' && text[0] <= '9');
}

}  // namespace jemm
