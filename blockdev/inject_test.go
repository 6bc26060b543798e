package blockdev_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
)

func mustMemory(t *testing.T) blockdev.Device {
	t.Helper()
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory, QueueDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// TestInjectNothing holds the wrapper to the contract that it wraps.
func TestInjectNothing(t *testing.T) {
	runContract(t, func() (blockdev.Device, error) {
		none := func(string, int64, uint64) devtest.Fault { return devtest.Fault{} }
		return devtest.Inject(mustMemory(t), none), nil
	})
}

func TestInjectFaults(t *testing.T) {
	dev := devtest.Inject(mustMemory(t), func(path string, off int64, nth uint64) devtest.Fault {
		switch {
		case path == "bad" && off == 4096:
			return devtest.Fault{Err: syscall.EIO, Got: 512}
		case nth%2 == 0:
			return devtest.Fault{Short: 1000, Delay: time.Microsecond}
		}
		return devtest.Fault{}
	})
	good, bad := mustMemSample(t, dev, "good", 64<<10), mustMemSample(t, dev, "bad", 64<<10)
	reqs := batchOf(seeded(t), 200, 16, good)
	if err := dev.ReadBatch(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
	mustHold(t, reqs, good)
	reqs = append(reqs, blockdev.Request{File: bad.file, Off: 4096,
		Buf: blockdev.AlignedBuffer(4096)})
	err := dev.ReadBatch(t.Context(), reqs)
	var re *blockdev.ReadError
	if !errors.As(err, &re) || !errors.Is(err, syscall.EIO) || re.Path != "bad" ||
		re.Off != 4096 || re.Len != 4096 || re.Got != 512 {
		t.Errorf("got %v, want EIO of bad at 4096 after 512 bytes", err)
	}
	if s := dev.Stats(); s.Errors != 1 {
		t.Errorf("%d errors counted, want 1", s.Errors)
	}
	good.mustClose(t)
	bad.mustClose(t)
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestInjectDelayEndsWithContext(t *testing.T) {
	late := func(string, int64, uint64) devtest.Fault { return devtest.Fault{Delay: time.Hour} }
	dev := devtest.Inject(mustMemory(t), late)
	s := mustMemSample(t, dev, "s", blockdev.Align)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := dev.ReadBatch(ctx, batchOf(seeded(t), 1, 1, s)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	s.mustClose(t)
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
}
