package blockdev_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gdb/blockdev"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func testRandomBatches(t *testing.T, dev blockdev.Device) {
	rng := seeded(t)
	a := mustSample(t, dev, "a", fileBytes)
	b := mustSample(t, dev, "b", fileBytes/7&^(blockdev.Align-1))
	for _, n := range []int{1, 2, 31, 32, 33, 100, 129, 1000} {
		for _, sectors := range []int{1, 8, 40} {
			reqs := batchOf(rng, n, sectors, a, b)
			if err := dev.ReadBatch(t.Context(), reqs); err != nil {
				t.Fatal(err)
			}
			mustHold(t, reqs, a, b)
		}
	}
	a.mustClose(t)
	b.mustClose(t)
}

func testConcurrentCallers(t *testing.T, dev blockdev.Device) {
	a := mustSample(t, dev, "a", fileBytes)
	b := mustSample(t, dev, "b", fileBytes)
	var callers sync.WaitGroup
	for caller := range 4 {
		rng := seeded(t)
		callers.Go(func() {
			for range 8 {
				reqs := batchOf(rng, 1+rng.IntN(1+200*caller), 8, a, b)
				if err := dev.ReadBatch(t.Context(), reqs); err != nil {
					t.Error(err)
					return
				}
				for _, r := range reqs {
					want := a.content
					if r.File == b.file {
						want = b.content
					}
					if string(r.Buf) != string(want[r.Off:r.Off+int64(len(r.Buf))]) {
						t.Errorf("caller %d: wrong bytes at %d", caller, r.Off)
						return
					}
				}
			}
		})
	}
	callers.Wait()
	if s, depth := dev.Stats(), dev.Info().QueueDepth; s.Peak < 1 || s.Peak > depth {
		t.Errorf("%d reads in flight at once, want 1 to %d", s.Peak, depth)
	}
	a.mustClose(t)
	b.mustClose(t)
}

