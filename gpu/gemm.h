// Products of rows with a weight through cuBLASLt: which algorithm, and what is kept from call to
// call. Knows no model.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "gpu/cuda.h"

struct __nv_bfloat16;

namespace jemm::gpu {

enum class Element { kBf16, kF32 };

template <typename T>
constexpr Element element_of() {
  return sizeof(T) == 2 ? Element::kBf16 : Element::kF32;
}
static_assert(element_of<float>() == Element::kF32);

/// y [rows, n_out] = x [rows, n_in] W [n_out, n_in]^T (+ bias [n_out]), row-major.
struct Product {
  std::int64_t n_out = 0, n_in = 0;
  Element in = Element::kBf16;   ///< of x and W
  Element out = Element::kBf16;  ///< of y and bias
  bool has_bias = false;

  auto operator<=>(const Product&) const = default;
};

/// How algorithms are chosen.
enum class GemmMode {
  kProposed,       ///< what the library proposes for the number of rows
  kFastest,        ///< what is fastest when it is tried, for a range of numbers of rows
  kDeterministic,  ///< one a weight whatever the rows, sums never split
};

/// The range of numbers of rows that share an algorithm in kFastest: its last number.
std::int64_t row_bucket(std::int64_t n_rows);

/// Plans and runs products on one stream at a time. BF16 products are summed in FP32 and rounded
/// once; FP32 products are plain FP32, never TF32, and never searched. A plan is made at the first
/// use of a product with a number of rows and kept; a search, which waits for the device, comes
/// before it where one is due. What searches find is kept in a file under `cache_directory` (empty:
/// none), which holds for this GPU, driver and library alone.
class Gemms {
 public:
  explicit Gemms(GemmMode mode = GemmMode::kProposed,
                 const std::filesystem::path& cache_directory = {});
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;

  /// Pointers are 16-byte aligned device memory, widths multiples of 8 elements where the library
  /// is to be fast. bias: null without has_bias. Nothing happens for 0 rows. Throws Error(kDevice).
  void run(const Product& product, std::int64_t n_rows, const void* x, const void* w,
           const void* bias, void* y, const Stream& stream);

  /// kDeterministic, BF16: chooses the product's algorithm by trying few and many rows, with scratch
  /// memory for x and y. Without this, and where memory is short, the library's proposal for 512
  /// rows is taken. Nothing happens in other modes.
  void settle(const Product& product, const void* w, const Stream& stream);

  /// Eight hexadecimal digits of what settle() chose, the same for the same choices; empty for
  /// none.
  std::string settled() const;
  /// Writes what was found since the last time to the file.
  void save();

  /// "cublasLt 13.1.0".
  static std::string library();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jemm::gpu
