// The reader against the safetensors library 0.8 (golden/safetensors-cases.json).
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>

#include "core/checkpoint/memory_source.h"

namespace jemm {
namespace {

SafetensorsFile read(const std::string& bytes) {
  const auto content = std::make_shared<std::string>(bytes);
  return {{std::as_bytes(std::span(*content)), content}, "FILE"};
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string golden_file(const std::string& name) {
  for (const auto& row : read_golden("safetensors-cases.json")) {
    if (row["name"] == name) return from_hex(row["hex"]);
  }
  FAIL("no case " << name);
  return "";
}

std::string golden_refusal(const std::string& name) {
  return refusal([&] { read(golden_file(name)); });
}

TEST_CASE("files are taken and refused as by the library") {
  // Refused here alone; no writer makes such files.
  constexpr std::array kStricter{"name twice, same place", "description array", "dtype object"};
  int n_accepted = 0;
  int n_refused = 0;
  for (const auto& row : read_golden("safetensors-cases.json")) {
    const std::string name = row["name"];
    CAPTURE(name);
    const bool stricter = std::find(kStricter.begin(), kStricter.end(), name) != kStricter.end();
    const std::string bytes = from_hex(row["hex"]);
    if (row["accepted"] && !stricter) {
      CHECK_NOTHROW(read(bytes));
      ++n_accepted;
    } else {
      CHECK(refusal([&] { read(bytes); }).starts_with("FILE: "));
      ++n_refused;
    }
  }
  CHECK(n_accepted == 49);
  CHECK(n_refused == 93);
}

TEST_CASE("a refusal names the tensor and the reason") {
  CHECK(golden_refusal("seven bytes") == "FILE: 7 bytes are too few for a safetensors file");
  CHECK(golden_refusal("length 100000001") ==
        "FILE: a header of 100000001 bytes is over the limit of 100000000");
  CHECK(golden_refusal("length one too many") ==
        "FILE: a header of 3 bytes does not fit in a file of 10");
  CHECK(golden_refusal("hole") ==
        "FILE: tensor \"b\": data_offsets [8, 12] do not follow the 4 bytes "
        "before them in 12 bytes of data");
  CHECK(golden_refusal("data cut") ==
        "FILE: tensor \"a\": data_offsets [0, 8] do not follow the 0 "
        "bytes before them in 4 bytes of data");
  CHECK(golden_refusal("data left") == "FILE: 8 bytes of data, but the tensors cover 4");
  CHECK(golden_refusal("product overflows") ==
        "FILE: tensor \"a\": 0 bytes do not hold F32 [4294967296, 4294967296]");
  CHECK(golden_refusal("dtype unknown") == "FILE: tensor \"a\": unknown dtype \"F33\"");
  CHECK(golden_refusal("extent 1.5") ==
        "FILE: tensor \"a\": a number that is no 64-bit integer stands where it may not");
  CHECK(golden_refusal("name twice, same place") ==
        "FILE: tensor \"a\": data_offsets [0, 4] do not "
        "follow the 4 bytes before them in 4 bytes of data");
  CHECK(golden_refusal("metadata of integer") ==
        "FILE: __metadata__: a number stands where it may not");
  CHECK(golden_refusal("no shape") ==
        "FILE: tensor \"a\": dtype, shape and data_offsets must all be given");
  CHECK(golden_refusal("nested 130") == "FILE: tensor \"a\": the header is nested too deeply");
  CHECK(holds(golden_refusal("trailing text"), "FILE: the header is no valid JSON at byte 3: "));
}

TEST_CASE("empty tensors of one name are found by name, not by place") {
  const std::string twice = R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                            R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
  const std::uint64_t length = twice.size();
  const std::string file = std::string(reinterpret_cast<const char*>(&length), 8) + twice;
  CHECK(refusal([&] { read(file); }) == "FILE: tensor \"a\" is given twice");
}

TEST_CASE("tensors are read where they lie") {
  SafetensorsParts parts;
  parts.add("z", "F32", {1, 2}, std::string("\0\0\x80\x3F\0\0\0\xC0", 8));
  parts.add("byte", "U8", {1}, "x");
  parts.add("odd", "BF16", {2}, std::string("\x80\x3F\0\xC0", 4));
  const SafetensorsFile file = read(parts.file());
  REQUIRE(file.entries().size() == 3);
  CHECK(file.entries()[0].name == "byte");
  CHECK(file.find("absent") == nullptr);
  CHECK(file.find("") == nullptr);

  for (const auto& [name, size] : {std::pair("z", 4), std::pair("odd", 2)}) {
    const SafetensorsEntry* entry = file.find(name);
    REQUIRE(entry != nullptr);
    const Tensor tensor = file.tensor(*entry);
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data.bytes.data()) %
              static_cast<unsigned>(size) ==
          0);
    std::array<float, 2> values{};
    widen(tensor.dtype, tensor.data.bytes, values);
    CHECK(values == std::array{1.0F, -2.0F});
  }
  CHECK(refusal([&] { file.tensor(*file.find("byte")); }) ==
        "FILE: tensor \"byte\": weights must be BF16, F16 or F32, not U8");
}

TEST_CASE("a long or strange name is shown cut and escaped") {
  SafetensorsParts parts;
  parts.add(std::string(119, 'n') + "\xC3\xA9" + "\n", "F32", {2}, "1234");
  CHECK(refusal([&] { read(parts.file()); }) ==
        "FILE: tensor \"" + std::string(119, 'n') + "...\": 4 bytes do not hold F32 [2]");
  SafetensorsParts strange;
  strange.add("a\n\x7F", "F32", {2}, "1234");
  CHECK(refusal([&] { read(strange.file()); }) ==
        "FILE: tensor \"a\\x0a\\x7f\": 4 bytes do not hold F32 [2]");
}

}  // namespace
}  // namespace jemm
