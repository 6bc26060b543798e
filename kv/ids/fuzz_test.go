package ids

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// addBlocks seeds a fuzz target with the blocks of a small dictionary.
func addBlocks(f *testing.F) {
	fs := vfs.NewMem()
	m, err := writeIDs(fs, "store", append(names(300), ""), hashTest)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range m.Files {
		b := readAll(f, fs, "store/"+file.Path)
		for ; len(b) > 0; b = b[BlockBytes:] {
			f.Add(b[:BlockBytes])
		}
	}
}

func FuzzDecodeForward(f *testing.F) {
	addBlocks(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeForward(b)
		if err != nil {
			return
		}
		for i := range d.n {
			external := string(d.external(i))
			if len(external) > MaxBytes {
				t.Fatalf("entry %d has %d bytes", i, len(external))
			}
			if id, found := d.find(d.hash(i), external); found && id != d.node(i) {
				// Only a block that is out of order, or holds an id twice, may answer otherwise.
				ordered := true
				for k := 1; k < d.n; k++ {
					ordered = ordered && (d.hash(k-1) < d.hash(k) || d.hash(k-1) == d.hash(k) &&
						bytes.Compare(d.external(k-1), d.external(k)) < 0)
				}
				if ordered {
					t.Fatalf("entry %d is node %d, found %d", i, d.node(i), id)
				}
			}
		}
	})
}

func FuzzDecodeReverse(f *testing.F) {
	addBlocks(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeReverse(b)
		if err != nil {
			return
		}
		if uint64(d.first)+uint64(d.n) > maxNodes {
			t.Fatalf("nodes %d to %d", d.first, uint64(d.first)+uint64(d.n))
		}
		for i := range d.n {
			if len(d.external(i)) > MaxBytes {
				t.Fatalf("id %d has %d bytes", i, len(d.external(i)))
			}
		}
	})
}

func FuzzDecodeTrailer(f *testing.F) {
	addBlocks(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		const blocks = 10
		got, err := decodeTrailer(b, blocks*BlockBytes, 8)
		if err != nil {
			return
		}
		if got.data+got.index+2 != blocks || got.entries < got.data {
			t.Fatalf("trailer %+v of %d blocks", got, blocks)
		}
		if again := got.encode(); !bytes.Equal(again[4:32], b[4:32]) {
			t.Fatalf("encoded again: %x, was %x", again[:32], b[:32])
		}
	})
}
