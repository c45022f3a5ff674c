// Attention and the delta rule over chains of runs, against naive twins in double; and their plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>

#include "gpu/forests.h"
#include "gpu/kernels/kernels.h"
#include "gpu/pass_plan.h"
#include "gpu/support.h"

namespace jemm {
namespace {

using test::bf16;
using test::OnDevice;
using test::rounded;
using test::Stored;
using test::uniform;

double at(const std::vector<float>& x, std::int64_t i) {
  return static_cast<double>(x[static_cast<std::size_t>(i)]);
}

TEST_CASE("the plan of a pass") {
  for (const auto& [name, forest] : test::odd_forests()) {
    CAPTURE(name);
    const gpu::PassPlan plan = gpu::plan_pass(forest, 4);
    const std::vector<Run> runs = runs_of(forest);
    std::vector<int> seen(static_cast<std::size_t>(forest.n_rows()));
    for (const gpu::DeltaChunk& chunk : plan.chunks) {
      REQUIRE(chunk.n_rows >= 1);
      REQUIRE(chunk.n_rows <= 64);
      const Run& run = runs[run_of_row(runs, chunk.row_begin)];
      const std::int64_t place = run.n_before + chunk.row_begin - run.row_begin;
      CHECK(place / 64 == (place + chunk.n_rows - 1) / 64);
      for (std::int32_t i = 0; i < chunk.n_rows; ++i) {
        ++seen[static_cast<std::size_t>(chunk.row_begin + i)];
      }
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
    std::int32_t last_place = 0;
    for (const gpu::AttentionTile& tile : plan.tiles) {
      REQUIRE(tile.n_rows >= 1);
      REQUIRE(tile.n_rows <= gpu::kAttentionTileRows);
      const Run& run = runs[static_cast<std::size_t>(tile.run)];
      CHECK(tile.first_place == run.n_before + tile.row_begin - run.row_begin);
      CHECK(tile.row_begin + tile.n_rows <= run.row_begin + run.n_rows);
      CHECK(tile.first_place + tile.n_rows >= last_place);
      last_place = tile.first_place + tile.n_rows;
      for (std::int32_t i = 0; i < tile.n_rows; ++i) {
        ++seen[static_cast<std::size_t>(tile.row_begin + i)];
      }
    }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 2; }));
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const std::vector<std::int64_t> chain = chain_rows(runs, run);
      for (std::int64_t i = 0; i < runs[run].n_rows; ++i) {
        for (std::int64_t back = 1; back <= 3; ++back) {
          const std::int64_t place = runs[run].n_before + i - back;
          const std::int64_t expected = place < 0 ? -1 : chain[static_cast<std::size_t>(place)];
          const std::int64_t row = runs[run].row_begin + i;
          CHECK(plan.previous[static_cast<std::size_t>(3 * row + 3 - back)] == expected);
        }
      }
    }
    // Played through, every run finds its parent's state in the slot that it is told.
    std::vector<std::int64_t> holder(static_cast<std::size_t>(plan.n_slots), -1);
    std::size_t n_seen = 0;
    for (const gpu::DeltaLevel& level : plan.levels) {
      std::vector<std::pair<std::int32_t, std::int64_t>> kept;
      for (std::int32_t i = 0; i < level.n_runs; ++i) {
        const gpu::DeltaRun& delta = plan.delta_runs[static_cast<std::size_t>(level.first_run + i)];
        const std::int64_t row = plan.chunks[static_cast<std::size_t>(delta.first_chunk)].row_begin;
        const auto run = static_cast<std::int64_t>(run_of_row(runs, row));
        const std::int32_t parent = runs[static_cast<std::size_t>(run)].parent;
        CHECK((parent < 0) == (delta.from_slot < 0));
        if (parent >= 0) CHECK(holder[static_cast<std::size_t>(delta.from_slot)] == parent);
        if (delta.to_slot >= 0) {
          // No run of this level may still have to read what is overwritten.
          for (std::int32_t j = 0; j < level.n_runs; ++j) {
            CHECK(plan.delta_runs[static_cast<std::size_t>(level.first_run + j)].from_slot !=
                  delta.to_slot);
          }
          kept.emplace_back(delta.to_slot, run);
        }
        ++n_seen;
      }
      for (const auto& [slot, run] : kept) holder[static_cast<std::size_t>(slot)] = run;
    }
    CHECK(n_seen == runs.size());
  }
  // A chain needs two states however long it is.
  std::vector<std::pair<std::int32_t, std::int64_t>> long_chain{{-1, 1}};
  for (std::int32_t i = 0; i < 50; ++i) long_chain.emplace_back(i, 1);
  CHECK(gpu::plan_pass(test::forest_of(long_chain), 4).n_slots == 2);
}

