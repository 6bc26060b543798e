package plan

import (
	"slices"
	"testing"

	"gdb/layout/topology"
	"gdb/train/setting"
)

func TestThinned(t *testing.T) {
	for _, sizes := range [][]int64{{5}, {2, 1}, {3, 1, 2, 9, 4, 4, 7, 8}} {
		got := Thinned(sizes)
		if got[0] != slices.Min(sizes) || got[len(got)-1] != slices.Max(sizes) ||
			len(got) > TriedSizes {
			t.Errorf("%v of %v", got, sizes)
		}
	}
	if a, b, at := around([]int64{2, 4, 8}, 6); a != 4 || b != 8 || at != 0.5 {
		t.Errorf("6 is between %d and %d at %g", a, b, at)
	}
	for size, want := range map[int64]int64{1: 2, 2: 2, 9: 8} {
		a, b, at := around([]int64{2, 4, 8}, size)
		if got := float64(a) + at*float64(b-a); int64(got) != want {
			t.Errorf("%d is taken for %g", size, got)
		}
	}
}

// TestListsShareOneBudget: whatever share of them the neighbor cache has, the caches of lists take
// no more than the block cache alone would.
func TestListsShareOneBudget(t *testing.T) {
	f := &Facts{Settings: Settings{NeighborCache: setting.NeighborAuto, Threads: 1}}
	f.Forms = []topology.FormBytes{{Form: topology.Plain, Bytes: 12 << 20}}
	f.PagedBytes = func(cache int64) int64 { return cache + cache/64 + 4096 }
	for _, most := range []int64{2 << 20, 3 << 20, 8 << 20, 12 << 20} {
		alone := f.PagedBytes(most) + 2*topology.OverflowBytes
		for quarters := range int64(4) {
			l := f.paged(most, quarters, false)
			if all := l.bytes + l.neighbor; all > alone || l.caches > most ||
				4*l.plan.Neighbors < l.caches*quarters/2 {
				t.Errorf("%d bytes, %d quarters: %+v take %d, blocks alone %d", most, quarters,
					l.plan, all, alone)
			}
		}
	}
}

// TestListTable: what cores do besides reading goes by the blocks read.
func TestListTable(t *testing.T) {
	s := &Costs{Device: &Profile{ReadSeconds: 1, ReadCPU: 0.25}, Resident: Price{Own: 1},
		Paged: []PagedPrice{{10, Price{Own: 5}}, {20, Price{Own: 3}}}}
	l := &ListTable{Blocks: []int64{10, 20}, Neighbors: []int64{0, 8},
		Reads: map[ListCaches]ListReads{{10, 0}: {Reads: 100}, {20, 0}: {Reads: 60},
			{10, 8}: {Reads: 50}, {20, 8}: {Reads: 10}}}
	for _, c := range []struct {
		blocks, neighbors int64
		want              Price
	}{
		{10, 0, Price{Wait: 100, CPU: 25, Own: 5}},
		{20, 0, Price{Wait: 60, CPU: 15, Own: 3}},
		{15, 4, Price{Wait: 55, CPU: 13.75, Own: 2.75}},
		{20, 8, Price{Wait: 10, CPU: 2.5, Own: 1}},
	} {
		p := &Plan{facts: &Facts{},
			Lists: &ListPlan{Blocks: c.blocks, Neighbors: c.neighbors}}
		if got := l.price(s, p); got != c.want {
			t.Errorf("%+v, got %+v", c, got)
		}
	}
}
