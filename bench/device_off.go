//go:build !(cuda && cgo && linux)

package bench

import (
	"context"

	"gdb/internal/cuda"
)

func deviceRows(context.Context) ([]Row, error) { return nil, cuda.Available() }
