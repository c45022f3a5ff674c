// Kernels of the text forward that look at rows or heads, against naive twins in double.
#include "gpu/kernels/kernels.h"

#include <algorithm>
#include <tuple>

#include "gpu/blas_lt.h"
#include "gpu/forests.h"
#include "gpu/gemm.h"
#include "gpu/kernels/fill.h"
#include "gpu/pass_plan.h"
#include "gpu/support.h"

namespace jemm {
namespace {

using test::at;
using test::bf16;
using test::close;
using test::OnDevice;
using test::rounded;
using test::sigmoid;
using test::uniform;

constexpr std::int64_t kRowCounts[] = {0, 1, 15, 16, 17, 65, 1000};

template <typename T>
void check_products(gpu::Gemms& gemms, const gpu::Stream& stream) {
  for (const std::int64_t n_rows : kRowCounts) {
    for (const auto& [n_out, n_in] : {std::pair{24, 40}, std::pair{200, 96}, std::pair{16, 1000}}) {
      CAPTURE(n_rows);
      CAPTURE(n_out);
      const auto x = rounded<T>(uniform(n_rows * n_in, 1, -1, 1));
      const auto w = rounded<T>(uniform(n_out * n_in, 2, -1, 1));
      OnDevice<T> dx(x, stream), dw(w, stream);
      OnDevice<float> dy(n_rows * n_out, stream);
      const gpu::Product product{
          .n_out = n_out, .n_in = n_in, .in = gpu::element_of<T>(), .out = gpu::Element::kF32};
      gemms.settle(product, dw.data(), stream);
      gemms.run(product, n_rows, dx.data(), dw.data(), nullptr, dy.data(), stream);
      std::vector<double> expected;
      for (std::int64_t r = 0; r < n_rows; ++r) {
        for (std::int64_t o = 0; o < n_out; ++o) {
          double sum = 0;
          for (std::int64_t i = 0; i < n_in; ++i) sum += at(x, r * n_in + i) * at(w, o * n_in + i);
          expected.push_back(sum);
        }
      }
      close<float>(dy.values(), expected, 3e-5);
    }
  }
}

TEST_CASE("an algorithm is known by its parts") {
  if (!test::has_device()) return;
  const gpu::BlasLt blas;
  const gpu::Described described({.n_out = 64, .n_in = 8192}, 16);
  for (const auto& algorithm : blas.proposals(described, gpu::Sums::kWhole, 16)) {
    CHECK(gpu::is_whole(algorithm));
  }
  const auto split = blas.proposals(described, gpu::Sums::kSplit, 16);  // long sums, few outputs
  CHECK_FALSE(std::all_of(split.begin(), split.end(), gpu::is_whole));
}

TEST_CASE_TEMPLATE("products with a weight", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const gpu::GemmMode mode :
       {gpu::GemmMode::kProposed, gpu::GemmMode::kFastest, gpu::GemmMode::kDeterministic}) {
    gpu::Gemms gemms(mode);
    CAPTURE(static_cast<int>(mode));
    check_products<T>(gemms, stream);
    CHECK(gemms.settled().empty() == (mode != gpu::GemmMode::kDeterministic || sizeof(T) == 4));
  }
}

TEST_CASE_TEMPLATE("embedding, gathering and the norm", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n_rows : kRowCounts) {
    for (const std::int64_t width : {23, 96, 1000, 5376}) {
      CAPTURE(n_rows);
      CAPTURE(width);
      const auto table = rounded<T>(uniform(37 * width, 1, -2, 2));
      const auto factor = uniform(width, 2, 0.5, 1.5);
      std::vector<std::int32_t> ids;
      std::vector<float> expected;
      std::vector<double> normed;
      for (std::int64_t r = 0; r < n_rows; ++r) {
        ids.push_back(static_cast<std::int32_t>(r * 11 % 37));
        double sum = 0;
        for (std::int64_t i = 0; i < width; ++i) {
          expected.push_back(table[static_cast<std::size_t>(ids.back() * width + i)]);
          sum += std::pow(static_cast<double>(expected.back()), 2);
        }
        const double inverse = 1 / std::sqrt(sum / static_cast<double>(width) + 1e-6);
        for (std::int64_t i = 0; i < width; ++i) {
          normed.push_back(at(expected, r * width + i) * inverse * at(factor, i));
        }
      }
      OnDevice<T> dtable(table, stream), gathered(n_rows * width, stream),
          y(n_rows * width, stream);
      OnDevice<float> dfactor(factor, stream), x(n_rows * width, stream);
      const auto dids = test::on_device(ids, stream);
      gpu::embed(dtable.data(), dids.data(), n_rows, width, x.data(), stream.get());
      gpu::gather_rows(dtable.data(), width, dids.data(), n_rows, width, gathered.data(),
                       stream.get());
      gpu::rms_norm(x.data(), dfactor.data(), 1e-6f, n_rows, width, y.data(), stream.get());
      CHECK(test::same_bits(x.values(), expected));
      CHECK(test::same_bits(gathered.values(), expected));
      close<T>(y.values(), normed, 1e-6);
    }
  }
}

