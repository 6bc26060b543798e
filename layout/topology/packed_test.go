package topology

import (
	"encoding/binary"
	"testing"

	"gdb/layout"

	"pgregory.net/rapid"
)

// putPlain is the plain twin of packers: an entry after the other, each by itself.
func putPlain(p *packedIDs, i uint64, ids []layout.NodeID) {
	for _, v := range ids {
		place := i * p.width
		b := p.b[place>>3:]
		binary.LittleEndian.PutUint64(b,
			binary.LittleEndian.Uint64(b)|uint64(v)<<(place&7))
		i++
	}
}

// TestPacker: packers that write parts beside each other, each in pieces, write what one would that
// writes all, whatever the width, and read back it is what was put.
func TestPacker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(1, 32).Draw(t, "bits")
		most := uint64(1) << bits
		ids := rapid.SliceOf(rapid.Uint64Range(0, most-1)).Draw(t, "ids")
		all := make([]layout.NodeID, len(ids))
		for i, v := range ids {
			all[i] = layout.NodeID(v)
		}
		size := packedBytes(uint64(len(all)), most)
		got := packedIDs{b: make([]byte, size), width: idBits(most)}
		want := packedIDs{b: make([]byte, size), width: got.width}
		putPlain(&want, 0, all)
		var parts []packer
		for first := 0; first < len(all); {
			end := rapid.IntRange(first+1, len(all)).Draw(t, "end")
			p := got.packer(uint64(first))
			for first < end {
				n := rapid.IntRange(1, end-first).Draw(t, "piece")
				p.put(all[first : first+n])
				first += n
			}
			parts = append(parts, p)
		}
		for i := range parts {
			parts[i].finish()
		}
		if string(got.b) != string(want.b) {
			t.Fatalf("%d entries of %d bits in %d parts: %x, want %x", len(all), got.width,
				len(parts), got.b, want.b)
		}
		for i, v := range all {
			if got.at(uint64(i)) != v {
				t.Fatalf("entry %d is %d, want %d", i, got.at(uint64(i)), v)
			}
		}
	})
}
