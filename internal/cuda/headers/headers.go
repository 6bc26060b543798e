//go:build cuda && cgo && linux

package headers

/*
#cgo CFLAGS: -I/usr/local/cuda/include -I/opt/cuda/include
#if !__has_include(<cuda.h>) || !__has_include(<cublas_v2.h>)
#error "cuda.h is not found: run 'make cuda', or set CGO_CFLAGS=-I$PWD/internal/cuda/include"
#endif
*/
import "C"
