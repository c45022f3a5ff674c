// Attention of images in BF16 for heads of 72, on the matrix unit of sm_90a.
//
// A block takes one tile of queries and one head. Heads are 80 deep for the scores, 8 zeros behind;
// keys behind an image's last patch are hidden. Work: 4 Dh operations a query and key, as many
// exponentials as a quarter of the cycles of that.
#include "gpu/kernels/sm90_attention.cuh"
#include "gpu/kernels/sm90_vision_attention.h"

namespace jemm::gpu {
namespace {

using namespace sm90;

using Shape = AttentionShape<72, 128, 3>;
static_assert(kQueries == kImageQueries);

#ifdef JEMM_HAS_WGMMA

constexpr int kKeys = Shape::kKeys;

// The 8 columns behind the head, which no copy writes. By a whole block.
template <int kRows>
__device__ void clear_rest(bf16 (&rows)[Shape::kSlabs][kRows][kSlabColumns]) {
  for (int row = static_cast<int>(threadIdx.x); row < kRows; row += kThreads) {
    *reinterpret_cast<uint4*>(reinterpret_cast<char*>(rows[Shape::kWidth / kSlabColumns]) +
                              slab_piece(row, Shape::kWidth % kSlabColumns / 8)) = uint4{};
  }
}

__device__ void write(const ImageTile& tile, const Computing<Shape>& computing, bf16* attended,
                      int width) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = computing.sum(half);
    const int query = tile.first_query + computing.row(half);
    if (query >= tile.n_patches) continue;
    bf16* to = attended + (std::int64_t{tile.image_begin} + query) * width + lane() % 4 * 2;
#pragma unroll
    for (int n = 0; n < Shape::kWidth / 8; ++n) {
      const float* x = computing.results()[n] + 2 * half;
      store_pair(to + 8 * n, {x[0] / sum, x[1] / sum});
    }
  }
}

#endif

__global__ void __launch_bounds__(kThreads, 1)
    sm90_attend_kernel(const bf16* qkv, const ImageTile* tiles, int n_heads, float factor,
                       bf16* attended) {
#ifdef JEMM_HAS_WGMMA
  extern __shared__ char memory[];
  __shared__ Shape::Barriers barriers;
  Shape::Shared& shared = aligned<Shape>(memory);
  const ImageTile tile = tiles[blockIdx.x];
  const int width = n_heads * Shape::kWidth, begin = static_cast<int>(blockIdx.y) * Shape::kWidth;
  const int n_blocks = (tile.n_patches + kKeys - 1) / kKeys;
  if (threadIdx.x == 0) barriers.init();
  clear_rest(shared.q);
  for (Shape::Rows& keys : shared.k) clear_rest(keys);
  fence_writes_for_products();
  __syncthreads();

  const int group = group_index();
  if (group == 0) {
    give_registers<kCopyRegisters>();
    const int stride = 3 * width;
    const bf16* image = qkv + std::int64_t{tile.image_begin} * stride + begin;
    const auto source = [&](int i) {
      const bool is_there = i < tile.n_patches;
      return Source{std::int64_t{is_there ? i : 0} * stride, is_there};
    };
    copy_rows<Shape, kGroup>(static_cast<int>(threadIdx.x), image, shared.q,
                             [&](int i) { return source(tile.first_query + i); });
    copy_stages<Shape>(n_blocks, image + (copies_keys() ? width : 2 * width), shared, barriers,
                       [&](int block, int i) { return source(block * kKeys + i); });
    commit_copies();
    wait_copies<0>();
  } else {
    take_registers<kComputeRegisters>();
    Computing<Shape> computing(shared, barriers, (group - 1) * kQueries / 2);
    computing.run(n_blocks, factor, [&](int block, Computing<Shape>::Scores& s) {
      const int n_valid = tile.n_patches - block * kKeys;
      if (n_valid >= kKeys) return;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (8 * n + lane() % 4 * 2 + j % 2 >= n_valid) s[n][j] = -INFINITY;
        }
      }
    });
    write(tile, computing, attended + begin, width);
  }
#endif
}

}  // namespace

bool sm90_attend_takes(const ImageAttention<bf16>& op) {
  static PerDevice<bool> built;
  return has_body(sm90_attend_kernel, built) && op.head_dim == Shape::kWidth;
}

void sm90_attend_images(const ImageAttention<bf16>& op, float factor, StreamHandle stream) {
  allow_shared(sm90_attend_kernel, Shape::kSharedBytes, "attend_images");
  const dim3 grid(static_cast<unsigned>(op.n_tiles), static_cast<unsigned>(op.n_heads));
  sm90_attend_kernel<<<grid, kThreads, Shape::kSharedBytes, stream>>>(
      op.qkv, op.tiles, static_cast<int>(op.n_heads), factor, op.attended);
  check_launch("attend_images");
}

}  // namespace jemm::gpu
