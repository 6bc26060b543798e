package superbatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// metaGraph is testGraph as a store, with features and labels.
func metaGraph() layouttest.Graph {
	nodes := int(testGraph.Nodes())
	g := layouttest.Graph{Nodes: nodes, Dim: testDim, Classes: layouttest.ClassNames(3),
		Weighted: true, EdgeTypes: layouttest.ClassNames(5),
		Features: layouttest.Features(nodes, testDim)}
	for v := range sample.NodeID(g.Nodes) {
		for _, u := range testGraph.List(v) {
			g.Edges = append(g.Edges, layouttest.Edge{Src: u, Dst: v,
				Type: uint16(u*3+v) % 5, Weight: float32(u%8) + 0.5})
		}
		g.Labels = append(g.Labels, int32(v%3))
	}
	return g
}

// TestStoresGiveTheSame: over a store on disk, whatever reads it and however its topology is held,
// batches have the bits that a pipeline gives them, labels included.
func TestStoresGiveTheSame(t *testing.T) {
	extras := sample.Extras{Degrees: true, EdgeWeights: true, EdgeTypes: true, WeightSums: true}
	for name, draws := range map[string]sample.Config{
		"neighbors": {Fanout: []int{4, sample.All, 2}, Seed: 8, Extras: extras},
		"layers":    {LayerSize: []int{40, 90, 60}, Seed: 8, Extras: extras},
	} {
		t.Run(name, func(t *testing.T) { storesGiveTheSame(t, draws) })
	}
}

func storesGiveTheSame(t *testing.T, draws sample.Config) {
	g, way := metaGraph(), 0
	var want []uint64
	for _, backend := range []blockdev.Backend{blockdev.Memory, blockdev.URing, blockdev.Pread,
		blockdev.Buffered, blockdev.MMap} {
		fs, dir := vfs.Default, t.TempDir()
		if backend == blockdev.Memory {
			fs, dir = vfs.NewMem(), "store"
		}
		store := layouttest.Build(t, fs, dir, g)
		dev, err := blockdev.Open(blockdev.Options{Backend: backend})
		if err != nil {
			t.Logf("without %s: %v", backend, err)
			continue
		}
		for _, resident := range []bool{true, false} {
			m := openMeta(t, store, dev, resident, draws)
			if want == nil {
				c := m.config
				want, err = stepHashes(func(e uint64) (sample.Batches, error) {
					o, err := c.Order(e)
					if err != nil {
						return nil, err
					}
					return sample.NewPipeline(context.Background(), sample.PipelineConfig{
						Drawer: drawerOf(c), Order: o, Labels: c.Labels,
						Features: rowcache.NewDirect(c.Rows)})
				}, 0, c.Epochs)
				if err != nil {
					t.Fatal(err)
				}
			}
			for i, size := range []int{1, 7, 0, 0} {
				if way++; testing.Short() && way%3 != 0 { // of each kind some
					continue
				}
				t.Run(fmt.Sprintf("io=%s/resident=%v/superbatch=%d", backend, resident, size),
					func(t *testing.T) {
						c, reading := m.config, []Reading(nil)
						if i > 2 {
							c = swept(c, &reading)
							c.SweepAhead, c.SweepBytes = resident, 600<<10
							c.Costs = Costs{Byte: 1e-9} // a batch reads most of the file
						}
						c.Batches, c.Budget = size, mem.NewBudget(0)
						l := mustOpen(t, c)
						got, err := stepHashes(l.Epoch, 0, c.Epochs)
						if err != nil || !slices.Equal(got, want) {
							t.Errorf("%d of %d batches, %v", len(got), len(want), err)
						}
						if i > 2 && (len(reading) == 0 || !reading[0].Swept) {
							t.Errorf("nothing was swept: %+v", reading)
						}
						closeAll(t, l)
					})
			}
			m.close(t)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// meta is an opened store.
type meta struct {
	config  Config
	closers []func() error
}

func openMeta(t *testing.T, store *layout.Store, dev blockdev.Device, resident bool,
	draws sample.Config) *meta {
	ctx, info := context.Background(), store.Meta()
	topo, err := topology.Open(ctx, store, dev, layout.In,
		topology.Options{Resident: resident, CacheBytes: 256 << 10, Weights: true,
			Types: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := rowfile.Open(ctx, store, dev, info.Features[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	labelRows, err := rowfile.Open(ctx, store, dev, info.Labels.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	labels, err := sample.NewLabels(ctx, info.Labels, labelRows, info.Nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := testConfigOn(dev)
	c.Drawer = drawingAs(func() (*sample.Sampler, error) {
		return sample.NewSampler([]topology.Reader{topo}, draws)
	})
	c.Rows, c.Labels, c.FS, c.Prep, c.UUID = rows, labels, store.FS(), store.Path("prep"), info.UUID
	c.Epochs, c.Workers = 2, 2
	return &meta{config: c, closers: []func() error{labels.Close, labelRows.Close, rows.Close,
		topo.Close}}
}

func (m *meta) close(t *testing.T) {
	var err error
	for _, c := range m.closers {
		err = errors.Join(err, c())
	}
	if err != nil {
		t.Error(err)
	}
}
