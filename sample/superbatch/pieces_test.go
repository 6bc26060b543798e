package superbatch

import (
	"fmt"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// piecesGraph is metaGraph with types of nodes whose rows have 20, 5, 0 and 3 values.
func piecesGraph() layouttest.Graph {
	g, v := metaGraph(), 0
	g.Dim, g.EdgeTypes = 20, layouttest.ClassNames(16)
	g.Features = layouttest.Features(g.Nodes, g.Dim)
	of := make([]uint16, g.Nodes)
	for i, dim := range []int{20, 5, 0, 3} {
		end := g.Nodes * (i + 1) / 4
		g.Types = append(g.Types, layouttest.Type{Name: fmt.Sprint("t", i), Nodes: end - v,
			Dim: dim})
		for ; v < end; v++ {
			of[v] = uint16(i)
			clear(g.Features[v*g.Dim+dim : (v+1)*g.Dim])
		}
		for dst := range 4 {
			g.Relations = append(g.Relations, kv.RelationMeta{Src: i, Dst: dst})
		}
	}
	for i, e := range g.Edges {
		g.Edges[i].Type = 4*of[e.Src] + of[e.Dst]
	}
	return g
}

// TestPiecesGiveTheSame: batches whose rows are put together from pieces, by superbatches and by
// pipelines, have the bits of those with whole rows.
func TestPiecesGiveTheSame(t *testing.T) {
	dev, err := blockdev.Open(blockdev.Options{Backend: blockdev.Memory})
	if err != nil {
		t.Fatal(err)
	}
	m := openMeta(t, layouttest.Build(t, vfs.NewMem(), "store", piecesGraph()), dev, true,
		sample.Config{Fanout: []int{4, 3}, Seed: 8})
	defer m.close(t)
	c := m.config
	cut := false
	pipeline := func(f rowcache.Features, split *rowfile.Split) ([]uint64, error) {
		return stepHashes(func(e uint64) (sample.Batches, error) {
			o, err := c.Order(e)
			if err != nil {
				return nil, err
			}
			return sample.NewPipeline(t.Context(), sample.PipelineConfig{Drawer: drawerOf(c),
				Order: o, Labels: c.Labels, Features: f, Split: split,
				Cut: cut})
		}, 0, c.Epochs)
	}
	want, err := pipeline(rowcache.NewDirect(c.Rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := c.Rows.(*rowfile.Reader)
	if c.Split = rowfile.NewSplit(whole.Meta(), c.Nodes); c.Split == nil {
		t.Fatal("not split")
	}
	c.Rows = whole.Split(c.Split)
	cache, err := rowcache.New(t.Context(), c.Rows, rowcache.NewSIEVE(),
		rowcache.Options{Bytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	all, err := rowcache.NewResident(t.Context(), c.Rows, c.Split.Rows, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for range 2 {
		for _, f := range []rowcache.Features{cache, all} {
			if got, err := pipeline(f, c.Split); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, cut %v: %d of %d batches, %v", f.Stats().Policy, cut, len(got),
					len(want), err)
			}
		}
		all.Lend()
		cut = true
	}
	for i, size := range []int{1, 7, 0, 0, 1, 7, 0, 0, 7, 0, 0} {
		c, reading := c, []Reading(nil)
		if c.Cut, c.InPlace = i > 3, i > 7; c.InPlace {
			c.Slots = 500
		}
		if c.Batches, c.StageRows = size, 40; i == 3 || i == 7 || i == 10 {
			c = swept(c, &reading)
			c.SweepBytes, c.Costs = 600<<10, Costs{Byte: 1e-9}
		}
		l := mustOpen(t, c)
		got, err := stepHashes(l.Epoch, 0, c.Epochs)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("superbatch %d, %d: %d of %d batches, %v", i, size, len(got), len(want), err)
		}
		if s := l.CacheStats(); size != 1 && s.Hits == 0 {
			t.Error("no row was found in the cache")
		}
		closeAll(t, l)
	}
}