TEST_CASE("label logits") {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n_rows : {1, 3, 40}) {
    for (const std::int64_t width : {23, 1000, 5120}) {
      const auto x = uniform(n_rows * width, 1, -2, 2);
      const auto head = uniform(32 * width, 2, -1, 1);
      std::vector<double> expected;
      for (std::int64_t r = 0; r < n_rows; ++r) {
        for (std::int64_t o = 0; o < 32; ++o) {
          double sum = 0;
          for (std::int64_t i = 0; i < width; ++i)
            sum += at(x, r * width + i) * at(head, o * width + i);
          expected.push_back(sum);
        }
      }
      OnDevice<float> dx(x, stream), dhead(head, stream), logits(n_rows * 32, stream);
      gpu::label_logits(dx.data(), dhead.data(), n_rows, width, logits.data(), stream.get());
      close<float>(logits.values(), expected, 1e-4);
    }
  }
}

template <typename T>
void check_conv(const Forest& forest, std::int32_t dk, std::int32_t dv, std::int32_t width,
                std::int64_t padding, const gpu::Stream& stream) {
  constexpr std::int32_t kKeyHeads = 2, kValueHeads = 6;
  const std::int64_t channels = 2 * kKeyHeads * dk + kValueHeads * dv, stride = channels + padding;
  const std::int64_t n_rows = forest.n_rows();
  const auto x = rounded<T>(uniform(n_rows * stride, 1, -2, 2));
  const auto taps = uniform(width * channels, 2, -1, 1);
  const std::vector<Run> runs = runs_of(forest);
  std::vector<double> expected(static_cast<std::size_t>(n_rows * channels));
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::vector<std::int64_t> chain = chain_rows(runs, run);
    for (std::int64_t i = 0; i < runs[run].n_rows; ++i) {
      const std::int64_t place = runs[run].n_before + i;
      double* out = expected.data() + (runs[run].row_begin + i) * channels;
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t from = place - (width - 1 - j);
          if (from < 0) continue;
          sum += at(x, chain[static_cast<std::size_t>(from)] * stride + c) *
                 at(taps, j * channels + c);
        }
        out[c] = sum * sigmoid(sum);
      }
      for (std::int64_t h = 0; h < 2 * kKeyHeads; ++h) {
        double sum = 1e-6;
        for (std::int64_t d = 0; d < dk; ++d) sum += std::pow(out[h * dk + d], 2);
        for (std::int64_t d = 0; d < dk; ++d) out[h * dk + d] /= std::sqrt(sum);
      }
    }
  }
  const auto previous = test::on_device(gpu::plan_pass(forest, width).previous, stream);
  OnDevice<T> dx(x, stream), y(n_rows * channels, stream);
  OnDevice<float> dtaps(taps, stream);
  gpu::causal_conv({.n_rows = n_rows,
                    .x_stride = stride,
                    .n_key_heads = kKeyHeads,
                    .n_value_heads = kValueHeads,
                    .key_dim = dk,
                    .value_dim = dv,
                    .width = width,
                    .taps = dtaps.data(),
                    .previous = previous.data()},
                   dx.data(), y.data(), stream.get());
  close<T>(y.values(), expected, 2e-6);
}

TEST_CASE_TEMPLATE("the convolution over chains", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const auto& [name, forest] : test::odd_forests()) {
    CAPTURE(name);
    check_conv<T>(forest, 8, 20, 4, 9, stream);
    check_conv<T>(forest, 128, 128, 4, 9, stream);
    check_conv<T>(forest, 128, 128, 4, 8, stream);
    check_conv<T>(forest, 16, 8, 1, 8, stream);
    check_conv<T>(forest, 16, 8, 2, 4, stream);
    check_conv<T>(forest, 5, 7, 3, 0, stream);
  }
}

