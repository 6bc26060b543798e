// The device's memory: mappings of the host between pages that nobody may touch. They are opened
// while the device works and closed again, so that the host's use of a device address is seen.
#pragma once
#include <sys/mman.h>

#include <cstring>

#include "state.h"

static const size_t page = 4096, alignment = 256;

struct Allocation {
  char *pages;    // what is mapped, without the guards
  size_t mapped;  // its length
  size_t bytes;   // what was asked for; it ends less than 256 bytes before the guard
};

// By the address that the program has.
static std::map<CUdeviceptr, Allocation> allocations;
static size_t allocated = 0;
static bool opened = false;
static const unsigned char slack = 0xa5;  // between the end of an allocation and its guard

static void protect(const Allocation &a) {
  if (mprotect(a.pages, a.mapped, opened ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) abort();
}

// DeviceWorks opens the device's memory while it lives. Closing it costs 30 us for a megabyte, so
// more than that is not closed each time.
struct DeviceWorks {
  static const size_t always_closed = 1 << 20;
  static inline int working = 0;

  DeviceWorks() {
    if (working++ == 0 && !opened) set(true);
  }
  ~DeviceWorks() {
    if (--working == 0 && below(allocated + 1) <= always_closed) set(false);
  }
  static void set(bool open) {
    opened = open;
    for (auto &a : allocations) protect(a.second);
  }
};

static CUresult allocate(CUdeviceptr *address, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (due("fail_alloc") || allocated + bytes > (size_t)knobs()["memory"])
    return CUDA_ERROR_OUT_OF_MEMORY;
  size_t rounded = (bytes + alignment - 1) & ~(alignment - 1);
  Allocation a;
  a.bytes = bytes;
  a.mapped = (rounded + page - 1) & ~(page - 1);
  char *all = (char *)mmap(nullptr, a.mapped + 2 * page, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  a.pages = all + page;
  char *begin = a.pages + a.mapped - rounded;
  if (mprotect(a.pages, a.mapped, PROT_READ | PROT_WRITE) != 0) abort();
  memset(a.pages, 0xff, a.mapped);  // NaN to whoever reads what was not written
  memset(begin + bytes, slack, rounded - bytes);
  protect(a);
  *address = (CUdeviceptr)begin;
  allocations[*address] = a;
  allocated += bytes;
  counts["allocations"]++;
  counts["allocated_bytes"] = (long long)allocated;
  return CUDA_SUCCESS;
}

// drop takes an allocation away. Its addresses are never given again, and fault.
static void drop(std::map<CUdeviceptr, Allocation>::iterator which) {
  Allocation a = which->second;
  allocations.erase(which);
  allocated -= a.bytes;
  counts["allocations"]--;
  counts["allocated_bytes"] = (long long)allocated;
  if (mmap(a.pages, a.mapped, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    abort();
}

// release frees an allocation, and looks whether something wrote between it and its guard.
static CUresult release(CUdeviceptr address) {
  auto found = allocations.find(address);
  if (found == allocations.end()) {
    complain("free of %#llx, which is no allocation", address);
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation a = found->second;
  const unsigned char *end = (const unsigned char *)address + a.bytes, *wrong = end;
  {
    DeviceWorks works;
    const unsigned char *guard = (const unsigned char *)a.pages + a.mapped;
    while (wrong < guard && *wrong == slack) wrong++;
    if (wrong == guard) wrong = nullptr;
  }
  drop(found);
  if (!wrong) return CUDA_SUCCESS;
  complain("something wrote %td bytes past the end of %zu bytes at %#llx", wrong - end, a.bytes,
           address);
  return lose(CUDA_ERROR_ILLEGAL_ADDRESS);
}

// on_device says whether a range lies in one allocation.
static bool on_device(CUdeviceptr address, size_t bytes) {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin()) return false;
  auto a = std::prev(next);
  return address + bytes <= a->first + a->second.bytes;
}

// Locked memory of the host, by its address.
struct Locked {
  size_t bytes;
  bool ours;  // of cuMemHostAlloc
};
static std::map<const char *, Locked> locked_memory;

static bool is_locked(const void *address, size_t bytes) {
  auto next = locked_memory.upper_bound((const char *)address);
  if (next == locked_memory.begin()) return false;
  auto l = std::prev(next);
  return (const char *)address + bytes <= l->first + l->second.bytes;
}

// describe says what lies at an address, for a message.
static std::string describe(const void *address) {
  char text[200];
  for (auto &a : allocations) {
    const char *begin = (const char *)a.first, *end = begin + a.second.bytes;
    const char *pages = a.second.pages;
    if ((char *)address >= pages - page && address < pages + a.second.mapped + page) {
      if ((const char *)address >= end)
        snprintf(text, sizeof text, "%td bytes past the end of %zu bytes at %#llx",
                 (const char *)address - end, a.second.bytes, a.first);
      else if ((const char *)address < begin)
        snprintf(text, sizeof text, "%td bytes before %zu bytes at %#llx",
                 begin - (const char *)address, a.second.bytes, a.first);
      else
        snprintf(text, sizeof text, "within %zu bytes at %#llx", a.second.bytes, a.first);
      return text;
    }
  }
  return "in no allocation: it was freed, or never was one";
}
