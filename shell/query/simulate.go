package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/rowcache"
	"gdb/shell/exec"
	"gdb/shell/lang"
	"gdb/shell/words"
	"gdb/train/setting"
)

// The settings of SIMULATE CACHE without clauses. The fanout and the batch size are the defaults of
// gdb train.
var (
	simulatedFanout = []int{10, 10, 10}
	simulatedSizes  = []lang.CacheSize{{Percent: 5}, {Percent: 10}, {Percent: 20}, {Percent: 40}}
)

const simulatedBatch = 1000

// simulation runs SIMULATE CACHE: it knows what is replayed, and through which caches.
type simulation struct {
	x *exec.Execution
	setting.Node
	split    string // the name of the stored set
	epochs   int
	batches  int // bounds the batches of an epoch; 0 for all
	policies []string
	sizes    []int64
	rowsMax  int // the rows of the largest cache
	features kv.RowsMeta

	seeds         *exec.Find
	sample, trial *exec.Operator // trial is nil unless a policy needs it
	scan          exec.Scan      // for the policy that holds the nodes of most edges

	record cachesim.Record
	done   int64 // counts work in batches that were replayed
	total  int64
}

// newSimulation reads the clauses, and the settings of the run that they name.
func newSimulation(x *exec.Execution) (*simulation, error) {
	m := x.Graph.Meta()
	if len(m.Features) == 0 {
		return nil, errors.New("this store holds no features to cache: ingest with features " +
			"(--features FILE or --feature-cols)")
	}
	s := &simulation{x: x, features: m.Features[0], epochs: int(x.IntOr("EPOCHS", 1)),
		batches: int(x.IntOr("BATCHES", 0)), policies: x.Args["POLICIES"].Words}
	s.Fanout, s.Batch, s.Seed = simulatedFanout, simulatedBatch, x.Seed()
	if x.Has("RUN") {
		run, err := x.Graph.ReadRun(x.Args["RUN"].Text)
		if err != nil {
			return nil, err
		}
		s.Node = run.Config
	}
	if x.Has("SEED") {
		s.Seed = x.Seed()
	}
	if x.Has("FANOUT") {
		s.Sampler, s.Fanout, s.LayerSize = "", x.Args["FANOUT"].List, nil
	}
	s.Batch = int(x.IntOr("BATCH", int64(s.Batch)))
	s.split = m.SplitName("train", s.Split)
	if x.Has("SPLIT") {
		s.split = x.Args["SPLIT"].Text
	}
	if len(s.policies) == 0 {
		s.policies = cachesim.PolicyNames()
	}
	s.setSizes()
	return s, nil
}

// setSizes converts the sizes to bytes.
func (s *simulation) setSizes() {
	wanted := s.x.Args["SIZES"].Sizes
	if len(wanted) == 0 {
		wanted = simulatedSizes
	}
	nodes := s.x.Graph.Meta().Nodes
	whole := float64(nodes) * float64(s.features.Dim) * 4
	for _, w := range wanted {
		bytes := w.Bytes
		if w.Percent > 0 {
			bytes = max(1, int64(whole*w.Percent/100))
		}
		s.sizes = append(s.sizes, bytes)
		s.rowsMax = max(s.rowsMax, rowcache.RowsIn(bytes, s.features.Dim, 0))
	}
	s.rowsMax = int(min(uint64(s.rowsMax), nodes))
}