// Random inputs of the attention of a pass.
template <typename T>
struct AttentionInputs {
  std::int64_t n_rows;
  std::int32_t n_heads, n_kv_heads, width;
  std::int64_t gate_stride = n_heads * 2 * width + 8, v_stride = n_kv_heads * width + 8;
  std::vector<float> q = rounded<T>(uniform(n_rows * n_heads * width, 1, -2, 2));
  std::vector<float> k = rounded<T>(uniform(n_rows * n_kv_heads * width, 2, -2, 2));
  std::vector<float> v = rounded<T>(uniform(n_rows * v_stride, 3, -1, 3));
  std::vector<float> gates = rounded<T>(uniform(n_rows * gate_stride, 4, -3, 3));

  std::vector<float> run(const Forest& forest, const gpu::Stream& stream) const {
    const gpu::PassPlan plan = gpu::plan_pass(forest, 4);
    const auto runs = test::on_device(plan.attention_runs, stream);
    const auto tiles = test::on_device(plan.tiles, stream);
    OnDevice<T> dq(q, stream), dk(k, stream), dv(v, stream), dgates(gates, stream),
        out(n_rows * n_heads * width, stream);
    gpu::attention({.n_heads = n_heads,
                    .n_kv_heads = n_kv_heads,
                    .head_dim = width,
                    .v_stride = v_stride,
                    .gate_stride = gate_stride,
                    .runs = runs.data(),
                    .tiles = tiles.data(),
                    .n_tiles = std::ssize(plan.tiles)},
                   dq.data(), dk.data(), dv.data(), dgates.data(), out.data(), stream.get());
    return out.values();
  }

  // One head of one row, whose keys are the rows of `chain`.
  std::vector<double> expected(std::span<const std::int64_t> chain, std::int64_t row,
                               std::int64_t head) const {
    const std::int64_t kv = head / (n_heads / n_kv_heads);
    std::vector<double> score;
    double sum = 0;
    for (const std::int64_t from : chain) {
      double dot = 0;
      for (std::int64_t d = 0; d < width; ++d) {
        dot +=
            at(q, (row * n_heads + head) * width + d) * at(k, (from * n_kv_heads + kv) * width + d);
      }
      score.push_back(std::exp(dot / std::sqrt(width)));
      sum += score.back();
    }
    std::vector<double> out(static_cast<std::size_t>(width));
    for (std::size_t p = 0; p < chain.size(); ++p) {
      for (std::int64_t d = 0; d < width; ++d) {
        out[static_cast<std::size_t>(d)] +=
            score[p] / sum * at(v, chain[p] * v_stride + kv * width + d);
      }
    }
    for (std::int64_t d = 0; d < width; ++d) {
      out[static_cast<std::size_t>(d)] /=
          1 + std::exp(-at(gates, row * gate_stride + 2 * head * width + d));
    }
    return out;
  }
};

// Rows `every` apart within each run, and its last one, against the twin. The budget of BF16 is the
// rounding of the weights before they meet v, and that of the result: half a step each, at the
// most.
template <typename T>
void check_attention(const Forest& forest, std::array<std::int32_t, 3> shape,
                     const gpu::Stream& stream, std::int64_t every = 1) {
  const AttentionInputs<T> in{forest.n_rows(), shape[0], shape[1], shape[2]};
  const std::vector<float> out = in.run(forest, stream);
  std::vector<float> got;
  std::vector<double> expected;
  const std::vector<Run> runs = runs_of(forest);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::vector<std::int64_t> chain = chain_rows(runs, run);
    for (std::int64_t i = 0; i < runs[run].n_rows; ++i) {
      if (i % every != 0 && i + 1 != runs[run].n_rows) continue;
      const std::int64_t row = runs[run].row_begin + i, n_keys = runs[run].n_before + i + 1;
      for (std::int64_t h = 0; h < in.n_heads; ++h) {
        const auto want =
            in.expected(std::span(chain).first(static_cast<std::size_t>(n_keys)), row, h);
        expected.insert(expected.end(), want.begin(), want.end());
        const auto begin = out.begin() + (row * in.n_heads + h) * in.width;
        got.insert(got.end(), begin, begin + in.width);
      }
    }
  }
  const double ratio = test::rms_ratio(got, expected);
  MESSAGE("attention, heads " << in.n_heads << " " << in.n_kv_heads << ", width " << in.width
                              << ", bytes " << sizeof(T) << ": " << ratio);
  CHECK(ratio <= 2e-6 + 2 * Stored<T>::kHalfStep);
}

