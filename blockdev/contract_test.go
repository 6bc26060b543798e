package blockdev_test

import (
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
)

func TestContract(t *testing.T) {
	blockdev.RaiseGOMAXPROCS()
	for _, opt := range []blockdev.Options{
		{}, {Backend: blockdev.Auto, QueueDepth: 3}, {Backend: blockdev.URing},
		{Backend: blockdev.URing, QueueDepth: 1}, {Backend: blockdev.URing, QueueDepth: 7},
		{Backend: blockdev.Pread}, {Backend: blockdev.Pread, QueueDepth: 1},
		{Backend: blockdev.Buffered}, {Backend: blockdev.MMap}, {Backend: blockdev.Memory},
	} {
		name := string(opt.Backend)
		if opt.QueueDepth > 1 && testing.Short() {
			continue // as those of one request at a time, and of many
		}
		if opt.QueueDepth > 0 {
			name += " depth=" + string(rune('0'+opt.QueueDepth))
		}
		t.Run("backend="+name, func(t *testing.T) {
			if opt.Backend == blockdev.URing {
				skipWithoutRing(t)
			}
			devtest.Run(t, func() (blockdev.Device, error) { return blockdev.Open(opt) })
		})
	}
}

func skipWithoutRing(t *testing.T) {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.URing})
	if err != nil {
		t.Skipf("no io_uring on this machine: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}
