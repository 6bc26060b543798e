//go:build !(cuda && cgo && linux)

package cuda

import (
	"errors"

	"gdb/train/backend"
)

// Open says how to get a gdb that computes on devices.
func Open(backend.Options) (backend.Backend, error) {
	return nil, errors.New("train: this gdb was built without CUDA: build it with " +
		"go build -tags cuda ./cmd/gdb")
}