TEST_CASE_TEMPLATE("attention over chains", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const auto& [name, forest] : test::odd_forests()) {
    CAPTURE(name);
    for (const std::int32_t width : {12, 16, 72, 128}) {
      check_attention<T>(forest, {6, 2, width}, stream, 7);
    }
    check_attention<T>(forest, {6, 2, 256}, stream);
    check_attention<T>(forest, {3, 3, 256}, stream, 3);
    check_attention<T>(forest, {6, 1, 256}, stream, 3);
    check_attention<T>(forest, {10, 1, 256}, stream, 5);
  }
  check_attention<T>(test::forest_of({{-1, 8192}}), {6, 1, 256}, stream, 331);
  check_attention<T>(test::forest_of({{-1, 1024}, {0, 100}, {0, 16}, {0, 1}}), {24, 4, 256}, stream,
                     41);
}

TEST_CASE_TEMPLATE("a row's attention depends on its chain alone", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const std::int32_t width : {32, 256}) {
    CAPTURE(width);
    constexpr std::int64_t kRows = 210;
    const AttentionInputs<T> in{kRows, 6, 2, width};
    const std::vector<float> whole = in.run(test::forest_of({{-1, kRows}}), stream);
    for (std::int32_t n = 1; n < kRows; ++n) {
      CAPTURE(n);
      CHECK(test::same_bits(in.run(test::forest_of({{-1, n}, {0, kRows - n}}), stream), whole));
    }
    CHECK(test::same_bits(in.run(test::forest_of({{-1, 70}, {0, 1}, {1, 139}}), stream), whole));
    // Behind neighbours, whose values are no numbers.
    AttentionInputs<T> more{2 * kRows, 6, 2, width};
    const auto follow = [](const std::vector<float>& from, std::vector<float>& to) {
      std::fill(to.begin(), to.end(), std::nanf(""));
      std::copy(from.begin(), from.end(), to.end() - std::ssize(from));
    };
    follow(in.q, more.q);
    follow(in.k, more.k);
    follow(in.v, more.v);
    follow(in.gates, more.gates);
    std::vector<float> behind =
        more.run(test::forest_of({{-1, 33}, {-1, kRows - 33}, {-1, 75}, {2, kRows - 75}}), stream);
    behind.erase(behind.begin(), behind.end() - std::ssize(whole));
    CHECK(test::same_bits(behind, whole));
  }
}

struct DeltaHeads {
  std::int32_t n_key_heads, n_value_heads, dk, dv;
};

struct DeltaInputs {
  std::int64_t n_rows, stride, gate_stride;
  std::vector<float> qkv{}, a{}, b{}, decay{}, time_bias{};
};

// Unit queries and keys, decays from none to strong.
template <typename T>
DeltaInputs delta_inputs(std::int64_t n_rows, const DeltaHeads& heads) {
  const auto [n_key_heads, n_value_heads, dk, dv] = heads;
  DeltaInputs in{.n_rows = n_rows,
                 .stride = 2 * n_key_heads * dk + n_value_heads * dv,
                 .gate_stride = n_value_heads + 3};
  in.qkv = uniform(n_rows * in.stride, 1, -1, 1);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::int64_t h = 0; h < 2 * n_key_heads; ++h) {
      float* x = in.qkv.data() + row * in.stride + h * dk;
      float sum = 0;
      for (std::int64_t d = 0; d < dk; ++d) sum += x[d] * x[d];
      for (std::int64_t d = 0; d < dk; ++d) x[d] /= std::sqrt(sum);
    }
  }
  in.qkv = rounded<T>(in.qkv);
  in.a = rounded<T>(uniform(n_rows * in.gate_stride, 2, -3, 3));
  in.b = rounded<T>(uniform(n_rows * in.gate_stride, 3, -3, 3));
  in.decay = uniform(n_value_heads, 4, 0, 1);
  in.decay[0] = 12;
  in.time_bias = uniform(n_value_heads, 5, -4, 1);
  return in;
}

