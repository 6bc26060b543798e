// Kernels for the tests of the device and of its emulation. testdata/kernels.ptx is made of them by
// go generate.
#if defined(__CUDA__)
#define KERNEL(name) extern "C" __attribute__((global)) void name
#define DEVICE static __attribute__((device)) inline
#define SHARED static __attribute__((shared))
DEVICE unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE unsigned block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE unsigned threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE void sync_block() { __syncthreads(); }
DEVICE float shuffle_xor(float v, int mask) {
  return __nvvm_shfl_sync_bfly_f32(0xffffffff, v, mask, 31);
}
#else
#include "emu_kernel.h"
#define KERNEL(name) extern "C" void name
#define DEVICE static inline
#define SHARED EMU_SHARED
DEVICE unsigned thread() { return emu_thread->thread; }
DEVICE unsigned block() { return emu_thread->block; }
DEVICE unsigned threads() { return emu_thread->threads; }
DEVICE void sync_block() { emu_sync_block(); }
DEVICE float shuffle_xor(float v, int mask) {
  return emu_shuffle(v, (emu_thread->thread & 31) ^ mask);
}
#endif

// y = a*x + y over n values.
KERNEL(axpy)(float *y, const float *x, double a, long long n) {
  long long i = (long long)block() * threads() + thread();
  if (i < n) y[i] += (float)a * x[i];
}

// sums[block] = the sum of the block's values of x; 256 threads.
KERNEL(block_sums)(float *sums, const float *x) {
  SHARED float of_warp[8];
  float v = x[(long long)block() * threads() + thread()];
  for (int mask = 16; mask > 0; mask /= 2) v += shuffle_xor(v, mask);
  if (thread() % 32 == 0) of_warp[thread() / 32] = v;
  sync_block();
  if (thread() == 0) {
    v = 0;
    for (int i = 0; i < 8; i++) v += of_warp[i];
    sums[block()] = v;
  }
}

// Half of the threads of a block wait for the others, which wait at another place.
KERNEL(deadlock)(float *x) {
  if (thread() % 2)
    sync_block();
  else
    x[0] += shuffle_xor(1, 1);
}

// y is x in reverse, within each block of 64. Without synced the barrier is left out, so what a
// thread reads depends on who ran before.
KERNEL(reverse)(float *y, const float *x, long long synced) {
  SHARED float values[64];
  long long first = (long long)block() * 64;
  values[thread()] = x[first + thread()];
  if (synced) sync_block();
  y[first + thread()] = values[63 - thread()];
}
