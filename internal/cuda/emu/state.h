// The emulated device's state: what a test may set and count, and errors.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>

#include "cublas_v2.h"
#include "cuda.h"

// One lock for everything: one thread of the host is in the emulator at a time.
static std::mutex lock;

// What a test sets, by emu_set or the environment's GDB_EMU="name=value,...".
static std::map<std::string, long long> &knobs() {
  static std::map<std::string, long long> all = {
      {"seed", 1},          // of the order of blocks, threads and streams
      {"devices", 1},       // how many the driver shows
      {"memory", 1 << 30},  // bytes of the device
      {"capability", 90},   // compute capability, times 10
      {"fail_alloc", 0},    // fail the n-th allocation from now on; 0: none
      {"fail_launch", 0},   // the n-th launch of a kernel or graph
      {"fail_copy", 0},     // the n-th copy
      {"fail_lock", 0},     // the n-th time that memory of the program is locked
      {"copy_rate", 0},     // bytes that are copied to the device in a second; 0: as many as can be
      {"fail_blas", 0},     // the n-th product
      {"fail_capture", 0},  // the end of the n-th capture: it is refused
      {"lost_after", 0},    // lose the device in the n-th call from now on
      {"lost_code", CUDA_ERROR_LAUNCH_FAILED},
  };
  return all;
}

// What a test reads: counts since the start.
static std::map<std::string, long long> counts;

static std::mt19937_64 random_bits(1);

static size_t below(size_t n) { return random_bits() % n; }

template <class Items>
static void shuffle(Items &items) {
  for (size_t i = items.size(); i > 1; i--) std::swap(items[i - 1], items[below(i)]);
}

// What a test should mend goes to the standard error.
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("emulated CUDA: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

// The error that stays: a device that was lost takes no more work.
static CUresult lost = CUDA_SUCCESS;

static CUresult lose(CUresult code) {
  if (lost == CUDA_SUCCESS) lost = code;
  return lost;
}

// due says whether a fault that was set is due now.
static bool due(const char *knob) {
  long long &n = knobs()[knob];
  return n > 0 && --n == 0;
}

static void set_knob(const std::string &name, long long value) {
  if (!knobs().count(name)) {
    complain("no knob %s", name.c_str());
    abort();
  }
  knobs()[name] = value;
  if (name == "seed") random_bits.seed(value);
}

// The environment's knobs are set when the library is loaded.
__attribute__((constructor)) static void read_environment() {
  const char *all = getenv("GDB_EMU");
  std::string text = all ? all : "";
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size()), sign = text.find('=', at);
    if (sign >= end) break;
    set_knob(text.substr(at, sign - at), atoll(text.c_str() + sign + 1));
    at = end + 1;
  }
}

extern "C" void emu_set(const char *name, long long value) {
  std::lock_guard<std::mutex> hold(lock);
  set_knob(name, value);
}

extern "C" long long emu_get(const char *name) {
  std::lock_guard<std::mutex> hold(lock);
  return knobs().count(name) ? knobs()[name] : counts[name];
}