// The recurrence of gpu/kernels/kernels.h, token by token, for `n_columns` of a head's Dv and the
// heads below `n_heads` alone: [rows, n_heads, n_columns].
std::vector<double> recurrence(const DeltaInputs& in, const Forest& forest, const DeltaHeads& heads,
                               std::int32_t n_heads, std::int32_t n_columns) {
  const auto [n_key_heads, n_value_heads, dk, dv] = heads;
  std::vector<double> out(static_cast<std::size_t>(in.n_rows * n_heads * n_columns));
  const std::vector<Run> runs = runs_of(forest);
  const auto size = static_cast<std::size_t>(dk * n_columns);
  for (std::int64_t h = 0; h < n_heads; ++h) {
    std::vector<std::vector<double>> states;
    const std::int64_t key = h / (n_value_heads / n_key_heads) * dk;
    for (const Run& run : runs) {
      std::vector<double> s =
          run.parent < 0 ? std::vector<double>(size) : states[static_cast<std::size_t>(run.parent)];
      for (std::int64_t row = run.row_begin; row < run.row_begin + run.n_rows; ++row) {
        const std::int64_t q = row * in.stride + key, k = q + n_key_heads * dk;
        const std::int64_t v = row * in.stride + 2 * n_key_heads * dk + h * dv;
        const std::int64_t gate = row * in.gate_stride + h;
        const double soft = std::log1p(std::exp(at(in.a, gate) + at(in.time_bias, h)));
        const double decay = std::exp(-at(in.decay, h) * soft);
        const double beta = 1 / (1 + std::exp(-at(in.b, gate)));
        for (double& x : s) x *= decay;
        for (std::int64_t j = 0; j < n_columns; ++j) {
          double seen = 0;
          for (std::int64_t i = 0; i < dk; ++i) {
            seen += s[static_cast<std::size_t>(i * n_columns + j)] * at(in.qkv, k + i);
          }
          const double change = beta * (at(in.qkv, v + j) - seen);
          double sum = 0;
          for (std::int64_t i = 0; i < dk; ++i) {
            double& x = s[static_cast<std::size_t>(i * n_columns + j)];
            x += at(in.qkv, k + i) * change;
            sum += x * at(in.qkv, q + i);
          }
          out[static_cast<std::size_t>((row * n_heads + h) * n_columns + j)] = sum / std::sqrt(dk);
        }
      }
      states.push_back(std::move(s));
    }
  }
  return out;
}

// out [rows, Hv, Dv] of both kernels over the forest's plan.
template <typename T>
std::vector<float> run_delta(const DeltaInputs& in, const Forest& forest, const DeltaHeads& heads,
                             const gpu::Stream& stream) {
  const auto [n_key_heads, n_value_heads, dk, dv] = heads;
  const gpu::PassPlan plan = gpu::plan_pass(forest, 4);
  const std::int64_t n = forest.n_rows() * n_value_heads;
  const auto chunks = test::on_device(plan.chunks, stream);
  const auto runs = test::on_device(plan.delta_runs, stream);
  OnDevice<T> qkv(in.qkv, stream), a(in.a, stream), b(in.b, stream), out(n * dv, stream),
      solved_v(n * dv, stream), solved_k(n * dk, stream), ahead(n * 64, stream);
  OnDevice<float> decay(in.decay, stream), time_bias(in.time_bias, stream), decays(n * 2, stream),
      states(plan.n_slots * n_value_heads * dk * dv, stream);
  const gpu::DeltaArgs<T> args{.n_key_heads = n_key_heads,
                               .n_value_heads = n_value_heads,
                               .key_dim = dk,
                               .value_dim = dv,
                               .gate_stride = in.gate_stride,
                               .decay = decay.data(),
                               .time_bias = time_bias.data(),
                               .chunks = chunks.data(),
                               .solved_v = solved_v.data(),
                               .solved_k = solved_k.data(),
                               .ahead = ahead.data(),
                               .decays = decays.data(),
                               .states = states.data()};
  gpu::delta_prepare(args, std::ssize(plan.chunks), qkv.data(), a.data(), b.data(), stream.get());
  for (const gpu::DeltaLevel& level : plan.levels) {
    gpu::delta_scan(args, runs.data() + level.first_run, level.n_runs, qkv.data(), out.data(),
                    stream.get());
  }
  for (const OnDevice<T>* array : {&solved_v, &solved_k, &ahead}) array->values();  // sentinels
  for (const OnDevice<float>* array : {&decays, &states}) array->values();
  return out.values();
}

