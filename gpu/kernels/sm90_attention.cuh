// The core of attention on the matrix unit of sm_90a in BF16: what text and images share.
//
// A block has three warpgroups: the first copies, the others compute 64 queries each with the
// results in registers. Keys and values pass through a few buffers. In a warpgroup the products
// of block i - 1 with the values run while the scores of block i become weights, so that one or the
// other warpgroup always has work for the matrix unit.
#pragma once

#include "gpu/cuda.h"
#include "gpu/kernels/device.cuh"
#include "gpu/kernels/wgmma.cuh"

namespace jemm::gpu::sm90 {

using bf16 = __nv_bfloat16;

constexpr int kGroup = 128;  // threads of a warpgroup
constexpr int kThreads = 3 * kGroup;
constexpr int kQueries = 128;  // of a block
constexpr int kAlignment = 1024;
constexpr int kCopyThreads = kGroup / 2;  // for the keys, and as many for the values
constexpr int kCopyRegisters = 56, kComputeRegisters = 224;  // (56 + 2 * 224) * 128 <= 65,536
constexpr float kLog2E = 1.44269504f;

struct Stage {
  Barrier full, free;
};

/// kWidth values a head, a multiple of 8; kStages buffers of kKeys keys, a multiple of 16.
template <int kHeadWidth, int kStageKeys, int kStageCount>
struct AttentionShape {
  static constexpr int kWidth = kHeadWidth, kKeys = kStageKeys, kStages = kStageCount;
  static constexpr int kDepth = (kWidth + 15) / 16 * 16;  // of queries and keys, zeros behind
  static constexpr int kSlabs = (kWidth + kSlabColumns - 1) / kSlabColumns;

  using Rows = bf16[kSlabs][kKeys][kSlabColumns];
  struct Shared {
    bf16 q[kSlabs][kQueries][kSlabColumns];
    Rows k[kStages];
    Rows v[kStages];
  };
  static constexpr int kSharedBytes = static_cast<int>(sizeof(Shared)) + kAlignment;

  struct Barriers {
    Barrier q;
    Stage k[kStages], v[kStages];

    /// By one thread, before the block's threads meet.
    __device__ void init() {
      q.init(kGroup);
      for (Stage* stages : {k, v}) {
        for (int i = 0; i < kStages; ++i) {
          stages[i].full.init(kCopyThreads);
          stages[i].free.init(2 * kGroup / 32);  // warps that compute
        }
      }
    }
  };
};

#ifdef JEMM_HAS_WGMMA

__device__ inline int lane() {
  return static_cast<int>(threadIdx.x) % 32;
}
/// Of the warpgroup.
__device__ inline int warp() {
  return static_cast<int>(threadIdx.x) % kGroup / 32;
}

/// Of the block; the same in all lanes of a warp, which the compiler cannot know of threadIdx.
__device__ inline int group_index() {
  return __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / kGroup, 0);
}

/// Of a thread that copies: keys, or values.
__device__ inline bool copies_keys() {
  return threadIdx.x < kCopyThreads;
}

/// The block's dynamic shared memory, where it is aligned.
template <typename Shape>
__device__ typename Shape::Shared& aligned(char* memory) {
  return *reinterpret_cast<typename Shape::Shared*>(
      memory + (kAlignment - shared_address(memory) % kAlignment) % kAlignment);
}

/// Where a row of a head begins in its tensor, or that it is zeros; a valid place in any case.
struct Source {
  std::int64_t offset;
  bool is_there;
};

/// Begins to copy rows of a tensor into slabs, by kCount threads of which this is `thread`: 8 a
/// row, each its 16 bytes of every slab. source(i): that of row i.
template <typename Shape, int kCount, int kRows, typename SourceOf>
__device__ void copy_rows(int thread, const bf16* from,
                          bf16 (&to)[Shape::kSlabs][kRows][kSlabColumns], const SourceOf& source) {
  static_assert(kCount % 64 == 0);  // so that a thread's rows are permuted alike
  const int piece = thread % 8;
  from += 8 * piece;
  char* place = reinterpret_cast<char*>(to) + slab_piece(thread / 8, piece);
#pragma unroll 2
  for (int i = thread / 8; i < kRows; i += kCount / 8) {
    const auto [offset, is_there] = source(i);
#pragma unroll
    for (int slab = 0; slab < Shape::kSlabs; ++slab) {
      const int column = slab * kSlabColumns;
      if (column + kSlabColumns <= Shape::kWidth || column + 8 * piece < Shape::kWidth) {
        copy_16(place + slab * sizeof(to[0]), from + offset + column, is_there ? 16 : 0);
      }
    }
    place += kCount / 8 * kSlabRowBytes;
  }
}

/// What the copying warpgroup does for keys (half of it) or values (the other), stage after stage,
/// out of the tensor `from`. source(block, i): that of the block's row i. Copies of queries were
/// begun before.
template <typename Shape, typename SourceOf>
__device__ void copy_stages(int n_blocks, const bf16* from, typename Shape::Shared& shared,
                            typename Shape::Barriers& barriers, const SourceOf& source) {
  const int thread = static_cast<int>(threadIdx.x) % kCopyThreads;
  typename Shape::Rows* to = copies_keys() ? shared.k : shared.v;
  Stage* stages = copies_keys() ? barriers.k : barriers.v;
  for (int block = 0; block < n_blocks; ++block) {
    Stage& stage = stages[block % Shape::kStages];
    stage.free.wait(block / Shape::kStages % 2 ^ 1);
    copy_rows<Shape, kCopyThreads>(thread, from, to[block % Shape::kStages],
                                   [&](int i) { return source(block, i); });
    if (block == 0) barriers.q.arrive_after_copies();
    stage.full.arrive_after_copies();
  }
}

