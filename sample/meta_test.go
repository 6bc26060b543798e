package sample

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/listfile"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample/rowcache"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	metaDim  = 20
	metaSeed = 12
)

// metaConfig is one way to make batches.
type metaConfig struct {
	block    int
	backend  blockdev.Backend
	resident bool
	nbrs     int64 // size of the neighbor cache
	cache    string
	workers  int
	drawing
	before bool // only edges before metaLimit
}

// drawing is a way to draw neighbors.
type drawing string

const (
	uniformDraws       drawing = "uniform"
	weightedDraws      drawing = "weighted"
	latestDraws        drawing = "latest"
	layerDraws         drawing = "layers"
	weightedLayerDraws drawing = "weighted layers"
)

// metaDraws are all ways.
var metaDraws = []drawing{uniformDraws, weightedDraws, latestDraws, layerDraws, weightedLayerDraws}

func (c metaConfig) String() string {
	return fmt.Sprintf("block=%d/io=%s/resident=%v/nbrs=%d/cache=%s/workers=%d/draws=%s/before=%v",
		c.block, c.backend, c.resident, c.nbrs, c.cache, c.workers, c.drawing, c.before)
}

// The same seed gives the same batches, whatever the block size, the I/O path, the topology reader,
// the neighbor and feature caches and the number of workers. To replay one:
// -run TestBatchesAreTheSame/NAME.
func TestBatchesAreTheSame(t *testing.T) {
	g := metaGraph()
	type ways struct {
		drawing
		before bool
	}
	want := map[ways][]uint64{}
	for _, draws := range metaDraws {
		for _, before := range []bool{false, true} {
			want[ways{draws, before}] = metaWant(&g, draws, before)
		}
	}
	way := 0
	for _, block := range []int{4 << 10, 64 << 10} {
		g.BlockBytes = block
		onDisk := layouttest.Build(t, vfs.Default, t.TempDir(), g)
		inMemory := layouttest.Build(t, vfs.NewMem(), "store", g)
		for _, backend := range []blockdev.Backend{blockdev.URing, blockdev.Pread,
			blockdev.Buffered, blockdev.MMap, blockdev.Memory} {
			store := onDisk
			if backend == blockdev.Memory {
				store = inMemory
			}
			dev, err := blockdev.Open(blockdev.Options{Backend: backend})
			if err != nil {
				t.Logf("without %s: %v", backend, err)
				continue
			}
			for _, c := range metaConfigs(block, backend) {
				if way++; testing.Short() && way%9 != 0 { // of each kind some
					continue
				}
				t.Run(c.String(), func(t *testing.T) {
					got := metaHashes(t, store, dev, c)
					if want := want[ways{c.drawing, c.before}]; !slices.Equal(got, want) {
						t.Errorf("seed %d: hashes %x, want %x", metaSeed, got, want)
					}
				})
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// metaGraph has a hub of more than one block, labels and features.
func metaGraph() layouttest.Graph {
	lists := sampletest.RMAT(11, 30000, metaSeed)
	g := layouttest.Graph{Nodes: int(lists.Nodes()), Dim: metaDim, Weighted: true,
		Timed: true, Classes: layouttest.ClassNames(4)}
	for v := range NodeID(g.Nodes) {
		for _, u := range lists.List(v) {
			g.Edges = append(g.Edges, layouttest.Edge{Src: u, Dst: v,
				Weight: powers(len(g.Edges)), Time: fewTimes(len(g.Edges))})
		}
		g.Edges = append(g.Edges, layouttest.Edge{Src: v, Dst: 7, Weight: powers(len(g.Edges)),
			Time: fewTimes(len(g.Edges))})
		g.Labels = append(g.Labels, classOf(v))
	}
	g.Features = layouttest.Features(g.Nodes, metaDim)
	return g
}

func metaConfigs(block int, backend blockdev.Backend) (all []metaConfig) {
	for _, resident := range []bool{true, false} {
		for _, cache := range []string{"none", "sieve", "static", "all"} {
			for _, workers := range []int{1, 2} {
				all = append(all, metaConfig{block, backend, resident, 0, cache, workers,
					uniformDraws, false})
			}
		}
		for _, draws := range metaDraws {
			if draws != uniformDraws {
				all = append(all,
					metaConfig{block, backend, resident, 0, "sieve", 2, draws, false})
			}
			all = append(all, metaConfig{block, backend, resident, 0, "sieve", 1, draws, true})
		}
	}
	for _, nbrs := range []int64{64 << 10, 1 << 20} { // some lists, and all
		for _, workers := range []int{1, 2} {
			all = append(all, metaConfig{block, backend, false, nbrs, "sieve", workers,
				uniformDraws, false})
		}
		for _, draws := range metaDraws {
			all = append(all,
				metaConfig{block, backend, false, nbrs, "sieve", 1, draws, draws == latestDraws})
		}
	}
	return all
}

// metaLimit is about in the middle of fewTimes.
const metaLimit = 20

func metaSampling(draws drawing) Config {
	c := Config{Fanout: []int{5, All, 2}, Seed: 3}
	switch draws {
	case weightedDraws:
		c.Draw = DrawWeighted
	case latestDraws:
		c.Draw = DrawLatest
	case layerDraws, weightedLayerDraws:
		c.Fanout, c.LayerSize = nil, []int{30, 60, 300}
		c.EdgeWeights = draws == weightedLayerDraws
	}
	return c
}

// readsWeights says that the weights of edges are read.
func (d drawing) readsWeights() bool { return d == weightedDraws || d == weightedLayerDraws }

// readsColumns says whether the neighbor cache is of no use.
func (c metaConfig) readsColumns() bool {
	return c.readsWeights() || c.drawing == latestDraws || c.before
}

func metaOrder() *Order {
	o, err := EpochOrder(someNodes(80), 3, 1, 10)
	if err != nil {
		panic(err)
	}
	return o
}

// metaWant makes the batches plainly.
func metaWant(g *layouttest.Graph, draws drawing, before bool) (want []uint64) {
	lists, order := g.Lists(layout.In), metaOrder()
	for v := range lists {
		lists[v] = slices.DeleteFunc(lists[v], func(e listfile.Edge) bool {
			return before && e.Time >= metaLimit
		})
	}
	list := func(v NodeID) (l []NodeID) {
		for _, e := range lists[v] {
			l = append(l, e.Nbr)
		}
		return l
	}
	edges := edgeColumns{
		weights: func(v NodeID) (l []float32) {
			for _, e := range lists[v] {
				l = append(l, e.Weight)
			}
			return l
		},
		times: func(v NodeID) (l []int64) {
			for _, e := range lists[v] {
				l = append(l, e.Time)
			}
			return l
		}}
	for i := range order.Batches() {
		b := Batch{Epoch: 1, Index: i, Seeds: order.Seeds(i, nil), Dim: metaDim}
		b.Dense = reference(list, edges, metaSampling(draws), 1, i, b.Seeds)
		for _, v := range b.Dense.NodeIDs {
			b.X = append(b.X, g.Features[int(v)*metaDim:int(v+1)*metaDim]...)
		}
		for _, v := range b.Seeds {
			b.Labels = append(b.Labels, g.Labels[v])
		}
		want = append(want, BatchHash(&b))
	}
	return want
}

// metaHashes runs an epoch over a store.
func metaHashes(t *testing.T, store *layout.Store, dev blockdev.Device,
	c metaConfig) []uint64 {
	ctx := context.Background()
	topo, err := topology.Open(ctx, store, dev, layout.In,
		topology.Options{Resident: c.resident, CacheBytes: 256 << 10,
			NeighborBytes: c.nbrs, Weights: c.readsWeights(),
			Times: c.drawing == latestDraws || c.before})
	if err != nil {
		t.Fatal(err)
	}
	if c.before {
		topo = topology.Before(topo, metaLimit, nil)
	}
	rows, err := rowfile.Open(ctx, store, dev, store.Meta().Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	labelRows, err := rowfile.Open(ctx, store, dev, store.Meta().Labels.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := NewLabels(ctx, store.Meta().Labels, labelRows, topo.Nodes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := metaFeatures(t, store, dev, rows, c.cache)
	p := mustPipeline(t, ctx, metaPipeline(topo, f, labels, c.workers, c.drawing))
	got := hashes(t, p, 0)
	if s := f.Stats(); c.cache == "sieve" && (s.Hits == 0 || s.Evicted == 0) ||
		c.cache == "static" && (s.Hits == 0 || s.Hits == s.Requests) {
		t.Errorf("the cache was not put to use: %+v", s)
	}
	if s := topo.Stats(); !c.resident && c.nbrs < 1<<20 && s.BlocksRead == 0 ||
		c.nbrs > 0 && (s.Neighbors.Hits == 0) != c.readsColumns() {
		t.Errorf("the paged topology was not put to use: %+v", s)
	}
	if err := errors.Join(p.Close(), f.Close(), labels.Close(), labelRows.Close(), rows.Close(),
		topo.Close()); err != nil {
		t.Error(err)
	}
	return got
}

func metaPipeline(topo topology.Reader, f rowcache.Features, labels *Labels, workers int,
	draws drawing) PipelineConfig {
	return PipelineConfig{
		Drawer: samplers(func() (*Sampler, error) {
			return NewSampler([]topology.Reader{topo}, metaSampling(draws))
		}),
		Order: metaOrder(), Labels: labels, Features: f, Workers: workers,
	}
}

func metaFeatures(t *testing.T, store *layout.Store, dev blockdev.Device, rows *rowfile.Reader,
	cache string) (f rowcache.Features) {
	ctx, err, opt := context.Background(), error(nil), rowcache.Options{Bytes: 20 << 10, Threads: 2}
	switch cache {
	case "none":
		f = rowcache.NewDirect(rows)
	case "sieve":
		f, err = rowcache.New(ctx, rows, rowcache.NewSIEVE(), opt)
	case "all":
		f, err = rowcache.NewResident(ctx, rows, store.Meta().Nodes, 2, nil)
	case "static":
		var hot []NodeID
		hot, err = mostUsed(ctx, store, dev, rowcache.RowsIn(opt.Bytes, metaDim, 0))
		if err == nil {
			f, err = rowcache.New(ctx, rows, rowcache.NewStatic(hot), opt)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// mostUsed returns the limit nodes that stand in the most lists. Nodes that stand in equally many
// lists come in any order.
func mostUsed(ctx context.Context, store *layout.Store, dev blockdev.Device,
	limit int) ([]NodeID, error) {
	uses, nodes := make([]int, store.Meta().Nodes), make([]NodeID, store.Meta().Nodes)
	for v := range nodes {
		nodes[v] = NodeID(v)
	}
	err := listfile.Scan(ctx, store, dev, layout.In, func(_ NodeID, _ bool,
		l *listfile.Lists) error {
		for _, v := range l.Nbrs {
			uses[v]++
		}
		return nil
	})
	slices.SortFunc(nodes, func(a, b NodeID) int { return uses[b] - uses[a] })
	return nodes[:min(limit, len(nodes))], err
}
