// Coroutines: a stack each, and a switch between two of them.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// emu_switch keeps the registers that a call must keep on the stack, stores the stack's pointer in
// *from and goes on where the stack pointer to was stored.
extern "C" void emu_switch(void **from, void *to);
extern "C" void emu_fiber_main();

#if defined(__x86_64__)
__asm__(
    ".text\n.globl emu_switch\n.hidden emu_switch\n.type emu_switch, @function\nemu_switch:\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
    ".size emu_switch, . - emu_switch\n");
static const size_t kept_words = 6;  // below the address to return to
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl emu_switch\n.hidden emu_switch\n.type emu_switch, @function\nemu_switch:\n"
    " sub sp, sp, #160\n"
    " stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
    " stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
    " stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n"
    " stp d14, d15, [sp, #144]\n"
    " mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
    " ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
    " ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
    " ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n"
    " ldp d14, d15, [sp, #144]\n add sp, sp, #160\n ret\n"
    ".size emu_switch, . - emu_switch\n");
#else
#error "the emulated device runs on amd64 and arm64"
#endif

// start_of makes the first stack pointer of a coroutine that begins in emu_fiber_main.
static void *start_of(char *stack, size_t bytes) {
  uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;
#if defined(__x86_64__)
  void **sp = (void **)top;
  *--sp = nullptr;  // emu_fiber_main's own address to return to: it never does
  *--sp = (void *)emu_fiber_main;
  for (size_t i = 0; i < kept_words; i++) *--sp = nullptr;
#else
  void **sp = (void **)(top - 160);
  for (int i = 0; i < 20; i++) sp[i] = nullptr;
  sp[11] = (void *)emu_fiber_main;  // x30
#endif
  return sp;
}
