// The kernels, apart from the emulated device, so that names of theirs meet none of its.
// EMU_KERNELS is their source, EMU_KERNEL_NAMES has K(name) for each.
#include "kernel.h"

#include EMU_KERNELS

template <class... A, size_t... I>
static std::function<void()> bound(void (*f)(A...), void **p, std::index_sequence<I...>) {
  return [f, values = std::tuple<A...>(*(A *)p[I]...)] { f(std::get<I>(values)...); };
}

template <class... A>
static Kernel kernel(const char *name, void (*f)(A...)) {
  static_assert(((sizeof(A) == 8) && ...), "each parameter of a kernel is of 8 bytes");
  return {name, [f](void **p) { return bound(f, p, std::index_sequence_for<A...>{}); },
          sizeof...(A)};
}

std::map<std::string, Kernel> &kernels() {
#define K(name) {#name, kernel(#name, name)},
  static std::map<std::string, Kernel> all = {EMU_KERNEL_NAMES};
  return all;
}