/// The softmax of a thread's two rows, carried along; exponentials are to base 2.
template <int kTiles>
struct Softmax {
  float maximum[2] = {-INFINITY, -INFINITY};  // of the scores, not scaled
  float sum[2] = {};                          // of this thread's columns
  float shrink[2];                            // what the last block makes of results before it

  /// s = 2^(factor (s - maximum)). Each row's first block has a visible key.
  __device__ void run(float (&s)[kTiles][4], float factor) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = maximum[half];
#pragma unroll
      for (int n = 0; n < kTiles; ++n) now = fmaxf(now, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      now = fmaxf(now, __shfl_xor_sync(0xffffffffU, now, 1));
      now = fmaxf(now, __shfl_xor_sync(0xffffffffU, now, 2));
      shrink[half] = power_of_two((maximum[half] - now) * factor);
      maximum[half] = now;
      float block_sum = 0;
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          s[n][j] = power_of_two(fmaf(s[n][j], factor, -now * factor));
          block_sum += s[n][j];
        }
      }
      sum[half] = sum[half] * shrink[half] + block_sum;
    }
  }
};

/// The 64 queries of a computing warpgroup, from `first` of the block on. A thread has the rows
/// row(0) and row(1) of the block, and of each 8 columns its pair.
template <typename Shape>
class Computing {
 public:
  static constexpr int kKeys = Shape::kKeys, kStages = Shape::kStages, kTiles = Shape::kWidth / 8;
  using Scores = float[kKeys / 8][4];

  __device__ Computing(typename Shape::Shared& shared, typename Shape::Barriers& barriers,
                       int first)
      : shared_(shared), barriers_(barriers), first_(first) {}

  __device__ int row(int half) const { return first_ + warp() * 16 + lane() / 4 + 8 * half; }
  /// The results before they are divided by sum().
  __device__ const float (&results() const)[kTiles][4] { return out_; }
  __device__ float sum(int half) const {
    float sum = softmax_.sum[half];
    sum += __shfl_xor_sync(0xffffffffU, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffU, sum, 2);
  }

  /// factor = 1 / (sqrt(width) ln 2). hide(block, s) sets to minus infinity what a query may not
  /// see.
  template <typename Hide>
  __device__ void run(int n_blocks, float factor, const Hide& hide) {
    Scores s;
    Weights weights;
    barriers_.q.wait(0);
    await(barriers_.k, 0);
#pragma unroll 1
    for (int block = 0; block < n_blocks; ++block) {
      score(block, s);
      if (block > 0) weigh(block - 1, weights);
      commit_products();  // a group, empty at first
      wait_products<1>();
      pin(s);
      release(barriers_.k[block % kStages]);
      hide(block, s);
      softmax_.run(s, factor);
      pin(s);
      // Here also because the compiler moves no exponentials across this loop, behind the wait.
      if (block + 1 < n_blocks) await(barriers_.k, block + 1);
      wait_products<0>();
      pin(out_);
      if (block > 0) release(barriers_.v[(block - 1) % kStages]);
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) out_[n][j] *= softmax_.shrink[j / 2];
      }
      pack(s, weights);
    }
    fence_products();
    weigh(n_blocks - 1, weights);
    commit_products();
    wait_products<0>();
    pin(out_);
  }

 private:
  using Weights = std::uint32_t[kKeys / 16][4];

  __device__ static void await(Stage* stages, int block) {
    stages[block % kStages].full.wait(block / kStages % 2);
    fence_writes_for_products();
  }
  __device__ static void release(Stage& stage) {
    if (lane() == 0) stage.free.arrive();
  }

  // The accumulators of two tiles of keys are where mma.m16n8k16 wants 16 columns of its left
  // operand.
  __device__ static void pack(const Scores& s, Weights& weights) {
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float* pair = s[2 * i + j / 2] + j % 2 * 2;
        weights[i][j] = pack_pair(pair[0], pair[1]);
      }
    }
  }

  // s = q k^T, in the background.
  __device__ void score(int block, Scores& s) {
    constexpr int kQuerySlab = sizeof(shared_.q[0]), kKeySlab = sizeof(shared_.k[0][0]);
    const std::uint64_t queries = slab_operand(&shared_.q[0][first_], kQuerySlab);
    const std::uint64_t keys = slab_operand(shared_.k[block % kStages], kKeySlab);
    fence_products();
#pragma unroll
    for (int column = 0; column < Shape::kDepth; column += 16) {
      const int slab = column / kSlabColumns, in_row = column % kSlabColumns * 2;
      multiply(s, moved(queries, slab * kQuerySlab + in_row), moved(keys, slab * kKeySlab + in_row),
               column > 0);
    }
    commit_products();
  }

  // out += weights v, in the background; the caller commits.
  __device__ void weigh(int block, const Weights& weights) {
    await(barriers_.v, block);
    const std::uint64_t values = slab_operand(shared_.v[block % kStages], sizeof(shared_.v[0][0]));
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
      multiply_add(out_, weights[i], moved(values, i * 16 * kSlabRowBytes));
    }
  }

  typename Shape::Shared& shared_;
  typename Shape::Barriers& barriers_;
  int first_;
  Softmax<kKeys / 8> softmax_;
  float out_[kTiles][4] = {};
};

#endif

}  // namespace jemm::gpu::sm90
