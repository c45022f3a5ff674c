// The image files that an input line names beside its request.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace jemm::cli {

/// The paths of `image_files`, a JSON list of strings, those that are not absolute below
/// `directory`. Throws Error::request for anything else and for more than a request may have.
std::vector<std::filesystem::path> image_paths(std::string_view json,
                                               const std::filesystem::path& directory);

/// The bytes of a regular file of at most kMaxBodyBytes. Throws Error::request("OSError"), naming
/// the file.
std::string read_image_file(const std::filesystem::path& path);

}  // namespace jemm::cli
