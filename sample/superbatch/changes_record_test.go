package superbatch

import (
	"reflect"
	"testing"

	"gdb/internal/codec"
)

func TestChangesRecord(t *testing.T) {
	want := changes{From: []uint32{0, 4, 0, 1, 0}, Keep: []uint32{0, 4},
		Slots: []uint32{7, 2},
		Hits:  2}
	var e codec.Enc
	want.Encode(&e, nil)
	var got changes
	for range 2 {
		if err := got.Decode(e.B, 5, 8); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	for _, limits := range [][2]int{{4, 8}, {6, 8}, {5, 7}, {5, 3}} {
		if err := got.Decode(e.B, limits[0], limits[1]); err == nil {
			t.Errorf("taken for %d nodes and %d slots", limits[0], limits[1])
		}
	}
}

// FuzzChanges decodes anything as changes, and as the accesses of a part: it is refused, or within
// its bounds.
func FuzzChanges(f *testing.F) {
	var enc codec.Enc
	c := changes{From: []uint32{0, 4, 0, 1, 0}, Keep: []uint32{0, 4}, Slots: []uint32{7, 2}}
	c.Encode(&enc, nil)
	part := []byte{3<<6 | 1, 0, 3<<6 | 63, 0, 0, 0, 0, 0, 0, 0, 0, 0} // of one node, twice
	for _, s := range [][]byte{enc.B, part, nil} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var c changes
		if err := c.Decode(payload, 5, 8); err == nil && len(c.From) != 5 {
			t.Error("changes of another number of nodes")
		}
		w := nextWorker{nextPass: &nextPass{accesses: &accesses{Starts: []uint32{0, 2, 40}},
			nextUses: &nextUses{ranges: ranges{Shift: 9, Count: 1, Window: 64}, Bits: 6}},
			Last: make([]uint32, 1<<9), Next: make([]uint32, 64)}
		w.Begin()
		if next, err := w.Find(payload, 0); err == nil && len(payload) != 2*len(next)+8 {
			t.Error("next uses of another number of accesses")
		}
	})
}
