package superbatch

import (
	"encoding/binary"
	"testing"
)

// TestNextUsesAscend: of the accesses to a node each is before the next; one that is not was
// written
// wrongly, and must not become a plan.
func TestNextUsesAscend(t *testing.T) {
	for _, c := range []struct {
		name     string
		accesses []uint32 // to node 5, in the order of the file
		wrong    bool
	}{
		{"ascending", []uint32{0, 1, 7}, false},
		{"the same twice", []uint32{3, 3}, true},
		{"descending by one", []uint32{4, 3}, true},
		{"descending", []uint32{0, 9, 2}, true},
	} {
		w := nextWorker{nextPass: &nextPass{accesses: &accesses{Starts: []uint32{0, 40}},
			nextUses: &nextUses{ranges: ranges{Shift: 9, Count: 1, Window: 64}, Bits: 6}},
			Last: make([]uint32, 1<<9), Next: make([]uint32, 64)}
		w.never = 1<<31 - 1
		width, payload := w.wordBytes(), []byte(nil)
		for _, access := range c.accesses {
			word := binary.LittleEndian.AppendUint64(nil, 5<<w.numberBits()|uint64(access))
			payload = append(payload, word[:width]...)
		}
		w.Begin()
		next, err := w.Find(append(payload, make([]byte, 8)...), 0)
		if (err != nil) != c.wrong {
			t.Errorf("%s: next uses %v, %v", c.name, next, err)
		}
		for i := range next {
			want := w.never
			if i+1 < len(next) {
				want = c.accesses[i+1]
			}
			if !c.wrong && next[i] != want {
				t.Errorf("%s: the next use of access %d is %d, want %d", c.name, i, next[i], want)
			}
		}
	}
}
