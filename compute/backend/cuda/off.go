//go:build !(cuda && cgo && linux)

package cuda

import (
	"fmt"

	"gdb/compute/backend"
	"gdb/internal/cuda"
)

// Open says how to get a gdb that computes on devices.
func Open(backend.Options) (backend.Backend, error) {
	return nil, fmt.Errorf("train: --backend cuda: %w", cuda.ErrNotBuilt)
}
