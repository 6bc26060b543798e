//go:build cuda && cgo && linux

/*
 * gorgonia.org/cu and gorgonia.org/cu/blas are written to be linked with libcuda and libcublas. A
 * program that is linked so starts only where both are installed, cuBLAS in the very major version
 * it was built with. This file takes their place: it defines each of their entry points as a jump
 * through a slot, and the slots are filled from the libraries with dlopen when a device is asked
 * for. One program so starts everywhere, and takes the cuBLAS of CUDA 11, 12 or 13.
 *
 * The names are hidden: a library that is loaded finds those of the driver, and not these.
 *
 * A call before that, or of a function that the installed library lacks, returns an error status.
 *
 * gorgonia.org/cu calls cuInit when the program starts, and ends the process if it fails. The
 * cuInit below does nothing; gdb_load_driver calls that of the driver.
 */
#define _GNU_SOURCE
#include "forward.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <cublas_v2.h>
#include <cuda.h>

static int driver_not_loaded(void) { return CUDA_ERROR_NOT_INITIALIZED; }
static int driver_lacks(void) { return CUDA_ERROR_NOT_SUPPORTED; }
static int blas_not_loaded(void) { return CUBLAS_STATUS_NOT_INITIALIZED; }
static int blas_lacks(void) { return CUBLAS_STATUS_NOT_SUPPORTED; }

/* The slots. Hidden, so that the code below reaches them without a global offset table. */
#define SLOT(name, first) \
  __attribute__((visibility("hidden"))) void *gdb_slot_##name = (void *)first;
#define CUDA(name, arguments) SLOT(name, driver_not_loaded)
#include "cuda_entries.h"
#undef CUDA
#define BLAS(name, arguments) SLOT(name, blas_not_loaded)
#include "cublas_entries.h"
#undef BLAS

/* The entry points. A jump leaves registers and stack as the caller set them, so it suits any
 * list of arguments. */
#if defined(__x86_64__)
#define JUMP(name) "endbr64\n jmp *gdb_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) \
  "hint #34\n adrp x16, gdb_slot_" #name "\n ldr x16, [x16, :lo12:gdb_slot_" #name "]\n br x16\n"
#else
#error "CUDA is built for amd64 and arm64"
#endif
#define ENTRY(name)                                                                     \
  __asm__(".text\n .balign 16\n .globl " #name "\n .hidden " #name "\n .type " #name     \
          ", @function\n" #name ":\n " JUMP(name) ".size " #name ", . - " #name "\n");
#define CUDA(name, arguments) ENTRY(name)
#include "cuda_entries.h"
#undef CUDA
#define BLAS(name, arguments) ENTRY(name)
#include "cublas_entries.h"
#undef BLAS

__attribute__((visibility("hidden"))) CUresult cuInit(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}

struct entry {
  const char *name;
  void **slot;
};

#define CUDA(name, arguments) {#name, &gdb_slot_##name},
static const struct entry driver_entries[] = {
#include "cuda_entries.h"
};
#undef CUDA
#define BLAS(name, arguments) {#name, &gdb_slot_##name},
static const struct entry blas_entries[] = {
#include "cublas_entries.h"
};
#undef BLAS

static void fill(void *library, const struct entry *entries, size_t n, int (*lacks)(void)) {
  for (size_t i = 0; i < n; i++) {
    void *function = dlsym(library, entries[i].name);
    *entries[i].slot = function ? function : (void *)lacks;
  }
}

static char driver_error[600], blas_error[600];

static void load_driver(void) {
  const char *file = getenv("GDB_LIBCUDA");
  if (!file || !*file) file = "libcuda.so.1";
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(driver_error, sizeof driver_error, "no CUDA driver: %s", dlerror());
    return;
  }
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(library, "cuInit");
  if (!init) {
    snprintf(driver_error, sizeof driver_error, "no CUDA driver: %s has no cuInit", file);
    return;
  }
  CUresult result = init(0);
  fill(library, driver_entries, sizeof driver_entries / sizeof *driver_entries, driver_lacks);
  if (result != CUDA_SUCCESS) {
    const char *name = NULL, *text = NULL;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    snprintf(driver_error, sizeof driver_error, "the CUDA driver does not start: %s (%d): %s",
             name ? name : "error", (int)result, text ? text : "no text");
  }
}

static void load_blas(void) {
  static const char *const directories[] = {"", "/usr/local/cuda/lib64/", "/opt/cuda/lib64/"};
  static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  const char *file = getenv("GDB_LIBCUBLAS");
  void *library = NULL;
  if (file && *file) {
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(blas_error, sizeof blas_error, "no cuBLAS: %s", dlerror());
  } else {
    char path[100];
    for (size_t d = 0; !library && d < sizeof directories / sizeof *directories; d++)
      for (size_t f = 0; !library && f < sizeof files / sizeof *files; f++) {
        snprintf(path, sizeof path, "%s%s", directories[d], files[f]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
      }
    if (!library)
      snprintf(blas_error, sizeof blas_error,
               "no cuBLAS: neither libcublas.so.13, .12 nor .11 is found where the linker looks, "
               "in /usr/local/cuda/lib64 or /opt/cuda/lib64; set GDB_LIBCUBLAS to its path");
  }
  if (library)
    fill(library, blas_entries, sizeof blas_entries / sizeof *blas_entries, blas_lacks);
}

const char *gdb_load_driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_driver);
  return driver_error;
}

const char *gdb_load_blas(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_blas);
  return blas_error;
}
