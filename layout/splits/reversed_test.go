package splits

import (
	"math/rand/v2"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCountReversedInParts counts with all edges of a split at once and with few: the same, and as
// sets say.
func TestCountReversedInParts(t *testing.T) {
	fs, r := vfs.NewMem(), rand.New(rand.NewPCG(3, 4))
	if err := fs.MkdirAll("edges", 0o755); err != nil {
		t.Fatal(err)
	}
	const nodes = 40
	d, err := NewEdgeDivider(EdgeOptions{FS: fs, Path: func(rel string) string { return rel },
		Names: []string{"train", "val", "test"}, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	sets := [3]map[[2]uint32]bool{{}, {}, {}}
	for dst := range uint32(nodes) { // the order of the lists
		for src := range uint32(nodes) {
			if r.IntN(3) == 0 {
				continue
			}
			n := r.IntN(3)
			sets[n][[2]uint32{src, dst}] = true
			if err := d.Begin(uint16(n+1), false); err != nil {
				t.Fatal(err)
			}
			d.Place(src, dst, 0)
		}
	}
	result, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var want [3]uint64
	for n := 1; n < 3; n++ {
		for e := range sets[n] {
			if e[0] != e[1] && sets[0][[2]uint32{e[1], e[0]}] {
				want[n]++
			}
		}
	}
	s := layout.NewStore(fs, "", &kv.Meta{Nodes: nodes})
	for _, memory := range []int64{0, 640, 1 << 20} {
		got := append([]kv.EdgeSplitMeta{}, result.Splits...)
		if err := CountReversed(t.Context(), s, got, memory, mem.NewBudget(1<<20)); err != nil {
			t.Fatal(err)
		}
		for n := range got {
			if got[n].Reversed != want[n] {
				t.Errorf("in %d bytes: %s has %d, want %d", memory, got[n].Name, got[n].Reversed,
					want[n])
			}
		}
	}
}
