// Launches: blocks in a random order, the threads of a block as coroutines in a random order.
#pragma once
#include <csetjmp>
#include <csignal>
#include <functional>
#include <vector>

#include "emu_kernel.h"
#include "fiber.h"
#include "kernel.h"
#include "memory.h"

static const size_t stack_bytes = 64 << 10, threads_max = 1024, shared_max = 48 << 10;

enum Wait { ready, for_warp, for_block, returned };

struct Fiber {
  void *sp;
  Wait wait;
  EmuThread now;
};

// A warp's exchange: what its lanes put in, in turns, so that a lane that is a call ahead does not
// overwrite what others still read.
struct Warp {
  uint64_t values[2][32];
  int turn;
  unsigned arrived, present;
};

EmuThread *emu_thread;

static struct Block {
  std::vector<Fiber> fibers = std::vector<Fiber>(threads_max);
  std::vector<Warp> warps = std::vector<Warp>(threads_max / 32);
  std::vector<unsigned> order;
  char *stacks = nullptr;
  void *scheduler;  // its stack pointer
  Fiber *running;
  const std::function<void()> *body;
  unsigned arrived, present;
  std::vector<char> shared = std::vector<char>(shared_max);
#if defined(__SANITIZE_ADDRESS__)
  const void *scheduler_stack;
  size_t scheduler_stack_bytes;
#endif
} block;

static const uint64_t no_value = 0x7fbadbad7fbadbadull;

static unsigned index_of(const Fiber *f) { return (unsigned)(f - block.fibers.data()); }

static Warp &warp_of(const Fiber *f) { return block.warps[index_of(f) / 32]; }

// release_warp lets the lanes of a warp go on when all have arrived.
static void release_warp(Warp &w) {
  if (w.present == 0 || w.arrived != w.present) return;
  unsigned first = (unsigned)(&w - block.warps.data()) * 32;
  for (unsigned i = first; i < first + 32 && i < threads_max; i++)
    if (block.fibers[i].wait == for_warp) block.fibers[i].wait = ready;
  w.arrived = 0, w.turn ^= 1;
  for (auto &v : w.values[w.turn]) v = no_value;
}

static void release_block() {
  if (block.present == 0 || block.arrived != block.present) return;
  for (unsigned i : block.order)
    if (block.fibers[i].wait == for_block) block.fibers[i].wait = ready;
  block.arrived = 0;
}

// yield goes back to the scheduler until what the thread waits for has come.
static void yield(Wait wait) {
  Fiber *f = block.running;
  f->wait = wait;
#if defined(__SANITIZE_ADDRESS__)
  void *fake;
  __sanitizer_start_switch_fiber(wait == returned ? nullptr : &fake, block.scheduler_stack,
                                 block.scheduler_stack_bytes);
#endif
  emu_switch(&f->sp, block.scheduler);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void *emu_dynamic_shared() { return block.shared.data(); }

void emu_sync_block() {
  block.arrived++;
  block.running->wait = for_block;
  release_block();
  if (block.running->wait == for_block) yield(for_block);
}

const uint64_t *emu_exchange(uint64_t bits) {
  Fiber *f = block.running;
  Warp &w = warp_of(f);
  int turn = w.turn;
  w.values[turn][index_of(f) % 32] = bits;
  w.arrived++;
  f->wait = for_warp;
  release_warp(w);
  if (f->wait == for_warp) yield(for_warp);
  return w.values[turn];
}

extern "C" void emu_fiber_main() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack, &block.scheduler_stack_bytes);
#endif
  (*block.body)();
  Warp &w = warp_of(block.running);
  block.present--, w.present--;
  block.running->wait = returned;
  release_warp(w);
  release_block();
  yield(returned);
}

static void resume(Fiber *f) {
  block.running = f;
  emu_thread = &f->now;
#if defined(__SANITIZE_ADDRESS__)
  void *fake;
  __sanitizer_start_switch_fiber(&fake, block.stacks + index_of(f) * stack_bytes, stack_bytes);
#endif
  emu_switch(&block.scheduler, f->sp);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

// run_block runs one block. It returns false if its threads wait for each other for ever.
static bool run_block(unsigned number, unsigned blocks, unsigned threads) {
  block.arrived = 0, block.present = threads;
  block.order.resize(threads);
  for (unsigned i = 0; i < threads; i++) {
    block.order[i] = i;
    Fiber &f = block.fibers[i];
    // Stacks that began at the same place of a page would push each other out of the cache.
    f.sp = start_of(block.stacks + i * stack_bytes, stack_bytes - i % 64 * 192);
    f.wait = ready;
    f.now = EmuThread{i, number, threads, blocks};
    if (i % 32 == 0) {
      Warp &w = block.warps[i / 32];
      w.turn = 0, w.arrived = 0, w.present = std::min(32u, threads - i);
      for (auto &turn : w.values)
        for (auto &v : turn) v = no_value;
    }
  }
  for (unsigned i = threads; i < threads_max && i % 32; i++) block.fibers[i].wait = returned;
  shuffle(block.order);
  while (block.present > 0) {
    bool progress = false;
    for (unsigned i : block.order)
      if (block.fibers[i].wait == ready) resume(&block.fibers[i]), progress = true;
    if (!progress) return false;
  }
  return true;
}

// A wrong address of a kernel is an error of the device, not the end of the process.
static thread_local sigjmp_buf *in_kernel;
static struct sigaction before;
static void *fault_address;

static void on_fault(int number, siginfo_t *info, void *context) {
  if (in_kernel) {
    fault_address = info->si_addr;
    siglongjmp(*in_kernel, 1);
  }
  // The fault of another thread: it is for who handled it before.
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(number, info, context);
  else
    sigaction(number, &before, nullptr);
}

static CUresult run_blocks(const Kernel &k, const std::function<void()> &body, unsigned blocks,
                           unsigned threads, unsigned shared_bytes) {
  std::vector<unsigned> order(blocks);
  for (unsigned i = 0; i < blocks; i++) order[i] = i;
  shuffle(order);
  block.body = &body;
  for (unsigned number : order) {
    memset(block.shared.data(), 0xff, shared_bytes);
    if (!run_block(number, blocks, threads)) {
      complain("kernel %s: threads of block %u wait for each other for ever: some are at a "
               "shuffle, others at a barrier",
               k.name.c_str(), number);
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
  }
  return CUDA_SUCCESS;
}

static CUresult run_kernel(const Kernel &k, const std::function<void()> &body, unsigned blocks,
                           unsigned threads, unsigned shared_bytes) {
  if (!block.stacks)
    block.stacks = (char *)mmap(nullptr, threads_max * stack_bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
#if defined(__SANITIZE_ADDRESS__)
  return run_blocks(k, body, blocks, threads, shared_bytes);  // which reports faults better
#else
  struct sigaction mine = {};
  mine.sa_sigaction = on_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &mine, &before);
  sigjmp_buf back;
  volatile CUresult result = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (sigsetjmp(back, 1) == 0) {
    in_kernel = &back;
    result = run_blocks(k, body, blocks, threads, shared_bytes);
  } else {
    complain("kernel %s, block %u, thread %u: address %p, %s", k.name.c_str(),
             block.running->now.block, block.running->now.thread, fault_address,
             describe(fault_address).c_str());
  }
  in_kernel = nullptr;
  sigaction(SIGSEGV, &before, nullptr);
  return result;
#endif
}
