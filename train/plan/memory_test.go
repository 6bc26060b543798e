package plan

import (
	"errors"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/train/setting"
)

// smallFacts are of a graph of 1,000 nodes with 32 values each, whose lists take 1 MiB.
func smallFacts(memory int64) *Facts {
	f := &Facts{Memory: memory, Program: 1 << 20, Model: 1 << 20, Settings: Settings{Threads: 2,
		Epochs: 4, Batch: 100, EvalEvery: 1, Cache: "auto", Topology: "auto",
		NeighborCache: setting.NeighborAuto}}
	f.Nodes, f.Dim, f.Storage = 1000, 32, 1<<30
	f.Forms = []topology.FormBytes{{Form: topology.Plain, Bytes: 1 << 20}}
	f.PagedBytes = func(cache int64) int64 { return cache }
	f.BatchNodes, f.BatchEdges, f.BatchInner, f.TrainBatches = 600, 1200, 200, 5
	f.StepCopied, f.StepInPlace, f.Evaluates = 1<<20, 1<<19, true
	return f
}

// TestSampling: a plan samples from a resident topology if that leaves a quarter of the memory,
// also where a run would page it.
func TestSampling(t *testing.T) {
	const need = 1 << 20
	for room, want := range map[int64]struct{ resident, otherwise bool }{
		3 * need:         {true, false},
		need*4/3 + 4096:  {true, true},
		need * 5 / 4:     {false, false},
		need*2 - 1<<10:   {true, true},
		need*2 + 2*1<<10: {true, false},
	} {
		first, otherwise := Sampling(smallFacts(2<<20 + room))
		if first.Resident != want.resident || (otherwise != nil) != want.otherwise ||
			otherwise != nil && otherwise.Resident {
			t.Errorf("%d bytes for %d of topology: %+v, else %+v", room, need, first, otherwise)
		}
	}
}

// TestSplitsOfFacts: with room for all there is one split, which holds all; with less there are
// several, none of which takes more than there is; with too little an error says what would do, and
// that does.
func TestSplitsOfFacts(t *testing.T) {
	splits, err := Plans(smallFacts(64 << 20))
	if err != nil || len(splits) != 1 || splits[0].Cache != "all" || !splits[0].Resident {
		t.Fatalf("with room for all: %v, %v", splits, err)
	}
	var small *TooSmallError
	if _, err = Plans(smallFacts(1 << 20)); !errors.As(err, &small) {
		t.Fatalf("in 1 MiB: %v", err)
	}
	f := smallFacts(small.Least)
	if _, err = Plans(f); err != nil {
		t.Fatalf("in the %d bytes that are said to do: %v", small.Least, err)
	}
	for more := int64(0); more < 4<<20; more += 256 << 10 {
		f := smallFacts(small.Least + more)
		f.Nodes = 100_000
		if splits, err = Plans(f); err != nil {
			t.Fatal(err)
		}
		for _, p := range splits {
			pool := p.Pools()[0]
			if p.Left() < 0 || pool.Left() != p.Left() || pool.Bytes != f.Memory {
				t.Errorf("%d bytes: %s", f.Memory, p)
			}
		}
	}
}

// TestReadsInPlace: rows are read in the cache of superbatches only if a step can do that, follows
// at all, and evaluation does not sample.
func TestReadsInPlace(t *testing.T) {
	for _, c := range []struct {
		reads, evaluates, sampled, want bool
	}{{true, true, false, true}, {false, true, false, false}, {true, false, false, false},
		{true, true, true, false}} {
		f := smallFacts(64 << 20)
		f.Nodes, f.Cache, f.FeatureCache = 100_000, setting.CacheBelady, 1<<20
		f.ReadsInPlace, f.Evaluates, f.EvalSampled = c.reads, c.evaluates, c.sampled
		splits, err := Plans(f)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range splits {
			found = found || p.Superbatch.InPlace
		}
		if found != c.want {
			t.Errorf("%+v: in place %v", c, found)
		}
	}
}

// TestLentSuperbatches: where a caller holds batches, superbatches leave memory for copies of them
// and of one more; auto does not take them, since nothing is left beside.
func TestLentSuperbatches(t *testing.T) {
	f := smallFacts(64 << 20)
	f.Nodes, f.Cache, f.FeatureCache, f.Evaluates = 100_000, setting.CacheBelady, 1<<20, false
	f.Lent, f.LentNodeBytes, f.LentEntryBytes = 2, 16, 8
	splits, err := Plans(f)
	if err != nil {
		t.Fatal(err)
	}
	each := mem.ArenaBytes(600*(32*4+16) + 1200*8)
	for _, p := range splits {
		if p.Lent != 3*each || p.Superbatch == nil || !strings.Contains(p.String(), "clients") {
			t.Errorf("%d bytes are for 3 copies of %d: %s", p.Lent, each, p)
		}
	}
	least := func(lent int) int64 {
		f := *f
		f.Memory, f.Lent = 1, lent
		var small *TooSmallError
		if _, err := Plans(&f); !errors.As(err, &small) {
			t.Fatal(err)
		}
		return small.Least
	}
	if more := least(2) - least(1); more != each {
		t.Errorf("with one more batch lent it needs %d bytes more, want %d", more, each)
	}
	f.Cache, f.FeatureCache = "auto", 0
	f.Memory = least(2)
	if splits, err = Plans(f); err != nil {
		t.Fatal(err)
	}
	for _, p := range splits {
		if p.Superbatch != nil || p.Lent != 0 {
			t.Errorf("auto takes %s", p)
		}
	}
}