func planSimulate(x *exec.Execution) (*exec.Plan, error) {
	s, err := newSimulation(x)
	if err != nil {
		return nil, err
	}
	if s.seeds, err = x.Find("seeds", lang.NodeSet{Split: s.split}); err != nil {
		return nil, err
	}
	batches := float64((int(s.seeds.Rows) + s.Batch - 1) / s.Batch)
	if s.batches > 0 {
		batches = min(batches, float64(s.batches))
	}
	nodes, blocks := x.Estimates().Batch(min(float64(s.Batch), s.seeds.Rows), s.Fanout, s.LayerSize)
	n := float64(s.epochs) * batches
	s.sample = x.Operator("sample", s.drawn(), n*nodes, n*blocks, s.seeds.Operator)
	inputs := []*exec.Operator{s.sample}
	if slices.Contains(s.policies, cachesim.StaticSampled) {
		s.trial = x.Operator("trial", fmt.Sprintf("epoch %d, to see which nodes %s "+
			"would hold", s.epochs+1, cachesim.StaticSampled), float64(s.rowsMax), batches*blocks)
		inputs = append(inputs, s.trial)
	}
	if slices.Contains(s.policies, cachesim.StaticDegree) {
		s.scan = x.Scan([]layout.Direction{layout.In}, -1)
		s.scan.Rows = float64(s.rowsMax)
		inputs = append(inputs, s.scan.Operator)
	}
	return &exec.Plan{Run: s.run, Root: x.Operator("replay", fmt.Sprintf("%s with %d sizes",
		strings.Join(s.policies, ", "), len(s.sizes)), float64(len(s.policies)*len(s.sizes)), 0,
		inputs...)}, nil
}

// drawn says what is sampled.
func (s *simulation) drawn() string {
	epochs := fmt.Sprintf("epochs 1 to %d, ", s.epochs)
	if s.epochs == 1 {
		epochs = "epoch 1, "
	}
	return epochs + fmt.Sprintf("batches of %d, %s, seed %d", s.Batch, s.Sampling(), s.Seed)
}

// run samples epochs as a training does, and replays the feature rows that their batches ask for
// through caches that hold no rows. It reserves 4 bytes for each row that is asked for, 4 bytes for
// each node of the graph, and up to 20 bytes for each row of the largest cache.
func (s *simulation) run(ctx context.Context) (err error) {
	s.record.Budget = s.x.Graph.Budget
	defer func() { err = errors.Join(err, s.record.Close()) }()
	seeds, err := s.seeds.Nodes(ctx)
	if err != nil {
		return err
	}
	if seeds, err = s.x.Graph.Labeled(ctx, seeds); err != nil {
		return err
	}
	sampler, err := s.sampler(ctx)
	if err != nil {
		return err
	}
	defer sampler.Close()
	s.expect(len(seeds))
	for epoch := range s.epochs {
		if err := s.epoch(ctx, s.sample, sampler, seeds, epoch, s.record.Add); err != nil {
			return fmt.Errorf("%w; BATCHES n replays the first n of each epoch", err)
		}
	}
	policies, err := s.make(ctx, sampler, seeds)
	if err != nil {
		return err
	}
	results, err := s.replay(ctx, policies)
	if err != nil {
		return err
	}
	s.show(results)
	return nil
}

// sampler opens the lists that training samples from.
func (s *simulation) sampler(ctx context.Context) (*sample.Sampler, error) {
	t, err := s.x.Graph.Topology(ctx, layout.In)
	if err != nil {
		return nil, err
	}
	return sample.NewSampler([]topology.Reader{t},
		sample.Config{Fanout: s.Fanout, LayerSize: s.LayerSize, Seed: s.Seed,
			Budget: s.x.Graph.Budget})
}

// errEnough ends an epoch after the number of batches that was asked for.
var errEnough = errors.New("enough batches")

