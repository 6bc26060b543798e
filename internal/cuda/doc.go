// Package cuda is gdb's interface to CUDA: a device with its memory, streams, kernels and cuBLAS.
// It builds on gorgonia.org/cu and gorgonia.org/cu/blas, and adds what these lack: page-locked
// memory, graphs that are captured from a stream, compiler logs, and products in other precisions.
//
// It is built with -tags cuda and a C compiler, on Linux; without, Available says that there is
// none. Nothing of NVIDIA's is needed to build: include has declarations of our own, and forward.c
// defines every function of the driver and of cuBLAS as a jump through a table. The table is
// filled from the libraries of the machine when a device is asked for, so a program with CUDA in
// it runs on machines without. See docs/cuda.md.
//
// # Threads
//
// The driver keeps the current context of an operating system's thread. A goroutine that uses a
// device calls Bind first, which locks it to its thread; Open binds nothing. Values of this
// package may be used from any bound goroutine, one at a time; streams order the work.
//
// # Errors
//
// Calls return *Error with the operation and the driver's name and text of the error. Work is
// queued, so an error may belong to an operation that was issued before. After an error that is
// ErrLost the device answers nothing more in this process.
package cuda
