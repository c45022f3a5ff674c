// Matrix products of fixed shapes, by oneDNN, on the calling thread. The only file that knows it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace jemm::cpu {

/// c = a b, or c += a b: row-major, contiguous, float32. The sum over k is float32 in oneDNN's
/// order, which depends on the shape and on the machine's instruction set, but neither on the
/// column, nor on the values elsewhere, nor on threads.
struct ProductShape {
  std::int64_t m = 0, k = 0, n = 0;  // a [m, k], b [k, n], c [m, n]
  bool accumulate = false;           // add to c

  auto operator<=>(const ProductShape&) const = default;
};

class Product {
 public:
  virtual ~Product() = default;
  /// May be called from several threads at once, each under its own number in [0, n_workers).
  virtual void run(int worker, const float* a, const float* b, float* c) const = 0;
};

/// Products by shape, made when first asked for and kept. May be used from several threads.
class Products {
 public:
  explicit Products(int n_workers) : n_workers_(n_workers) {}
  /// Throws Error(kDevice) when oneDNN refuses.
  const Product& get(const ProductShape& shape);

 private:
  int n_workers_;
  std::mutex mutex_;
  std::map<ProductShape, std::unique_ptr<const Product>> made_;
};

/// Version and instruction set in use: equal texts promise equal bits.
std::string products_version();

}  // namespace jemm::cpu
