package export

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMasked: checksums as TensorFlow's crc32c_test has them, masked by its formula.
func TestMasked(t *testing.T) {
	zeros := make([]byte, 32)
	crc := uint32(0x8a9136aa) // of 32 zeros
	if got := masked(zeros); got != (crc>>15|crc<<17)+0xa282ead8 {
		t.Errorf("%x", got)
	}
}

// TestVersionRecord: the first record of a file, as TensorFlow writes it at second 1.5e9.
func TestVersionRecord(t *testing.T) {
	b := appendRecord(nil, appendBytes(appendHead(nil, time.Unix(1500000000, 0), 0), eventVersion,
		[]byte("brain.Event:2")))
	got := hex.EncodeToString(b[12 : len(b)-4])
	want := "09000000c00b5ad641" + "1000" + "1a0d" + hex.EncodeToString([]byte("brain.Event:2"))
	if got != want || binary.LittleEndian.Uint64(b) != 26 {
		t.Errorf("%s, want %s; %d bytes", got, want, binary.LittleEndian.Uint64(b))
	}
}

// written are the events of a file with the record of one epoch, after that of the version.
func written(t *testing.T, e runs.Record) []byte {
	t.Helper()
	fs := vfs.NewMem()
	w, err := createEvents(fs, "tb", "r0001", func() time.Time { return time.Unix(7, 5e8) })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Epoch(e), w.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("tb/r0001")
	if err != nil || len(names) != 1 || !strings.HasPrefix(names[0], "events.out.tfevents.") {
		t.Fatal(names, err)
	}
	f, err := fs.Open("tb/r0001/" + names[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	var events [][]byte
	for len(b) > 0 {
		n := int(binary.LittleEndian.Uint64(b))
		if binary.LittleEndian.Uint32(b[8:]) != masked(b[:8]) ||
			binary.LittleEndian.Uint32(b[12+n:]) != masked(b[12:12+n]) {
			t.Fatal("a checksum is wrong")
		}
		events, b = append(events, b[12:12+n]), b[16+n:]
	}
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	return events[1]
}

// TestEpochs reads files of both kinds of records back.
func TestEpochs(t *testing.T) {
	val := 0.75
	for _, c := range []struct {
		record runs.Record
		want   map[string]float32
		absent string
	}{
		{&runs.Epoch{Epoch: 300, Loss: 0.5, Train: 0.25, Val: &val, Sampled: 8},
			map[string]float32{"loss": 0.5, "metric/train": 0.25, "metric/val": 0.75,
				"engine/edges_sampled": 8}, "rate"},
		{&runs.LinkEpoch{Epoch: 300, Loss: 0.5, Val: &val, Rate: 0.125, Scores: 64},
			map[string]float32{"loss": 0.5, "metric/val": 0.75, "rate": 0.125,
				"engine/edges_scored": 64}, "engine/bytes_read"},
		{&runs.LinkEpoch{Epoch: 300, Loss: 2, Sets: 3, Read: 512, Written: 256, Wait: 1.5},
			map[string]float32{"loss": 2, "engine/bytes_read": 512, "engine/bytes_written": 256,
				"engine/wait_seconds": 1.5}, "metric/val"},
	} {
		e := written(t, c.record)
		if math.Float64frombits(binary.LittleEndian.Uint64(e[1:])) != 7.5 || e[9] != eventStep {
			t.Errorf("% x", e[:12])
		}
		if step, n := binary.Uvarint(e[10:]); step != 300 || n != 2 {
			t.Errorf("step %d", step)
		}
		for name, v := range c.want {
			_, rest, ok := strings.Cut(string(e), name+string(rune(valueSimple)))
			if !ok || math.Float32frombits(binary.LittleEndian.Uint32([]byte(rest))) != v {
				t.Errorf("%T: %s is not %g", c.record, name, v)
			}
		}
		if strings.Contains(string(e), c.absent+string(rune(valueSimple))) {
			t.Errorf("%T: it has %s", c.record, c.absent)
		}
	}
}
