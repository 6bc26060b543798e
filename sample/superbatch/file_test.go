package superbatch

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/blockdev/devtest"
	"gdb/internal/codec"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustDevice(t testing.TB) blockdev.Device {
	t.Helper()
	return devtest.Open(t, blockdev.Options{Backend: blockdev.Memory, QueueDepth: 4})
}

// payload is some bytes that depend on i.
func payload(i, size int) []byte {
	draw, b := rng.NewStream(rng.Key(uint64(i))), make([]byte, size)
	for k := range b {
		b[k] = byte(draw.Uint64())
	}
	return b
}

var recordSizes = []int{0, 1, 495, 496, 497, 5000, 3 << 20, 12, 700000, 600000}

func mustWrite(t testing.TB, id identity) []ref {
	t.Helper()
	w, err := id.Create(kindPlan)
	if err != nil {
		t.Fatal(err)
	}
	var refs []ref
	for i, size := range recordSizes {
		r, err := w.Append(payload(i, size))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return refs
}

func TestRecords(t *testing.T) {
	ctx, dev := context.Background(), mustDevice(t)
	id := identity{FS: vfs.NewMem(), UUID: [16]byte{1, 2}, Seq: 3}
	refs := mustWrite(t, id)
	r, err := id.Open(ctx, dev, kindPlan)
	if err != nil {
		t.Fatal(err)
	}
	var buf readBuffer
	for i := len(refs) - 1; i >= 0; i-- {
		got, err := readOne(ctx, r, refs[i], &buf)
		if err != nil || !bytes.Equal(got, payload(i, recordSizes[i])) {
			t.Errorf("record %d: %d bytes, %v", i, len(got), err)
		}
	}
	wrong := refs[4]
	wrong.Bytes--
	if _, err := readOne(ctx, r, wrong, &buf); !errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("a record of another length: %v", err)
	}
	wrong = ref{Unit: 1 << 20, Bytes: 4}
	if _, err := readOne(ctx, r, wrong, &buf); !errors.Is(err, layout.ErrCorrupt) {
		t.Errorf("a record behind the end: %v", err)
	}
	if err := errors.Join(buf.Free(), r.Close(), id.Remove(kindPlan)); err != nil {
		t.Error(err)
	}
}

// TestFlippedBits: every flipped bit of header and records is found, but for those of the padding.
func TestFlippedBits(t *testing.T) {
	ctx, dev := context.Background(), mustDevice(t)
	fs := vfs.NewMem()
	id := identity{FS: fs, UUID: [16]byte{1, 2}, Seq: 3}
	refs := mustWrite(t, id)
	good := layouttest.ReadFile(t, fs, id.Path(kindPlan))
	draw := rng.NewStream(8)
	flips := 60
	if testing.Short() {
		flips = 10 // one goroutine reads
	}
	for n := range flips {
		i := int(draw.Below(uint64(len(refs)))) - 1
		from, size := int64(0), int64(codec.HeaderBytes)
		if i >= 0 {
			from, size = refs[i].Off(), recordHead+int64(refs[i].Bytes)
		}
		at := from + int64(draw.Below(uint64(size)))
		bad := bytes.Clone(good)
		bad[at] ^= 1 << draw.Below(8)
		layouttest.WriteFile(t, fs, id.Path(kindPlan), bad)
		err := readRecord(ctx, dev, id, refs, i)
		if !errors.Is(err, layout.ErrCorrupt) || !strings.Contains(err.Error(), "offset") {
			t.Errorf("flip %d, byte %d of record %d: %v", n, at-from, i, err)
		}
	}
	layouttest.WriteFile(t, fs, id.Path(kindPlan), good)
	for _, other := range []identity{{FS: fs, UUID: [16]byte{1, 3}, Seq: 3}} {
		if _, err := other.Open(ctx, dev, kindPlan); !errors.Is(err,
			layout.ErrCorrupt) {
			t.Errorf("a file of another store: %v", err)
		}
	}
}

// readOne reads one record.
func readOne(ctx context.Context, r *fileReader, at ref,
	buf *readBuffer) ([]byte, error) {
	payloads, err := buf.Read(ctx, record{File: r, At: at})
	if err != nil {
		return nil, err
	}
	return payloads[0], nil
}

// readRecord opens the file, and reads record i if it is not negative.
func readRecord(ctx context.Context, dev blockdev.Device, id identity,
	refs []ref, i int) error {
	r, err := id.Open(ctx, dev, kindPlan)
	if err != nil {
		return err
	}
	var buf readBuffer
	if i >= 0 {
		_, err = readOne(ctx, r, refs[i], &buf)
	}
	return errors.Join(err, buf.Free(), r.Close())
}
