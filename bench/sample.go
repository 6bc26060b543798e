package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SampleOptions configure the sampling benchmark.
type SampleOptions struct {
	// Store is the directory of a store. If it is empty, an R-MAT graph is made in memory.
	Store string
	// Scale and Edges are the size of the made graph: 2^Scale nodes. Default 22 and 2^26, which
	// takes 12 bytes an edge while it is made.
	Scale int
	Edges uint64
	// Fanout is drawn at each hop. Default 15,10,5.
	Fanout []int
	// Batch is the number of seeds. Default 1000.
	Batch int
	// Batches is how many are sampled by each goroutine. Default 200.
	Batches int
	// Threads lists the numbers of goroutines to measure with, each sampling batches of its own.
	// Default 1.
	Threads []int
	// Topology lists the readers: resident, paged. Default resident; a made graph has no other.
	Topology []string
	// Strategy lists how neighbors are drawn: uniform, weighted. Default uniform. A made graph gets
	// weights for the latter, uniform in (0, 1].
	Strategy []string
	// CacheBytes is the memory of the paged reader for blocks and neighbor lists. Default as that
	// of the block cache in topology.Options.
	CacheBytes int64
	// NeighborBytes is how much of it the neighbor cache takes; with RawNeighbors, lists as they
	// are.
	NeighborBytes int64
	RawNeighbors  bool
	// Device reads the blocks of the store.
	Device blockdev.Device
	// Memory bounds the process, in bytes; 0 for no bound.
	Memory int64
	// Budget counts the memory of topology and samplers; with Memory it is made.
	Budget *mem.Budget
	// Seed is the root of all draws.
	Seed uint64
}

// setDefaults fills in what is not set.
func (o *SampleOptions) setDefaults() {
	o.Scale = cmp.Or(o.Scale, 22)
	o.Edges = cmp.Or(o.Edges, 1<<26)
	if len(o.Fanout) == 0 {
		o.Fanout = []int{15, 10, 5}
	}
	o.Batch = cmp.Or(o.Batch, 1000)
	o.Batches = cmp.Or(o.Batches, 200)
	if len(o.Threads) == 0 {
		o.Threads = []int{1}
	}
	if len(o.Topology) == 0 {
		o.Topology = []string{"resident"}
	}
	if len(o.Strategy) == 0 {
		o.Strategy = []string{"uniform"}
	}
}

// fits makes the budget of what is measured in Memory, and checks that a made graph has room.
func (o *SampleOptions) fits() error {
	if o.Memory <= 0 {
		return nil
	}
	room, made := max(1, o.Memory-programBytes), int64(0)
	if o.Store == "" {
		if o.Scale < 1 || o.Scale > 32 || o.Edges > 1<<40 {
			return optionErrorf("bench: sample: --scale %d, --edges %d: want 2 to 2^32 nodes, "+
				"and at most 2^40 edges", o.Scale, o.Edges)
		}
		made = 16*int64(o.Edges) + 20<<o.Scale // with weights
		if made > room {
			return fmt.Errorf("bench: sample: a graph of 2^%d nodes and %d edges needs %s while "+
				"it is made: raise --memory, or give a --store", o.Scale, o.Edges,
				mem.FormatSize(made+programBytes))
		}
	}
	o.Budget = mem.NewBudget(max(1, room-made))
	return nil
}

// weighted draws by the weights of edges.
const weighted = "weighted"

// drawOf returns how a sampler draws by a strategy.
func drawOf(strategy string) sample.Draw {
	if strategy == weighted {
		return sample.DrawWeighted
	}
	return sample.DrawUniform
}

// Draws and Topologies are what Sample measures.
var (
	Draws      = []string{"uniform", weighted}
	Topologies = []string{"resident", "plain", "packed", "compact", "paged"}
)

