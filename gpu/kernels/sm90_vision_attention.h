// The kernel of sm_90a that attend_images hands heads of 72 to.
#pragma once

#include "gpu/kernels/vision_kernels.h"

namespace jemm::gpu {

/// Whether it is there on this device, and made for these heads.
bool sm90_attend_takes(const ImageAttention<__nv_bfloat16>& op);
/// factor = 1 / (sqrt(head_dim) ln 2).
void sm90_attend_images(const ImageAttention<__nv_bfloat16>& op, float factor, StreamHandle stream);

}  // namespace jemm::gpu
