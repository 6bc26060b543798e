package openfiles_test

import (
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/openfiles"
	"gdb/layout/topology"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestSetShares holds that a file is opened once: the second who asks for it gets the reader, and
// the block cache, of the first; and that closing gives all memory back.
func TestSetShares(t *testing.T) {
	store, ctx := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Skewed()), t.Context()
	budget := mem.NewBudget(64 << 20)
	s := openfiles.New(store, devtest.Open(t, blockdev.Options{Backend: blockdev.Memory}), budget)
	if s.OpenTopology(layout.In) != nil || s.OpenIDs() != nil {
		t.Error("something is open before anybody asked for it")
	}
	first, err := s.Topology(ctx, layout.In, topology.Options{CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	held := budget.Used()
	again, err := s.Topology(ctx, layout.In, topology.Options{CacheBytes: 8 << 20})
	if err != nil || again != first || s.OpenTopology(layout.In) != first || budget.Used() != held {
		t.Errorf("opened twice: %v, %d bytes, then %d", err, held, budget.Used())
	}
	rows, err := s.Rows(ctx, store.Meta().Features[0])
	if err != nil {
		t.Fatal(err)
	}
	if other, err := s.Rows(ctx, store.Meta().Features[0]); err != nil || other != rows {
		t.Errorf("rows were opened twice: %v", err)
	}
	dict, err := s.IDs(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := s.IDs(ctx, 1<<20); err != nil || other != dict {
		t.Errorf("the dictionary was opened twice: %v", err)
	}
	if err := s.CloseTopology(layout.In); err != nil || s.OpenTopology(layout.In) != nil {
		t.Errorf("lists are open after closing: %v", err)
	}
	if err := s.Close(); err != nil || budget.Used() != 0 {
		t.Errorf("%v, %d bytes are held after Close", err, budget.Used())
	}
}
