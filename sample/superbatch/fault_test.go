package superbatch

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/rng"
	"gdb/layout"
)

// TestReadErrors fails each read of runtime files in turn: the error names file and offset, the
// batches before it are right, and nothing is left behind.
func TestReadErrors(t *testing.T) {
	good := mustDevice(t)
	before := runtime.NumGoroutine()
	want := wantHashes(t, testConfigOn(good))
	each := uint64(1)
	if testing.Short() {
		each = 7
	}
	for mode := range 4 {
		for nth := uint64(0); ; nth += each {
			failed := false
			dev := devtest.Inject(good, func(_ string, _ int64, n uint64) devtest.Fault {
				if n != nth {
					return devtest.Fault{}
				}
				failed = true
				return devtest.Fault{Err: syscall.EIO, Got: 100}
			})
			c := testConfigOn(dev)
			c.Batches, c.Overlap = 9, mode == 1
			if mode > 1 {
				var reading []Reading
				c = swept(c, &reading)
				c.Epochs = 1
				c.SweepAhead, c.SweepBytes = mode == 3, 300<<10
				c.Overlap = c.SweepAhead
			}
			l := mustOpen(t, c)
			got, err := stepHashes(l.Epoch, 0, c.Epochs)
			if !slices.Equal(got, want[:len(got)]) {
				t.Errorf("read %d failed: wrong batches before it", nth)
			}
			closeAll(t, l)
			if !failed {
				break // past the last read
			}
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "offset") ||
				!strings.Contains(err.Error(), dirPrefix+c.Name) {
				t.Errorf("read %d: %v", nth, err)
			}
		}
	}
	devtest.CheckGoroutines(t, before)
}

// flipping flips one bit of the answer to one read.
type flipping struct {
	blockdev.Device
	nth, bit uint64
	only     string // the files whose reads are counted: those that end so
	reads    atomic.Uint64
}

func (f *flipping) ReadBatch(ctx context.Context, reqs []blockdev.Request) error {
	err := f.Device.ReadBatch(ctx, reqs)
	for _, r := range reqs {
		if strings.HasSuffix(r.File.Path(), f.only) && f.reads.Add(1)-1 == f.nth {
			bit := f.bit % uint64(8*len(r.Buf))
			r.Buf[bit/8] ^= 1 << (bit % 8)
		}
	}
	return err
}

// refused takes all batches, none of which may be wrong, and tells whether the flip was found: then
// the error says where.
func (f *flipping) refused(t *testing.T, l *Loader, c *Config, want []uint64) bool {
	t.Helper()
	got, err := stepHashes(l.Epoch, 0, c.Epochs)
	if !slices.Equal(got, want[:len(got)]) || err == nil && len(got) != len(want) {
		t.Errorf("bit %d of read %d: wrong batches, %v", f.bit, f.nth, err)
	}
	if err != nil && (!errors.Is(err, layout.ErrCorrupt) ||
		!strings.Contains(err.Error(), "offset")) {
		t.Errorf("bit %d of read %d: %v", f.bit, f.nth, err)
	}
	return err != nil
}

// TestFlippedBitsOfTheDisk: whatever bit of a runtime file the disk gives wrong, it is found, or
// lies in padding; no batch is ever wrong.
func TestFlippedBitsOfTheDisk(t *testing.T) {
	good := mustDevice(t)
	want := wantHashes(t, testConfigOn(good))
	draw, found := rng.NewStream(21), 0
	flips := 60
	if testing.Short() {
		flips = 15
	}
	for range flips {
		dev := &flipping{Device: good, nth: draw.Below(110), bit: draw.Uint64()}
		c := testConfigOn(dev)
		c.Batches = 11
		l := mustOpen(t, c)
		if dev.refused(t, l, &c, want) {
			found++
		}
		closeAll(t, l)
	}
	if found < flips/2 {
		t.Errorf("%d of %d flips were found", found, flips)
	}
}
