// Kernels of oneDNN by shape, made once.
#include "cpu/products.h"

#include <iterator>
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

class DnnlProduct : public Product {
 public:
  DnnlProduct(const ProductShape& shape, int n_workers) {
    const OneThread guard;  // a primitive keeps the number of threads it was made for
    const dnnl::memory::desc a = plain(shape.m, shape.k), b = plain(shape.k, shape.n),
                             c = plain(shape.m, shape.n);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      attributes.set_post_ops(add);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc how(cpu_device(), a, b, c, attributes);
#else
    const dnnl::matmul::primitive_desc how({a, b, c}, attributes, cpu_device());
#endif
    matmul_ = dnnl::matmul(how);
    for (int worker = 0; worker < n_workers; ++worker) {
      workers_.push_back({.a = unset(a),
                          .b = unset(b),
                          .c = unset(c),
                          .scratch = {how.scratchpad_desc(), cpu_device()},
                          .stream = dnnl::stream(cpu_device())});
    }
  }

  void run(int worker, const float* a, const float* b, float* c) const override {
    const OneThread guard;
    const Worker& w = workers_[static_cast<std::size_t>(worker)];
    // oneDNN takes pointers to mutable data also for what it only reads.
    w.a.set_data_handle(const_cast<float*>(a));
    w.b.set_data_handle(const_cast<float*>(b));
    w.c.set_data_handle(c);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, w.a.get()},
                                         {DNNL_ARG_WEIGHTS, w.b.get()},
                                         {DNNL_ARG_DST, w.c.get()},
                                         {DNNL_ARG_SCRATCHPAD, w.scratch.get()}};
    const dnnl_status_t status =
        dnnl_primitive_execute(matmul_.get(), w.stream.get(), std::size(arguments), arguments);
    if (status != dnnl_success) {
      fail(ErrorKind::kDevice, "oneDNN: a product failed with status {}", static_cast<int>(status));
    }
  }

 private:
  // Made once: making them costs as much as a small product.
  struct Worker {
    dnnl::memory a, b, c, scratch;
    dnnl::stream stream;
  };

  static dnnl::memory unset(const dnnl::memory::desc& desc) {
    return {desc, cpu_device(), DNNL_MEMORY_NONE};
  }

  dnnl::matmul matmul_;
  std::vector<Worker> workers_;
};

}  // namespace

const Product& Products::get(const ProductShape& shape) {
  const std::lock_guard lock(mutex_);
  auto& product = made_[shape];
  if (!product) {
    try {
      product = std::make_unique<DnnlProduct>(shape, n_workers_);
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
