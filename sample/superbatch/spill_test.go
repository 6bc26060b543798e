package superbatch

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spillConfig has slots of which few are kept between epochs, in one superbatch.
func spillConfig(dev blockdev.Device) Config {
	c := testConfigOn(dev)
	c.Slots, c.SlotsKept, c.Spill = 4000, 41, func(uint64) bool { return true }
	return c
}

// TestSpilledSlots: between the epochs of a superbatch the slots that are not kept take no memory
// where it is asked for, and their rows are hit all the same.
func TestSpilledSlots(t *testing.T) {
	c := spillConfig(mustDevice(t))
	want := wantHashes(t, c)
	all := c
	all.Spill, all.Budget, all.FS = nil, mem.NewBudget(0), vfs.NewMem()
	l := mustOpen(t, all)
	if _, err := stepHashes(l.Epoch, 0, c.Epochs); err != nil {
		t.Fatal(err)
	}
	hits := l.CacheStats().Hits
	closeAll(t, l)
	c.Spill = func(epoch uint64) bool { return epoch > 0 }
	l = mustOpen(t, c)
	var got []uint64
	for e := range c.Epochs {
		part, err := stepHashes(l.Epoch, e, e+1)
		if got = append(got, part...); err != nil {
			t.Fatal(err)
		}
		used, most := c.Budget.Used(), int64(3*c.Slots*testDim)
		if free := used <= most; free != c.Spill(e) {
			t.Errorf("%d bytes are used after epoch %d, of slots %d may be", used, e, most)
		}
	}
	if n := l.CacheStats().Hits; !slices.Equal(got, want) || n != hits || l.builder.seq != 1 {
		t.Errorf("%d of %d batches, %d hits of %d, %d superbatches", len(got), len(want), n, hits,
			l.builder.seq)
	}
	closeAll(t, l)
}

// TestSpillFails: a full disk and flipped bits are found, and nothing is left behind.
func TestSpillFails(t *testing.T) {
	dev, before := mustDevice(t), runtime.NumGoroutine()
	c := spillConfig(dev)
	want := wantHashes(t, c)
	c.FS = &fullFS{FS: vfs.NewMem(), only: ".slots"}
	l := mustOpen(t, c)
	_, err := stepHashes(l.Epoch, 0, c.Epochs)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "13.slots") ||
		!strings.Contains(err.Error(), "free space") {
		t.Errorf("a full disk: %v", err)
	}
	closeAll(t, l)
	draw, found := rng.NewStream(23), 0
	for range 10 {
		c := spillConfig(dev)
		c.Device = &flipping{Device: dev, nth: draw.Below(4), bit: draw.Uint64(),
			only: ".slots"}
		l := mustOpen(t, c)
		got, err := stepHashes(l.Epoch, 0, c.Epochs)
		if !slices.Equal(got, want[:len(got)]) || err == nil && len(got) != len(want) {
			t.Errorf("wrong batches, %v", err)
		}
		if err != nil {
			found++
			if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(), ".slots") {
				t.Error(err)
			}
		}
		closeAll(t, l)
	}
	if found < 4 {
		t.Errorf("%d of 10 flips were found", found)
	}
	devtest.CheckGoroutines(t, before)
}