TEST_CASE_TEMPLATE("the gated norm", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int64_t n_rows : kRowCounts) {
    for (const auto& [width, padding] : {std::pair{20, 3}, std::pair{128, 3}, std::pair{128, 8}}) {
      constexpr std::int32_t kHeads = 11;
      const std::int64_t n = n_rows * kHeads * width, stride = kHeads * width + padding;
      const auto core = rounded<T>(uniform(n, 1, -2, 2));
      const auto z = rounded<T>(uniform(n_rows * stride, 2, -4, 4));
      const auto factor = uniform(width, 3, 0.5, 1.5);
      std::vector<double> expected;
      for (std::int64_t head = 0; head < n_rows * kHeads; ++head) {
        double sum = 0;
        for (std::int64_t d = 0; d < width; ++d) sum += std::pow(at(core, head * width + d), 2);
        for (std::int64_t d = 0; d < width; ++d) {
          const double gate = at(z, head / kHeads * stride + head % kHeads * width + d);
          expected.push_back(at(core, head * width + d) / std::sqrt(sum / width + 1e-6) *
                             at(factor, d) * gate * sigmoid(gate));
        }
      }
      OnDevice<T> dcore(core, stream), dz(z, stream), y(n, stream);
      OnDevice<float> dfactor(factor, stream);
      gpu::gated_norm(dcore.data(), dz.data(), stride, dfactor.data(), 1e-6f, n_rows, kHeads, width,
                      y.data(), stream.get());
      close<T>(y.values(), expected, 1e-6);
    }
  }
}

TEST_CASE_TEMPLATE("norm and rotation of heads", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const auto& [n_rows, width, half] :
       {std::tuple{1, 12, 4}, std::tuple{65, 32, 4}, std::tuple{130, 256, 32}}) {
    constexpr std::int32_t kHeads = 6, kKvHeads = 2;
    const std::int64_t stride = (2 * kHeads + 2 * kKvHeads) * width;
    const auto x = rounded<T>(uniform(n_rows * stride, 1, -2, 2));
    const auto q_factor = uniform(width, 2, 0.5, 1.5), k_factor = uniform(width, 3, 0.5, 1.5);
    std::vector<std::int32_t> positions, axes;
    std::vector<float> frequency;
    for (int i = 0; i < 3 * n_rows; ++i) positions.push_back(i * 7 % 4001);
    for (int i = 0; i < half; ++i) {
      axes.push_back(i % 3);
      frequency.push_back(std::pow(1e7f, -static_cast<float>(i) / static_cast<float>(half)));
    }
    std::vector<double> q, k;
    for (std::int64_t r = 0; r < n_rows; ++r) {
      for (std::int64_t h = 0; h < kHeads + kKvHeads; ++h) {
        const std::int64_t begin =
            r * stride + (h < kHeads ? 2 * h : 2 * kHeads + h - kHeads) * width;
        double sum = 0;
        for (std::int64_t d = 0; d < width; ++d) sum += std::pow(at(x, begin + d), 2);
        std::vector<double> head;
        for (std::int64_t d = 0; d < width; ++d) {
          const double y = at(x, begin + d) / std::sqrt(sum / width + 1e-6) *
                           at(h < kHeads ? q_factor : k_factor, d);
          head.push_back(y);
        }
        for (std::int64_t i = 0; i < half; ++i) {
          const auto f = static_cast<std::size_t>(i);
          const float angle =
              static_cast<float>(positions[static_cast<std::size_t>(3 * r + axes[f])]) *
              frequency[f];
          const double c = std::cos(static_cast<double>(angle));
          const double s = std::sin(static_cast<double>(angle));
          const auto other = static_cast<std::size_t>(i + half);
          const double a = head[f], b = head[other];
          head[f] = a * c - b * s;
          head[other] = b * c + a * s;
        }
        auto& to = h < kHeads ? q : k;
        to.insert(to.end(), head.begin(), head.end());
      }
    }
    const auto dpositions = test::on_device(positions, stream),
               daxes = test::on_device(axes, stream);
    OnDevice<float> dfrequency(frequency, stream), cosine(n_rows * half, stream),
        sine(n_rows * half, stream), dq_factor(q_factor, stream), dk_factor(k_factor, stream);
    OnDevice<T> dx(x, stream), dq(n_rows * kHeads * width, stream),
        dk(n_rows * kKvHeads * width, stream);
    gpu::rotary_table(dpositions.data(), dfrequency.data(), daxes.data(), n_rows, half,
                      cosine.data(), sine.data(), stream.get());
    gpu::norm_and_rotate({.n_rows = n_rows,
                          .stride = stride,
                          .n_heads = kHeads,
                          .n_kv_heads = kKvHeads,
                          .head_dim = width,
                          .half = half,
                          .eps = 1e-6f,
                          .q_factor = dq_factor.data(),
                          .k_factor = dk_factor.data(),
                          .cosine = cosine.data(),
                          .sine = sine.data()},
                         dx.data(), dq.data(), dk.data(), stream.get());
    close<T>(dq.values(), q, 3e-6);
    close<T>(dk.values(), k, 3e-6);
  }
}

}  // namespace
}  // namespace jemm
