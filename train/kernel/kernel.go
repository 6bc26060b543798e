// Package kernel holds the float32 kernels of training: pure functions over row-major slices.
//
// Each has a plain Go version in ref.go, which is the specification; AVX2 and AVX-512 versions are
// chosen at run time by what the CPU has (Level). A matrix x of shape (R, C) is x[r*C+c]. All
// functions give the same bits for the same inputs and the same Pool.Workers.
package kernel
