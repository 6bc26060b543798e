//go:build !(cuda && cgo && linux)

package cuda

import "errors"

// ErrNotBuilt is returned by a program that was built without CUDA.
var ErrNotBuilt = errors.New("this gdb was built without CUDA: build it with " +
	"go build -tags cuda ./cmd/gdb, as make cuda does")

// Available returns why no device can be used: ErrNotBuilt.
func Available() error { return ErrNotBuilt }
