//go:build !openblas

package bench

// openBLAS is nil: a binary of gdb needs no library.
var openBLAS *blasLibrary
