// A checkpoint directory in memory whose files a test may edit, and how a refusal is read.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/checkpoint.h"

namespace jemm {

class MemorySource : public FileSource {
 public:
  explicit MemorySource(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  bool contains(std::string_view file) const override { return files.contains(std::string(file)); }
  Blob open(std::string_view file) const override {
    const auto at = files.find(std::string(file));
    if (at == files.end()) fail(ErrorKind::kIo, "cannot open {}/{}", name_, file);
    const auto content = std::make_shared<std::string>(at->second);
    return {std::as_bytes(std::span(*content)), content};
  }

  std::map<std::string, std::string> files;

 private:
  std::string name_;
};

inline std::string read_fixture(const std::string& path) {
  return std::string(map_file(JEMM_SOURCE_DIR "/fixtures/" + path).text());
}

inline nlohmann::json read_golden(const std::string& name) {
  return nlohmann::json::parse(map_file(JEMM_SOURCE_DIR "/golden/" + name).text());
}

/// A fixture's files, held for editing.
struct EditableCheckpoint {
  std::shared_ptr<MemorySource> base = std::make_shared<MemorySource>("BASE");
  std::shared_ptr<MemorySource> adapter = std::make_shared<MemorySource>("ADAPTER");

  explicit EditableCheckpoint(const std::string& fixture) {
    const auto load = [&](MemorySource& to, const std::string& part, const char* file) {
      const std::string path = fixture + "/" + part + "/" + file;
      if (open_directory(JEMM_SOURCE_DIR "/fixtures")->contains(path))
        to.files[file] = read_fixture(path);
    };
    for (const char* file :
         {"config.json", "model.safetensors", "model.safetensors.index.json",
          "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
      load(*base, "base", file);
    }
    for (const char* file :
         {"adapter_config.json", "adapter_model.safetensors", "decision_config.json"}) {
      load(*adapter, "adapter", file);
    }
  }

  std::unique_ptr<const Checkpoint> open() const { return open_checkpoint({base, adapter}); }
  std::unique_ptr<const Checkpoint> open_synthetic(std::uint32_t seed) const {
    return jemm::open_synthetic({base, adapter}, seed);
  }
};

/// Rewrites a JSON text.
inline void edit_json(std::string& text, const std::function<void(nlohmann::json&)>& edit) {
  nlohmann::json value = nlohmann::json::parse(text);
  edit(value);
  text = value.dump();
}

/// A safetensors file taken apart: the header as JSON, the data behind it.
struct SafetensorsParts {
  nlohmann::json header;
  std::string data;

  explicit SafetensorsParts(const std::string& file) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    header = nlohmann::json::parse(file.substr(8, length));
    data = file.substr(8 + length);
  }
  SafetensorsParts() : header(nlohmann::json::object()) {}

  void add(const std::string& name, const std::string& dtype, const nlohmann::json& shape,
           const std::string& bytes) {
    header[name] = {{"dtype", dtype},
                    {"shape", shape},
                    {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  /// Takes a tensor out, its bytes too.
  std::string remove(const std::string& name) {
    const std::size_t begin = header.at(name).at("data_offsets")[0];
    const std::size_t end = header.at(name).at("data_offsets")[1];
    header.erase(name);
    for (auto& [other, info] : header.items()) {
      if (other == "__metadata__" || info["data_offsets"][0] < end) continue;
      for (auto& offset : info["data_offsets"]) offset = offset.get<std::size_t>() - (end - begin);
    }
    const std::string bytes = data.substr(begin, end - begin);
    data.erase(begin, end - begin);
    return bytes;
  }
  std::string file() const {
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data;
  }
};

inline void edit_safetensors(std::string& file,
                             const std::function<void(SafetensorsParts&)>& edit) {
  SafetensorsParts parts(file);
  edit(parts);
  file = parts.file();
}

/// The message of the Error that `act` throws; fails the test when it throws none of that kind.
inline std::string refusal(const std::function<void()>& act, ErrorKind kind = ErrorKind::kInput) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("nothing was refused");
  return "";
}

inline bool holds(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("in: " << text.substr(0, 2000));
  return false;
}

}  // namespace jemm