// TestPlansAreFunctions: equal facts give equal plans, and planning changes no fact.
func TestPlansAreFunctions(t *testing.T) {
	f := smallFacts(5 << 20)
	f.Nodes = 100_000
	before := f.Settings
	a, err := Plans(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Plans(f)
	if err != nil || len(a) != len(b) || f.Settings != before {
		t.Fatalf("%d splits, then %d, %v", len(a), len(b), err)
	}
	for i := range a {
		if a[i].String() != b[i].String() {
			t.Errorf("%s, then %s", a[i], b[i])
		}
	}
}

// TestFormOfLists: the plan takes the fastest form of lists with which all has its place, and the
// one that is asked for; one that the store does not have is refused.
func TestFormOfLists(t *testing.T) {
	forms := []topology.FormBytes{{Form: topology.Plain, Bytes: 40 << 20},
		{Form: topology.Packed, Bytes: 30 << 20}, {Form: topology.Compact, Bytes: 20 << 20}}
	for memory, want := range map[int64]topology.Form{64 << 20: topology.Plain,
		40 << 20: topology.Packed, 30 << 20: topology.Compact} {
		f := smallFacts(memory)
		f.Forms = forms
		splits, err := Plans(f)
		if err != nil || len(splits) != 1 || splits[0].Form != want || splits[0].Cache != "all" {
			t.Errorf("with %d bytes: %v, %v; want %s", memory, splits, err, want)
		}
	}
	f := smallFacts(64 << 20)
	f.Forms, f.Topology = forms, "compact"
	splits, err := Plans(f)
	if err != nil || len(splits) != 1 || splits[0].Form != topology.Compact ||
		!splits[0].TopologyOptions().Resident ||
		splits[0].TopologyOptions().Form != topology.Compact {
		t.Errorf("compact: %v, %v", splits, err)
	}
	f.Forms = forms[:1]
	if _, err := Plans(f); err == nil || !strings.Contains(err.Error(), "--topology plain") {
		t.Errorf("a form that the store does not have: %v", err)
	}
}

// TestListsTakeTheirTurn: while superbatches are made, paged lists have the memory of a step and of
// what a way lends them of the cache, which rows have again during training.
func TestListsTakeTheirTurn(t *testing.T) {
	f := smallFacts(128 << 20)
	f.Nodes, f.Cache, f.Passes = 10_000_000, setting.CacheBelady, true
	f.Forms[0].Bytes, f.StepCopied = 1<<30, 8<<20
	of := func(lent int64) *Plan {
		w := way{cache: f.Cache, passes: true, stage: stageMost, lent: lent}
		got, err := f.takeSuperbatch(w)
		if err != nil || got.plan.Left() < 0 {
			t.Fatal(got.plan, err)
		}
		return got.plan
	}
	lists := func(p *Plan) int64 { return p.Lists.Blocks + p.Lists.Passes }
	none, most := of(0), of(14)
	if cache := none.CacheBytes(); lists(most)-lists(none) < cache*3/4 || most.CacheBytes() <
		cache*7/8 || none.Superbatch.Kept < most.Superbatch.Kept*4 {
		t.Errorf("lists have %d and %d bytes, rows %d and %d, of which stay %d and %d rows",
			lists(none), lists(most), cache, most.CacheBytes(), none.Superbatch.Kept,
			most.Superbatch.Kept)
	}
	f.StepCopied = 0
	if less := lists(of(14)); lists(most)-less < -1<<20 {
		t.Errorf("lists have %d bytes with a step and %d without", lists(most), less)
	}
	if taken := most.Memory - most.Left() - most.Step - most.Superbatch.CacheBytes(f.Dim); taken+
		most.Step < lists(most) {
		t.Errorf("lists have %d bytes of %d", lists(most), taken+most.Step)
	}
	f.Cache, f.Topology = "auto", "auto"
	all := f.superbatchWays(way{cache: setting.CacheBelady, ready: inTurn})
	n := 0
	for _, w := range all {
		if w.lent > 0 {
			n++
		}
		if w.overlap && w.lent > 0 {
			t.Errorf("lists have memory of the cache, though they keep it: %+v", w)
		}
	}
	if n == 0 {
		t.Error("no way lends the memory of the cache to lists")
	}
}

// TestVectorsHaveTheirName: hidden states are not called vectors of nodes, also in a plan that is
// refused.
func TestVectorsHaveTheirName(t *testing.T) {
	for halo, want := range map[bool]string{true: "hidden states", false: "node embedding"} {
		f := &Facts{Vectors: 1, Settings: Settings{Halo: halo}}
		if got := f.begin().Pools()[0].Parts[2].Name; got != want {
			t.Errorf("halo %v: %q, want %q", halo, got, want)
		}
	}
}