func testMixed(t *testing.T, dev blockdev.Device) {
	rng := seeded(t)
	a := mustSample(t, dev, "a", fileBytes)
	m := mustMemSample(t, dev, "m", fileBytes)
	for _, samples := range [][]sample{{m}, {a, m}, {a}} {
		reqs := batchOf(rng, 300, 8, samples...)
		if err := dev.ReadBatch(t.Context(), reqs); err != nil {
			t.Fatal(err)
		}
		mustHold(t, reqs, a, m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	reqs := batchOf(rng, 3000, 8, a, m)
	if err := dev.ReadBatch(ctx, reqs); err == nil {
		mustHold(t, reqs, a, m)
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a.mustClose(t)
	m.mustClose(t)
}

func testBigRequests(t *testing.T, dev blockdev.Device) {
	rng := seeded(t)
	a := mustSample(t, dev, "a", fileBytes)
	reqs := batchOf(rng, 4, fileBytes/blockdev.Align, a)
	reqs = append(reqs,
		blockdev.Request{File: a.file, Buf: buffer(rng, fileBytes)},
		blockdev.Request{File: a.file, Off: 1 << 20, Buf: buffer(rng, 2<<20)})
	if err := dev.ReadBatch(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
	mustHold(t, reqs, a)
	a.mustClose(t)
}

func testNothing(t *testing.T, dev blockdev.Device) {
	if err := dev.ReadBatch(t.Context(), nil); err != nil {
		t.Error(err)
	}
	a, empty := mustSample(t, dev, "a", blockdev.Align), mustSample(t, dev, "e", 0)
	reqs := []blockdev.Request{
		{File: a.file},
		{File: a.file, Off: blockdev.Align},
		{File: empty.file},
		{File: a.file, Buf: blockdev.AlignedBuffer(blockdev.Align)},
	}
	if err := dev.ReadBatch(t.Context(), reqs); err != nil {
		t.Error(err)
	}
	mustHold(t, reqs, a, empty)
	a.mustClose(t)
	empty.mustClose(t)
}

func testInvalid(t *testing.T, dev blockdev.Device) {
	a := mustSample(t, dev, "a", 8*blockdev.Align)
	buf := blockdev.AlignedBuffer(9 * blockdev.Align)
	for name, r := range map[string]blockdev.Request{
		"offset not aligned": {File: a.file, Off: 8, Buf: buf[:blockdev.Align]},
		"length not aligned": {File: a.file, Buf: buf[:blockdev.Align-1]},
		"memory not aligned": {File: a.file, Buf: buf[8 : 8+blockdev.Align]},
		"negative offset":    {File: a.file, Off: -blockdev.Align, Buf: buf[:blockdev.Align]},
		"past the end":       {File: a.file, Off: 8 * blockdev.Align, Buf: buf[:blockdev.Align]},
		"over the end":       {File: a.file, Off: 7 * blockdev.Align, Buf: buf[:2*blockdev.Align]},
		"longer than file":   {File: a.file, Buf: buf},
		"far past the end":   {File: a.file, Off: -1 << 63, Buf: buf[:blockdev.Align]},
		"no file":            {Buf: buf[:blockdev.Align]},
		"foreign file":       {File: foreign{a.file}, Buf: buf[:blockdev.Align]},
	} {
		good := blockdev.Request{File: a.file, Buf: blockdev.AlignedBuffer(blockdev.Align)}
		err := dev.ReadBatch(t.Context(), []blockdev.Request{good, r})
		if !errors.Is(err, blockdev.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	a.mustClose(t)
}

// foreign is a file that no device opened.
type foreign struct{ blockdev.File }

func testInvalidFiles(t *testing.T, dev blockdev.Device) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "odd")
	if err := os.WriteFile(odd, make([]byte, blockdev.Align+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{odd, dir} {
		_, err := dev.OpenFile(vfs.Default, path)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("open %s: got %v, want an error that names it", path, err)
		}
	}
	_, err := dev.OpenFile(vfs.Default, filepath.Join(dir, "missing"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}

// testTruncated cuts files off behind, before and within the range, at multiples of pages and of
// sectors and elsewhere. The short range ends in the page of the new end, where a memory map reads
// zeros.
func testTruncated(t *testing.T, dev blockdev.Device) {
	const was, offset = 64 << 10, 8 << 10
	for _, now := range []int64{0, 1, 4 << 10, 10 << 10, 10<<10 + blockdev.Align, 10<<10 + 100} {
		s := mustSample(t, dev, "a", was)
		if err := os.Truncate(s.path, now); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{4 << 10, 16 << 10} {
			r := blockdev.Request{File: s.file, Off: offset, Buf: blockdev.AlignedBuffer(n)}
			err := dev.ReadBatch(t.Context(), []blockdev.Request{r})
			var re *blockdev.ReadError
			if !errors.As(err, &re) || !errors.Is(err, blockdev.ErrTruncated) {
				t.Fatalf("truncated to %d: got %v, want ErrTruncated", now, err)
			}
			if re.Path != s.path || re.Off != r.Off || re.Len != n ||
				re.Got > int(max(0, now-offset)) {
				t.Errorf("truncated to %d: wrong place: %v", now, re)
			}
		}
		if now >= 4<<10 {
			head := []blockdev.Request{{File: s.file, Buf: blockdev.AlignedBuffer(4 << 10)}}
			if err := dev.ReadBatch(t.Context(), head); err != nil {
				t.Errorf("truncated to %d: read before the end: %v", now, err)
			}
			mustHold(t, head, s)
		}
		s.mustClose(t)
	}
}

func testClosed(t *testing.T, dev blockdev.Device) {
	a := mustSample(t, dev, "a", blockdev.Align)
	reqs := []blockdev.Request{{File: a.file, Buf: blockdev.AlignedBuffer(blockdev.Align)}}
	a.mustClose(t)
	if err := dev.ReadBatch(t.Context(), reqs); !errors.Is(err, blockdev.ErrClosed) {
		t.Errorf("read of a closed file: got %v, want ErrClosed", err)
	}
	if err := a.file.Close(); !errors.Is(err, blockdev.ErrClosed) {
		t.Errorf("second close of a file: got %v, want ErrClosed", err)
	}
	a.mustOpen(t, dev, vfs.Default)
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	reqs[0].File = a.file
	if err := dev.ReadBatch(t.Context(), reqs); !errors.Is(err, blockdev.ErrClosed) {
		t.Errorf("read on a closed device: got %v, want ErrClosed", err)
	}
	if _, err := dev.OpenFile(vfs.Default, a.path); !errors.Is(err, blockdev.ErrClosed) {
		t.Errorf("open on a closed device: got %v, want ErrClosed", err)
	}
	if err := dev.Close(); !errors.Is(err, blockdev.ErrClosed) {
		t.Errorf("second close of a device: got %v, want ErrClosed", err)
	}
	a.mustClose(t)
}
