//go:build !(cuda && cgo && linux)

package cuda

import (
	"strings"
	"testing"

	"gdb/compute/backend"
)

func TestNotBuilt(t *testing.T) {
	if _, err := Open(backend.Options{}); err == nil || !strings.Contains(err.Error(),
		"this gdb was built without CUDA: build it with go build -tags cuda ./cmd/gdb") {
		t.Error(err)
	}
}
