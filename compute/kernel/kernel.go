// Package kernel holds the float32 kernels of training: pure functions over row-major slices.
//
// A matrix x of shape (R, C) is x[r*C+c]; shapes stand in the comments. Each kernel has a plain Go
// version in ref.go, which is the specification; AVX2, AVX-512 and NEON versions are chosen at run
// time by what the CPU has (Level). Results have the same bits for the same inputs, whatever the
// timing and whatever Pool.Workers: work is cut into parts by the shapes alone, and partial sums
// are added in the order of the parts. Between levels they differ in the last bits.
//
// Slices may be longer than the shape needs. A slice that is shorter is a programmer's error and
// panics. Inputs and outputs must not overlap where a comment does not allow it.
package kernel

//go:generate go run -tags avogen ./gen gemm
//go:generate go run -tags avogen ./gen segment
//go:generate go run -tags avogen ./gen edge
//go:generate go run -tags avogen ./gen score
//go:generate go run -tags avogen ./gen max
//go:generate go run -tags avogen ./gen vector
//go:generate go run -tags avogen ./gen activation
//go:generate go run -tags avogen ./gen norm
//go:generate go run -tags avogen ./gen few
//go:generate go run -tags avogen ./gen link

//go:generate go run ./gen/neon gemm
//go:generate go run ./gen/neon segment
//go:generate go run ./gen/neon max
//go:generate go run ./gen/neon edge
//go:generate go run ./gen/neon score
//go:generate go run ./gen/neon vector
//go:generate go run ./gen/neon activation
//go:generate go run ./gen/neon norm
//go:generate go run ./gen/neon link
