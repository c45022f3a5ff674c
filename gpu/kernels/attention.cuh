// What the kernels of causal attention share.
#pragma once

#include <climits>

#include "gpu/kernels/kernels.h"

namespace jemm::gpu {

template <typename T>
struct AttentionTensors {
  const T* q;
  const T* k;
  const T* v;
  const T* gates;
  T* out;
};

/// Packed rows of places in the chain that ends in a run. Remembers the run of the place before: a
/// thread asks for places that ascend.
class ChainRows {
 public:
  __device__ ChainRows(const AttentionRun* runs, int last) : runs_(runs), last_(last) {}

  __device__ int operator()(int place) {
    if (!holds(place)) find(place);
    return place + shift_;
  }
  /// Whether the place lies in the run of the place asked for before.
  __device__ bool holds(int place) const { return place >= begin_ && place < end_; }

 private:
  __device__ void find(int place) {
    end_ = INT_MAX;
    int run = last_;
    while (place < runs_[run].n_before) {
      end_ = runs_[run].n_before;
      run = runs_[run].parent;
    }
    begin_ = runs_[run].n_before;
    shift_ = runs_[run].row_begin - begin_;
  }

  const AttentionRun* runs_;
  int last_;
  int begin_ = 0, end_ = 0, shift_ = 0;  // places [begin, end) are rows place + shift
};

/// Whether sm90_attention is there on this device, and made for these heads and strides.
bool sm90_attention_takes(const AttentionArgs& args, const AttentionTensors<__nv_bfloat16>& t);
void sm90_attention(const AttentionArgs& args, const AttentionTensors<__nv_bfloat16>& t,
                    StreamHandle stream);

}  // namespace jemm::gpu
