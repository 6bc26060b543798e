// Package cudatest lets tests of CUDA run on machines without a GPU: it builds the emulated device
// of internal/cuda/emu with the kernels of a test, by the machine's C++ compiler, and lets the
// driver be loaded from it. What the emulation is strict about, and what it cannot show, is in
// docs/cuda.md.
//
// With GDB_TEST_CUDA=device in the environment the same tests run on the machine's own device;
// those that need the emulation to do something skip.
package cudatest
