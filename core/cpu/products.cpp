#include "cpu/products.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"

// Of the OpenMP runtime that oneDNN runs on. Both act on the calling thread alone.
extern "C" void omp_set_num_threads(int);
extern "C" int omp_get_max_threads();

namespace jemm::cpu {
namespace {

// oneDNN uses one thread for what the calling thread asks of it while this lives.
class OneThread {
 public:
  OneThread() : n_threads_before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(n_threads_before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int n_threads_before_;
};

dnnl::engine& cpu_device() {
  static dnnl::engine device(dnnl::engine::kind::cpu, 0);
  return device;
}

dnnl::memory::desc plain(std::int64_t rows, std::int64_t cols) {
  return {{rows, cols}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab};
}

// oneDNN takes pointers to mutable data also for what it only reads.
dnnl::memory view(const dnnl::memory::desc& desc, const float* data) {
  return {desc, cpu_device(), const_cast<float*>(data)};
}

class DnnlProduct : public Product {
 public:
  explicit DnnlProduct(const ProductShape& shape)
      : a_(plain(shape.m, shape.k)), b_(plain(shape.k, shape.n)), c_(plain(shape.m, shape.n)) {
    const OneThread guard;  // a primitive keeps the number of threads it was made for
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc how(cpu_device(), a_, b_, c_, attributes);
#else
    const dnnl::matmul::primitive_desc how({a_, b_, c_}, attributes, cpu_device());
#endif
    scratch_ = how.scratchpad_desc();
    matmul_ = dnnl::matmul(how);
  }

  void run(const float* a, const float* b, float* c) const override {
    const OneThread guard;
    try {
      thread_local std::vector<std::byte> scratch;
      thread_local dnnl::stream stream(cpu_device());
      if (scratch.size() < scratch_.get_size()) scratch.resize(scratch_.get_size());
      matmul_.execute(stream, {{DNNL_ARG_SRC, view(a_, a)},
                               {DNNL_ARG_WEIGHTS, view(b_, b)},
                               {DNNL_ARG_DST, view(c_, c)},
                               {DNNL_ARG_SCRATCHPAD, {scratch_, cpu_device(), scratch.data()}}});
    } catch (const dnnl::error& error) {
      fail(ErrorKind::kDevice, "oneDNN: {}", error.what());
    }
  }

 private:
  dnnl::memory::desc a_, b_, c_, scratch_;
  dnnl::matmul matmul_;
};

}  // namespace

const Product& Products::get(const ProductShape& shape) {
  const std::lock_guard lock(mutex_);
  auto& product = made_[shape];
  if (!product) {
    try {
      product = std::make_unique<DnnlProduct>(shape);
    } catch (const dnnl::error& error) {
      fail(ErrorKind::kDevice, "oneDNN refuses a product of [{}, {}] and [{}, {}]: {}", shape.m,
           shape.k, shape.k, shape.n, error.what());
    }
  }
  return *product;
}

std::string products_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} isa {:#x}", version->major, version->minor, version->patch,
                     static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

}  // namespace jemm::cpu
