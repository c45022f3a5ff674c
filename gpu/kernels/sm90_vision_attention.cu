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

using Shape = AttentionShape<72, 128>;
static_assert(kQueries == kImageQueries);

#ifdef JEMM_HAS_WGMMA

constexpr int kKeys = Shape::kKeys;

// Rows of a head, those from n_valid on zero, by n_warps warps: three rows at a time, a lane 16
// bytes.
template <int kRows>
__device__ void copy_rows(const bf16* from, std::int64_t stride, int n_valid, int warp, int n_warps,
                          bf16 (&to)[Shape::kSlabs][kRows][kSlabColumns]) {
  constexpr int kPieces = Shape::kWidth / 8, kRowsAtOnce = 32 / kPieces;
  const int piece = lane() % kPieces;
  if (lane() >= kPieces * kRowsAtOnce) return;
#pragma unroll 4
  for (int row = kRowsAtOnce * warp + lane() / kPieces; row < kRows; row += kRowsAtOnce * n_warps) {
    const bool is_there = row < n_valid;
    copy_16(reinterpret_cast<char*>(to[piece / 8]) + slab_piece(row, piece % 8),
            from + (is_there ? row : 0) * stride + 8 * piece, is_there ? 16 : 0);
  }
}

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
  __shared__ Barriers barriers;
  Shape::Shared& shared = aligned<Shape>(memory);
  const ImageTile tile = tiles[blockIdx.x];
  const int width = n_heads * Shape::kWidth, begin = static_cast<int>(blockIdx.y) * Shape::kWidth;
  const int n_blocks = (tile.n_patches + kKeys - 1) / kKeys;
  if (threadIdx.x == 0) init(barriers);
  clear_rest(shared.q);
  for (Shape::Rows& keys : shared.k) clear_rest(keys);
  publish_to_products();
  __syncthreads();

  const int group = group_index();
  if (group == 0) {
    give_registers<kCopyRegisters>();
    const std::int64_t stride = std::int64_t{3} * width;
    const bf16* image = qkv + tile.image_begin * stride + begin;
    copy_rows(image + tile.first_query * stride, stride, tile.n_patches - tile.first_query, warp(),
              kGroup / 32, shared.q);
    const bf16* from = image + (warp() < kCopyWarps ? width : 2 * width);
    copy_stages<Shape>(n_blocks, shared, barriers, [&](int block, int warp, Shape::Rows& to) {
      copy_rows(from + std::int64_t{block} * kKeys * stride, stride, tile.n_patches - block * kKeys,
                warp, kCopyWarps, to);
    });
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
  static const bool built = has_body(sm90_attend_kernel);
  return built && op.head_dim == Shape::kWidth;
}

void sm90_attend_images(const ImageAttention<bf16>& op, float factor, StreamHandle stream) {
  allow_shared(sm90_attend_kernel, Shape::kSharedBytes);
  const dim3 grid(static_cast<unsigned>(op.n_tiles), static_cast<unsigned>(op.n_heads));
  sm90_attend_kernel<<<grid, kThreads, Shape::kSharedBytes, stream>>>(
      op.qkv, op.tiles, static_cast<int>(op.n_heads), factor, op.attended);
  check_launch("attend_images");
}

}  // namespace jemm::gpu
