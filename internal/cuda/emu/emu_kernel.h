// What the source of kernels is given when a C++ compiler makes functions of it for the emulated
// device, in place of a GPU's registers and instructions.
//
// A kernel is an extern "C" function without a result whose parameters are of 8 bytes. The emulator
// calls it once for each thread. The threads of a block are coroutines on one thread of the host,
// and blocks run one after the other: shared memory is a static variable, and an atomic operation
// is a plain one.
#pragma once
#include <cstdint>
#include <cstring>

struct EmuThread {
  unsigned thread, block;    // threadIdx.x, blockIdx.x
  unsigned threads, blocks;  // blockDim.x, gridDim.x
};

// The thread that runs.
extern EmuThread *emu_thread;

// Shared memory of a block. Its values are those that the block before left.
#define EMU_SHARED static

// The shared memory whose size the launch says.
void *emu_dynamic_shared();

// Waits for all threads of the block that have not returned: __syncthreads().
void emu_sync_block();

// Waits for all threads of the warp that have not returned, and gives what each of the 32 put in;
// of those that have returned a value that is a NaN as a float. It is valid until the next call.
const uint64_t *emu_exchange(uint64_t bits);

// __shfl_sync(): v of another lane of the warp.
template <class T>
T emu_shuffle(T v, unsigned lane) {
  static_assert(sizeof(T) <= 8, "shuffles are of 8 bytes at most");
  uint64_t bits = 0;
  memcpy(&bits, &v, sizeof v);
  memcpy(&v, &emu_exchange(bits)[lane & 31], sizeof v);
  return v;
}

// __ballot_sync(): bit i is set if lane i has not returned and its v is true.
inline unsigned emu_ballot(bool v) {
  const uint64_t *all = emu_exchange(v);
  unsigned ballot = 0;
  for (int i = 0; i < 32; i++) ballot |= (unsigned)(all[i] == 1) << i;
  return ballot;
}