// FP32: sums in another order than the twin's. BF16: seven values in a row are rounded (the
// inverse, V' and K', scores, state, U, result); their errors of some 0.4 of the largest half step
// each add in squares, which is less than two half steps.
template <typename T>
constexpr double kDeltaBudget = sizeof(T) == 4 ? 1e-5 : 2 * Stored<T>::kHalfStep;

template <typename T>
void check_delta(const Forest& forest, const DeltaHeads& heads, std::int32_t n_heads,
                 std::int32_t n_columns, const gpu::Stream& stream) {
  const DeltaInputs in = delta_inputs<T>(forest.n_rows(), heads);
  const std::vector<float> all = run_delta<T>(in, forest, heads, stream);
  std::vector<float> compared;
  for (std::int64_t row = 0; row < forest.n_rows(); ++row) {
    for (std::int64_t h = 0; h < n_heads; ++h) {
      const auto begin = all.begin() + (row * heads.n_value_heads + h) * heads.dv;
      compared.insert(compared.end(), begin, begin + n_columns);
    }
  }
  const double ratio = test::rms_ratio(compared, recurrence(in, forest, heads, n_heads, n_columns));
  MESSAGE("delta rule, widths " << heads.dk << " " << heads.dv << ", bytes " << sizeof(T) << ": "
                                << ratio);
  CHECK(ratio <= kDeltaBudget<T>);
}

TEST_CASE_TEMPLATE("the delta rule over chains", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  for (const auto& [name, forest] : test::odd_forests()) {
    CAPTURE(name);
    check_delta<T>(forest, {2, 6, 16, 16}, 6, 16, stream);
    check_delta<T>(forest, {2, 6, 8, 20}, 6, 20, stream);
    if (forest.n_rows() < 600) check_delta<T>(forest, {2, 6, 128, 128}, 6, 128, stream);
  }
  check_delta<T>(test::forest_of({{-1, 8192}}), {1, 3, 128, 128}, 2, 9, stream);
}

// A prompt cut at n rows, for every n modulo 64: within the tolerance, and where 64 divides n the
// bits of the whole. Other roots in the pass change nothing.
TEST_CASE_TEMPLATE("the delta rule carries its state over every cut", T, float, bf16) {
  if (!test::has_device()) return;
  const gpu::Stream stream;
  constexpr DeltaHeads kHeads{1, 2, 128, 128};
  constexpr std::int64_t kRows = 150, kOther = 70, kRow = 2 * 128;
  const DeltaInputs in = delta_inputs<T>(kRows + kOther, kHeads);
  const auto result = [&](std::vector<std::pair<std::int32_t, std::int64_t>> segments) {
    segments.emplace_back(-1, kOther);
    std::vector<float> out = run_delta<T>(in, test::forest_of(segments), kHeads, stream);
    out.resize(static_cast<std::size_t>(kRows * kRow));
    return out;
  };
  const std::vector<float> whole = result({{-1, kRows}});
  for (std::int64_t n = 1; n <= 128; ++n) {
    CAPTURE(n);
    const std::vector<float> cut = result({{-1, n}, {0, kRows - n}});
    CHECK(test::rms_ratio(cut, whole) <= kDeltaBudget<T>);
    if (n % 64 == 0) CHECK(test::same_bits(cut, whole));
  }
  DeltaInputs alone = in;
  alone.n_rows = kRows;
  CHECK(
      test::same_bits(run_delta<T>(alone, test::forest_of({{-1, kRows}}), kHeads, stream), whole));
}

}  // namespace
}  // namespace jemm
