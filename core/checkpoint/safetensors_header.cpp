// Walks the header and refuses what the format does not allow.
#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/json_object.h"

namespace jemm {
namespace {

struct DTypeBits {
  std::string_view name;
  int bits;
};
constexpr DTypeBits kDTypes[] = {
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
};

/// The library's parser allows this many nested containers.
constexpr int kMaxDepth = 127;

/// Receives the header's JSON piece by piece, so that a hostile one builds no tree.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  std::vector<SafetensorsDescription> take() { return std::move(tensors_); }

  bool null() override {
    // The library reads a null __metadata__ as none.
    if (depth_ == 1 && in_metadata_) return true;
    return scalar("null");
  }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return scalar("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return scalar("a number that is no 64-bit integer");
  }
  bool binary(binary_t&) override { return scalar("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3 || skipping()) return scalar("a number");
    if (field_ == Field::kShape) {
      tensors_.back().shape.push_back(value);
    } else {
      if (n_offsets_ == 2) refuse("data_offsets must hold two numbers");
      tensors_.back().offsets[n_offsets_++] = value;
    }
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) return true;
    if (depth_ != 2 || field_ != Field::kDType) return scalar("a string");
    const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                     [&](const DTypeBits& d) { return d.name == value; });
    if (found == std::end(kDTypes)) refuse(fmt::format("unknown dtype {}", in_quotes(value)));
    tensors_.back().dtype = found->name;
    tensors_.back().dtype_bits = found->bits;
    return true;
  }

  bool key(string_t& value) override {
    if (depth_ == 1) {
      in_metadata_ = value == "__metadata__";
      if (!in_metadata_) {
        tensors_.push_back(
            {.name = value, .dtype = {}, .dtype_bits = 0, .shape = {}, .offsets = {}});
        seen_ = {};
      } else if (std::exchange(metadata_seen_, true)) {
        refuse("__metadata__ is given twice");
      }
    } else if (depth_ == 2 && !in_metadata_) {
      field_ = value == "dtype"          ? Field::kDType
               : value == "shape"        ? Field::kShape
               : value == "data_offsets" ? Field::kOffsets
                                         : Field::kUnknown;
      if (field_ != Field::kUnknown &&
          std::exchange(seen_[static_cast<std::size_t>(field_)], true)) {
        refuse(fmt::format("{} is given twice", value));
      }
    }
    return true;
  }

  bool start_object(std::size_t) override {
    const bool expected = depth_ == 0 || depth_ == 1 || skipping();
    if (!expected) scalar("an object");
    return enter();
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_ && seen_ != std::array{true, true, true}) {
      refuse("dtype, shape and data_offsets must all be given");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    const bool expected = skipping() || (depth_ == 2 && !in_metadata_ &&
                                         (field_ == Field::kShape || field_ == Field::kOffsets));
    if (!expected) scalar("an array");
    n_offsets_ = 0;
    return enter();
  }
  bool end_array() override {
    --depth_;
    if (depth_ == 2 && field_ == Field::kOffsets && n_offsets_ != 2) {
      refuse("data_offsets must hold two numbers");
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    fail(ErrorKind::kInput, "{}: the header is no valid JSON at byte {}: {}", file_, position,
         json_reason(error.what()));
  }

 private:
  enum class Field : std::size_t { kDType, kShape, kOffsets, kUnknown };

  /// Inside the value of a field that the format does not define; the library ignores those.
  bool skipping() const { return depth_ >= 2 && !in_metadata_ && field_ == Field::kUnknown; }

  /// A value of a kind that fits nowhere but in an ignored field.
  bool scalar(std::string_view what) {
    if (!skipping()) refuse(fmt::format("{} stands where it may not", what));
    return true;
  }

  bool enter() {
    if (++depth_ > kMaxDepth) refuse("the header is nested too deeply");
    if (depth_ == 2) field_ = Field::kUnknown;
    return true;
  }

  [[noreturn]] void refuse(std::string_view why) const {
    const std::string where = in_metadata_       ? "__metadata__"
                              : tensors_.empty() ? "header"
                                                 : "tensor " + in_quotes(tensors_.back().name);
    fail(ErrorKind::kInput, "{}: {}: {}", file_, where, why);
  }

  const std::string& file_;
  std::vector<SafetensorsDescription> tensors_;
  int depth_ = 0;  // open containers
  bool in_metadata_ = false;
  bool metadata_seen_ = false;
  Field field_ = Field::kUnknown;
  std::array<bool, 3> seen_{};  // of the current tensor's fields
  std::size_t n_offsets_ = 0;
};

}  // namespace

std::vector<SafetensorsDescription> parse_safetensors_header(std::string_view text,
                                                             const std::string& file) {
  check_json_bytes(text, file);
  HeaderReader reader(file);
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace jemm