// epoch samples one epoch as an operator, and calls fn with the nodes of each batch.
func (s *simulation) epoch(ctx context.Context, op *exec.Operator, sampler *sample.Sampler,
	seeds []sample.NodeID, epoch int, fn func([]sample.NodeID) error) error {
	order, err := sample.EpochOrder(seeds, s.Seed, uint64(epoch), s.Batch)
	if err != nil {
		return err
	}
	n := 0
	err = op.Run(ctx, func(ctx context.Context) error {
		return cachesim.Sampled(ctx, sampler, order, func(nodes []sample.NodeID) error {
			if op == s.sample {
				op.Emit(len(nodes), 0)
			}
			s.advance(sampledWork)
			if err := fn(nodes); err != nil {
				return err
			}
			if n++; n == s.batches {
				return errEnough
			}
			return ctx.Err()
		})
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// sampledWork is the work of sampling a batch, in units of the work of replaying it.
const sampledWork = 16

// expect sets how much work is to be done.
func (s *simulation) expect(seeds int) {
	perEpoch := (seeds + s.Batch - 1) / s.Batch
	if s.batches > 0 {
		perEpoch = min(perEpoch, s.batches)
	}
	sampled := s.epochs
	if slices.Contains(s.policies, cachesim.StaticSampled) {
		sampled++
	}
	s.total = int64(perEpoch * (sampled*sampledWork + s.epochs*len(s.online())*len(s.sizes)))
}

// online returns the policies except the bound.
func (s *simulation) online() []string {
	return slices.DeleteFunc(slices.Clone(s.policies),
		func(name string) bool { return name == cachesim.Belady.Name })
}

// advance reports that more work is done.
func (s *simulation) advance(work int64) {
	if s.done += work; s.x.Progress != nil {
		s.x.Progress(min(s.done, s.total), s.total)
	}
}

// hotBytes is the memory that finding and listing one hot node takes.
const hotBytes = 12

// make returns the policies except the bound.
func (s *simulation) make(ctx context.Context, sampler *sample.Sampler,
	seeds []sample.NodeID) (policies []cachesim.Policy, err error) {
	for _, name := range s.online() {
		p, err := cachesim.ByName(name, func() ([]sample.NodeID, error) {
			return s.hot(ctx, name, sampler, seeds)
		})
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", name, err)
		}
		policies = append(policies, p)
	}
	return policies, nil
}

// hot returns the nodes that a static policy holds.
func (s *simulation) hot(ctx context.Context, policy string, sampler *sample.Sampler,
	seeds []sample.NodeID) (hot []sample.NodeID, err error) {
	g := s.x.Graph
	if err := s.x.Hold("nodes of a static cache", hotBytes*int64(s.rowsMax)); err != nil {
		return nil, err
	}
	if policy == cachesim.StaticDegree {
		err = s.scan.Run(ctx, func(ctx context.Context) error {
			hot, err = rowcache.FindHot(ctx, g.Store, g.Dev, s.rowsMax, g.Budget)
			return err
		})
		s.scan.Emit(len(hot), 0)
		return hot, err
	}
	hot, err = rowcache.HotByTrial(ctx, func(fn func([]sample.NodeID) error) error {
		return s.epoch(ctx, s.trial, sampler, seeds, s.epochs, fn)
	}, g.Meta().Nodes, s.rowsMax, g.Budget)
	s.trial.Emit(len(hot), 0)
	return hot, err
}

// replay runs the policies, and the bound last.
func (s *simulation) replay(ctx context.Context, policies []cachesim.Policy) ([]cachesim.Result,
	error) {
	var sizes []cachesim.Capacity
	for _, bytes := range s.sizes {
		sizes = append(sizes, cachesim.Capacity{Bytes: bytes, Dim: s.features.Dim})
	}
	trace := s.record.Trace(s.x.Graph.Meta().Nodes)
	each := trace.Each
	trace.Each = func(fn func([]sample.NodeID) error) error {
		return each(func(nodes []sample.NodeID) error {
			s.advance(1)
			return fn(nodes)
		})
	}
	return cachesim.Run(ctx, trace, append(policies, cachesim.Belady), sizes, s.x.Graph.Budget)
}

// show writes a row for each policy and size. A column says by which factor the policy reads more
// than the bound.
func (s *simulation) show(results []cachesim.Result) {
	s.x.Header("policy", "size", "rows", "requests", "hits", "hit ratio", "bytes read",
		"times belady")
	s.x.Note("belady is the least that a cache of that size can read: it knows the batches to come")
	bounds := results[len(results)-len(s.sizes):]
	for _, name := range s.policies {
		for i, r := range results {
			if r.Policy != name {
				continue
			}
			least := bounds[i%len(s.sizes)].RowsRead() // never 0, because a cache begins empty
			s.x.Row(r.Policy, words.Size(r.Capacity.Bytes), words.Count(r.Rows),
				words.Count(r.Requests), words.Count(r.Hits), words.Ratio(r.HitRatio()),
				words.Size(r.RowsRead()*uint64(s.features.RowBytes)),
				float64(r.RowsRead())/float64(least))
		}
	}
}