// Sample measures neighbor sampling to DENSE: sampled edges per second and core, removing
// duplicates and relabeling included. Seeds are nodes that have neighbors, as training nodes do.
func Sample(ctx context.Context, opt SampleOptions) (*Report, error) {
	opt.setDefaults()
	for _, s := range opt.Strategy {
		if !slices.Contains(Draws, s) {
			return nil, optionErrorf("bench: sample %q is not one of %s", s,
				strings.Join(Draws, ", "))
		}
	}
	for _, kind := range opt.Topology {
		if !slices.Contains(Topologies, kind) {
			return nil, optionErrorf("bench: topology %q is not one of %s", kind,
				strings.Join(Topologies, ", "))
		}
		if kind != "resident" && opt.Store == "" {
			return nil, optionErrorf("bench: a graph made in memory is resident: give a "+
				"--store to measure lists that are %s", kind)
		}
	}
	if err := opt.fits(); err != nil {
		return nil, err
	}
	r := newReport("sample", "topology", "strategy", "threads", "fanout", "edges_per_s_per_core",
		"nodes_per_batch", "edges_per_batch", "blocks_per_batch", "reads_per_batch",
		"neighbor_hit_ratio", "neighbors_cached", "compression")
	for _, kind := range opt.Topology {
		if err := sampleTopology(ctx, r, kind, opt); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// sampleTopology adds the rows of one reader.
func sampleTopology(ctx context.Context, r *Report, kind string, opt SampleOptions) error {
	topo, done, err := openTopology(ctx, kind, opt)
	if err != nil {
		return err
	}
	seeds, err := seedsOf(ctx, topo, opt)
	for _, strategy := range opt.Strategy {
		c := sample.Config{Fanout: opt.Fanout, Seed: opt.Seed, Draw: drawOf(strategy),
			Budget: opt.Budget}
		for _, threads := range opt.Threads {
			if err != nil {
				break
			}
			var row Row
			if row, err = sampleRow(ctx, topo, c, seeds, threads, opt); err == nil {
				row["topology"], row["strategy"] = kind, strategy
				r.Rows = append(r.Rows, row)
			}
		}
	}
	return errors.Join(err, done())
}

// openTopology returns the in-lists to sample from.
func openTopology(ctx context.Context, kind string,
	opt SampleOptions) (topology.Reader, func() error, error) {
	weighs := slices.Contains(opt.Strategy, weighted)
	if opt.Store == "" {
		g := sampletest.RMAT(opt.Scale, opt.Edges, opt.Seed)
		if weighs {
			g.Weigh(opt.Seed)
		}
		return g, g.Close, ctx.Err()
	}
	store, err := layout.OpenLive(ctx, vfs.Default, opt.Store)
	if err != nil {
		return nil, nil, err
	}
	t := topology.Options{Resident: kind != "paged", CacheBytes: opt.CacheBytes,
		Weights: weighs, Budget: opt.Budget, NeighborsRaw: opt.RawNeighbors}
	if kind != "resident" && kind != "paged" {
		t.Form = topology.Form(kind)
	}
	if opt.NeighborBytes > 0 && kind == "paged" {
		t.NeighborBytes = opt.NeighborBytes
		t.CacheBytes = max(opt.CacheBytes-opt.NeighborBytes, 1)
	}
	topo, err := topology.Open(ctx, store, opt.Device, layout.In, t)
	if err != nil {
		return nil, nil, err
	}
	return topo, topo.Close, nil
}

// seedsOf draws nodes that have neighbors: one a batch place, or fewer if the graph is small.
func seedsOf(ctx context.Context, topo topology.Reader,
	opt SampleOptions) ([]sample.NodeID, error) {
	most := 0
	for _, t := range opt.Threads {
		most = max(most, t*(opt.Batches+warmUp)*opt.Batch)
	}
	nodes := topo.Nodes()
	perm := rng.NewPermutation(nodes, rng.Key(opt.Seed, nodes))
	s := topo.NewSession()
	defer s.Release()
	const chunk = 1 << 14
	ids, deg := make([]sample.NodeID, 0, chunk), make([]uint32, chunk)
	var seeds []sample.NodeID
	for first := uint64(0); first < nodes && len(seeds) < most; first += chunk {
		ids = ids[:0]
		for i := first; i < min(first+chunk, nodes); i++ {
			ids = append(ids, sample.NodeID(perm.At(i)))
		}
		if err := s.Degrees(ctx, ids, deg); err != nil {
			return nil, err
		}
		for i, v := range ids {
			if deg[i] > 0 {
				seeds = append(seeds, v)
			}
		}
	}
	return seeds, nil
}

// warmUp is how many batches each goroutine samples before the time is taken.
const warmUp = 3

// sampled counts what one goroutine drew.
type sampled struct {
	nodes, edges uint64
	err          error
}

// sampleRow measures one number of goroutines.
func sampleRow(ctx context.Context, topo topology.Reader, c sample.Config, seeds []sample.NodeID,
	threads int, opt SampleOptions) (Row, error) {
	order, err := sample.EpochOrder(seeds, opt.Seed, 0, opt.Batch)
	if err != nil {
		return nil, err
	}
	counts := make([]sampled, threads)
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for w := range threads {
		ready.Add(1)
		done.Go(func() {
			counts[w] = sampling{c, order, opt, &ready, begin}.batches(ctx, topo, uint64(w))
		})
	}
	ready.Wait()
	before, begun := topo.Stats(), time.Now()
	close(begin)
	done.Wait()
	seconds, after := time.Since(begun).Seconds(), topo.Stats()
	var all sampled
	for _, c := range counts {
		all.nodes, all.edges = all.nodes+c.nodes, all.edges+c.edges
		all.err = errors.Join(all.err, c.err)
	}
	batches := float64(threads * opt.Batches)
	blocks := after.Hits + after.Misses - before.Hits - before.Misses
	row := Row{
		"threads": threads, "fanout": sample.FormatFanout(opt.Fanout),
		"edges_per_s_per_core": float64(all.edges) / seconds / float64(threads),
		"nodes_per_batch":      float64(all.nodes) / batches,
		"edges_per_batch":      float64(all.edges) / batches,
		"blocks_per_batch":     float64(blocks) / batches,
		"reads_per_batch":      float64(after.BlocksRead-before.BlocksRead) / batches,
		"seconds":              seconds,
	}
	n := after.Neighbors
	if asked := n.Requests - before.Neighbors.Requests; asked > 0 {
		row["neighbor_hit_ratio"] = float64(n.Hits-before.Neighbors.Hits) / float64(asked)
		row["neighbors_cached"], row["compression"] = n.Entries, n.Ratio()
	}
	return row, all.err
}

// sampling is what the goroutines of a measurement share: each says that it is ready after some
// batches, and waits for begin.
type sampling struct {
	config sample.Config
	order  *sample.Order
	opt    SampleOptions
	ready  *sync.WaitGroup
	begin  chan struct{}
}

// batches samples the batches of a worker.
func (m sampling) batches(ctx context.Context, topo topology.Reader, worker uint64) (c sampled) {
	opt, order := &m.opt, m.order
	s, err := sample.NewSampler([]topology.Reader{topo}, m.config)
	if err != nil {
		m.ready.Done()
		return sampled{err: err}
	}
	defer s.Close()
	var d sample.Dense
	var seeds []sample.NodeID
	for i := range opt.Batches + warmUp {
		if i == warmUp {
			m.ready.Done()
			<-m.begin
			c = sampled{err: c.err}
		}
		if c.err != nil {
			continue // the others wait for ready
		}
		batch := worker*uint64(opt.Batches+warmUp) + uint64(i)
		seeds = order.Seeds(batch%order.Batches(), seeds[:0])
		c.err = s.Sample(ctx, 0, batch, seeds, &d)
		c.nodes, c.edges = c.nodes+uint64(len(d.NodeIDs)), c.edges+uint64(len(d.Nbrs))
	}
	return c
}
