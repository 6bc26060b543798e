package backend

// HasKernel reports whether the CPU has a kernel of an operation.
func HasKernel(name string) bool { return cpuKernels[name] != nil }
