package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdb/layout/layouttest"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWelcome: clients hear what the store has.
func TestWelcome(t *testing.T) {
	g := layouttest.Random(3, 300, 2500)
	g.EdgeTypes = []string{"a", "b"}
	for i := range g.Edges {
		g.Edges[i].Type = uint16(i % 2)
	}
	g.Dim, g.Features = 4, layouttest.Features(300, 4)
	g.Classes, g.Labels = layouttest.ClassNames(3), make([]int32, 300)
	g.Splits = layouttest.Splits(300)
	st := layouttest.Build(t, vfs.NewMem(), "all", g)
	w := New(Options{Store: st, Memory: testMemory, Threads: 1, Version: "v"}).welcome()
	if w.Protocol != protocol.Version || w.Version != "v" || w.Store.Path != st.Path() ||
		w.Store.UUID != st.Meta().UUID.String() || w.Store.Nodes != 300 ||
		w.Store.Edges != st.Meta().Edges || w.Store.Dim != 4 || w.Store.External ||
		w.Store.Labels != "class" || !slices.Equal(w.Store.Classes, g.Classes) ||
		!slices.Equal(w.Store.Types, g.EdgeTypes) || len(w.Store.NodeTypes) != 0 {
		t.Errorf("%+v", w)
	}
	splits := map[string]uint64{}
	for _, s := range st.Meta().Splits {
		splits[s.Name] = s.Count
	}
	if len(splits) < 3 || !maps.Equal(w.Store.Splits, splits) {
		t.Errorf("splits %v, want %v", w.Store.Splits, splits)
	}
	st = splitStore(t)
	w = New(Options{Store: st, Memory: testMemory, Threads: 1}).welcome()
	edges := uint64(0)
	for _, n := range w.Store.EdgeSplits {
		edges += n
	}
	if edges != 40 || len(w.Store.EdgeSplits) != 3 || w.Store.EdgeSplits["train"] != 20 ||
		w.Store.Dim != 0 || w.Store.Labels != "" || w.Store.Classes != nil {
		t.Errorf("%+v, want the edges of three splits", w.Store)
	}
}

// TestStatsTell: clients hear what was read, which cache there is and what it had.
func TestStatsTell(t *testing.T) {
	k := start(t, coraStore(t), Options{}).connect(t)
	stats := func() (st protocol.Stats) {
		f := k.must(protocol.KindStats, nil, nil, protocol.KindStatsNow)
		if err := f.Decode(&st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := stats(); st.Policy != "" || st.RSS == 0 {
		t.Errorf("before a loader: %+v", st)
	}
	k.open(protocol.Open{Split: "train", Fanout: []int{5}, Batch: 50, Seed: 1, World: 1,
		Cache: "sieve"})
	k.start(0, 0)
	nodes := 0
	for b, err := k.next(); b != nil; b, err = k.next() {
		if err != nil {
			t.Fatal(err)
		}
		nodes += len(b.ints(arrayNodes))
		k.give(b)
	}
	if st := stats(); st.Policy == "" || st.Requests != uint64(nodes) || st.Hits > st.Requests ||
		st.BytesRead == 0 {
		t.Errorf("after %d nodes: %+v", nodes, st)
	}
}

// TestRanksTakeTheSame: ranks that begin another epoch, or with another batch, than the one under
// way are refused; an epoch begins with its last batch at the latest.
func TestRanksTakeTheSame(t *testing.T) {
	r := start(t, coraStore(t), Options{})
	var ranks []*client
	for rank := range 2 {
		k := r.connect(t)
		k.open(protocol.Open{Split: "train", Fanout: []int{3}, Batch: 20, Seed: 1, World: 2,
			Rank: rank})
		ranks = append(ranks, k)
	}
	ranks[0].start(4, 1)
	for _, m := range []protocol.Start{{Epoch: 5, First: 1}, {Epoch: 4, First: 0}} {
		_, _, err := ranks[1].ask(protocol.KindStart, m, nil)
		want := fmt.Sprintf("usage: serve: rank 1 begins epoch %d with batch %d while others are "+
			"in epoch 4 from batch 1", m.Epoch, m.First)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, _, err := ranks[1].ask(protocol.KindStart, protocol.Start{Epoch: 4, First: 4}, nil)
	if err == nil || !strings.Contains(err.Error(), "begin with batch 4: an epoch has 3") {
		t.Errorf("behind the end: %v", err)
	}
	ranks[1].start(4, 1)
	for _, k := range ranks {
		count := 0
		for b, err := k.next(); b != nil; b, err = k.next() {
			if err != nil {
				t.Fatal(err)
			}
			count++
			k.give(b)
		}
		if count != 2 {
			t.Errorf("%d batches from the second of 3 on", count)
		}
	}
}
