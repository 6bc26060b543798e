package gdb_test

import (
	"context"
	"errors"
	"testing"

	"gdb"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOpenCancelled opens a store for a caller who has gone: as a client of gdb serve may, while
// its first lookup opens the database.
func TestOpenCancelled(t *testing.T) {
	st := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(8, 40, 400))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := gdb.OpenOn(ctx, st, layouttest.Device(t), gdb.Options{Memory: 1 << 20})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error %v", err)
	}
}
