// What the kernels need of a compiler, for two of them. clang -x cuda makes PTX of the kernels
// without any header of CUDA: the builtins are named here. A C++ compiler makes functions of them,
// which an emulator calls for each thread of a launch.
//
// The emulator (internal/cuda/emu) has emu_kernel.h. The threads of a block share what is SHARED: a
// block is at an end before the next begins.
//
// Every parameter of a kernel has 8 bytes: i64, f64 or a pointer. Blocks have 256 threads.
#pragma once

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef double f64;

#if defined(__CUDA__)

#define KERNEL(name) extern "C" __attribute__((global, launch_bounds(256))) void name
#define DEV static __attribute__((device, always_inline)) inline
#define MEMBER __attribute__((device, always_inline)) inline
#define SHARED static __attribute__((shared))

DEV i64 thread_in_block() { return __nvvm_read_ptx_sreg_tid_x(); }
DEV i64 threads_of_block() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEV i64 block_number() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEV i64 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
// barrier waits for all threads of the block.
DEV void barrier() { __syncthreads(); }
// exchange returns v of the lane whose number differs from the own in the bits of mask. All lanes
// of a warp call it together.
DEV float exchange(float v, int mask) {
	return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 0x1f);
}
// compare_and_swap writes v where *p is old, and returns what it was; atomic_min writes the smaller.
DEV u64 compare_and_swap(u64 *p, u64 old, u64 v) { return __nvvm_atom_cas_gen_ll((i64 *)p, old, v); }
DEV void atomic_min(u64 *p, u64 v) { __nvvm_atom_min_gen_ull(p, v); }
DEV float root(float x) { return __nvvm_sqrt_rn_f(x); }
DEV f64 root(f64 x) { return __nvvm_sqrt_rn_d(x); }

#else

#include <cmath>

#include "emu_kernel.h"

#define KERNEL(name) extern "C" void name
#define DEV static inline
#define MEMBER inline
#define SHARED EMU_SHARED

DEV i64 thread_in_block() { return emu_thread->thread; }
DEV i64 threads_of_block() { return emu_thread->threads; }
DEV i64 block_number() { return emu_thread->block; }
DEV i64 blocks() { return emu_thread->blocks; }
DEV void barrier() { emu_sync_block(); }
DEV float exchange(float v, int mask) { return emu_shuffle(v, emu_thread->thread % 32 ^ mask); }
DEV u64 compare_and_swap(u64 *p, u64 old, u64 v) {
	u64 was = *p;
	if (was == old) *p = v;
	return was;
}
DEV void atomic_min(u64 *p, u64 v) {
	if (v < *p) *p = v;
}
DEV float root(float x) { return std::sqrt(x); }
DEV f64 root(f64 x) { return std::sqrt(x); }

#endif
