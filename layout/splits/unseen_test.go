package splits

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestCountUnseenInRanges counts in one range of nodes and in many: the same, and as sets say.
func TestCountUnseenInRanges(t *testing.T) {
	fs, r := vfs.NewMem(), rand.New(rand.NewPCG(1, 2))
	if err := fs.MkdirAll("edges", 0o755); err != nil {
		t.Fatal(err)
	}
	const nodes, types = 1000, 5
	d, err := NewEdgeDivider(EdgeOptions{FS: fs, Path: func(rel string) string { return rel },
		Names: []string{"train", "val", "test"}, Nodes: nodes, Types: types})
	if err != nil {
		t.Fatal(err)
	}
	seen := [3]map[uint32]bool{{}, {}, {}}
	for i := range 900 {
		n, src, dst := i%3, uint32(r.IntN(nodes)), uint32(r.IntN(nodes))
		if err := d.Begin(uint16(n+1), false); err != nil {
			t.Fatal(err)
		}
		if listed := d.Place(src, dst, uint16(n)); listed != (n == 0) {
			t.Fatalf("an edge of split %d is in lists: %v", n, listed)
		}
		seen[n][src], seen[n][dst] = true, true
	}
	result, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	want := append([]kv.EdgeSplitMeta{}, result.Splits...)
	for n := 1; n < 3; n++ {
		want[n].UnseenTypes = 1
		for v := range seen[n] {
			if !seen[0][v] {
				want[n].UnseenNodes++
			}
		}
	}
	s := layout.NewStore(fs, "", &kv.Meta{Nodes: nodes, EdgeTypes: make([]string, types)})
	for _, memory := range []int64{0, 64, 1 << 20} {
		got := append([]kv.EdgeSplitMeta{}, result.Splits...)
		if err := CountUnseen(t.Context(), s, got, memory, mem.NewBudget(1<<20)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("in %d bytes: %v, want %v", memory, got, want)
		}
	}
}
