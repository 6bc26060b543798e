package blockdev_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gdb/blockdev"
)

func testCancelledBefore(t *testing.T, dev blockdev.Device) {
	a := mustSample(t, dev, "a", fileBytes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := dev.ReadBatch(ctx, batchOf(seeded(t), 10, 8, a))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	a.mustClose(t)
}

// testCancelledWithin cancels batches at random moments. When ReadBatch returns the buffers must
// belong to the caller again, however much was read: nothing may write to them any more.
func testCancelledWithin(t *testing.T, dev blockdev.Device) {
	rng := seeded(t)
	a := mustSample(t, dev, "a", fileBytes)
	cancelled := 0
	for range 10 {
		reqs := batchOf(rng, 3000, 8, a)
		ctx, cancel := context.WithTimeout(t.Context(),
			time.Duration(rng.IntN(20_000))*time.Microsecond)
		err := dev.ReadBatch(ctx, reqs)
		cancel()
		if err == nil {
			mustHold(t, reqs, a)
			continue
		}
		cancelled++
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		mustStayUntouched(t, reqs)
		again := reqs[:100]
		if err := dev.ReadBatch(t.Context(), again); err != nil {
			t.Fatalf("after a cancelled batch: %v", err)
		}
		mustHold(t, again, a)
	}
	t.Logf("%d of 10 batches were cancelled within", cancelled)
	a.mustClose(t)
}

func mustStayUntouched(t *testing.T, reqs []blockdev.Request) {
	t.Helper()
	for _, r := range reqs {
		fill(r.Buf, 0x11)
	}
	time.Sleep(2 * time.Millisecond)
	for i, r := range reqs {
		if bytes.Count(r.Buf, []byte{0x11}) != len(r.Buf) {
			t.Fatalf("request %d was still under way after ReadBatch returned", i)
		}
	}
}

// testCloseWaits closes the file and the device while batches are read. Each batch must be read or
// refused; none may hang or read another file.
func testCloseWaits(t *testing.T, dev blockdev.Device) {
	a := mustSample(t, dev, "a", fileBytes)
	var callers sync.WaitGroup
	for range 3 {
		rng := seeded(t)
		callers.Go(func() {
			for {
				reqs := batchOf(rng, 500, 8, a)
				err := dev.ReadBatch(t.Context(), reqs)
				if errors.Is(err, blockdev.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mustHold(t, reqs, a)
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	a.mustClose(t)
	callers.Wait()
}

func testStats(t *testing.T, dev blockdev.Device) {
	a := mustSample(t, dev, "a", fileBytes)
	reqs := batchOf(seeded(t), 100, 8, a)
	var want uint64
	for _, r := range reqs {
		want += uint64(len(r.Buf))
	}
	if err := dev.ReadBatch(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
	s := dev.Stats()
	if s.Reads != 100 || s.Bytes != want || s.Errors != 0 || s.Wait <= 0 {
		t.Errorf("got %+v, want 100 reads of %d bytes", s, want)
	}
	info := dev.Info()
	if info.Backend == blockdev.Auto || info.Why == "" || info.QueueDepth <= 0 {
		t.Errorf("info says too little: %+v", info)
	}
	a.mustClose(t)
}
