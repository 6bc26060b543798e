// Package partitions plans which partitions of a graph are in memory while nodes are trained on,
// and opens the buffer that batches are drawn from.
package partitions

import (
	"context"
	"errors"
	"fmt"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/partition"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/partbuffer"
	"gdb/train/history"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/setting"
)

// Nodes has some partitions of the graph in memory while nodes are trained on. It plans
// which, and opens the buffer that training goes through. It has the orders Dispersed and
// Sequential of Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", section 5.3, and chooses
// sizes by the rules of section 6.
type Nodes struct {
	*partbuffer.Buffer
	spec  partition.OrderSpec
	bytes int64
	lines []string
	moved partition.Cost // in an epoch

	macro    *partbuffer.Macro // nil for none
	hubBytes int64             // setting.HubsNone for none
}

const (
	// pieceBytes is the size of the rows of a piece: a read of that size is fast on any disk.
	pieceBytes = 64 << 10
	// piecesLeast is the least number of pieces in a partition, so that a partition is a
	// random sample.
	piecesLeast = 256
	// slotBytes is what a node in memory takes besides its features: the places of its
	// row and its list.
	slotBytes = 16
	// entryBytes is what an entry of a list in memory takes, with room for more entries
	// than expected.
	entryBytes = 5
)

// Open chooses what the settings leave open and takes the memory. What is not given as a
// number is chosen within half of the free memory, since batches, steps and evaluations need the
// rest. train lists the training nodes in ascending order. The features of src must be open.
func Open(ctx context.Context, src *loader.Source, c *setting.Node,
	train []sample.NodeID) (*Nodes, error) {
	x := src.Extras
	if x.EdgeTypes || x.EdgeWeights || x.WeightSums {
		return nil, fmt.Errorf("train: %s keeps no types and weights of edges, which this "+
			"model reads: take another --model, or leave --edge-weight out", c.Means())
	}
	if c.Halo() && x.Degrees {
		return nil, fmt.Errorf("train: --strategy pbs does not have the degrees of neighbors "+
			"outside memory, which a %s reads: take --model sage, gat or gatv2", c.Model)
	}
	if c.Halo() && c.Hops() < 2 {
		return nil, errors.New("train: --strategy pbs keeps hidden states, of which one layer " +
			"has none: give two fanouts or more, or take --strategy macro")
	}
	if fanout, _ := model.Of(c).Sampled(); c.Halo() && len(fanout) == 0 {
		return nil, fmt.Errorf("train: --strategy pbs draws neighbors, and --model %s with "+
			"--precompute has sums in place of all: leave one of both out", c.Model)
	}
	if c.Backend == backend.CUDA { // auto may have chosen it
		return nil, fmt.Errorf("train: %s is for --backend cpu", c.Means())
	}
	b := &Nodes{}
	cfg, err := b.plan(ctx, src, c, train)
	if err != nil {
		return nil, err
	}
	b.bytes = partbuffer.Bytes(cfg, rowDim(src))
	if b.Buffer, err = partbuffer.New(*cfg); err != nil {
		return nil, fmt.Errorf("train: %w; give more memory, or a smaller --partitions-in-memory",
			err)
	}
	b.cost(src, cfg)
	return b, nil
}

// plan chooses the partitions in memory, and returns the configuration of their buffer.
func (b *Nodes) plan(ctx context.Context, src *loader.Source, c *setting.Node,
	train []sample.NodeID) (*partbuffer.Config, error) {
	if c.Macro() {
		return b.planMacro(ctx, src, c, train)
	}
	if err := b.choose(src, c, len(train)); err != nil {
		return nil, err
	}
	return b.config(src, c, train)
}

// rowDim returns how many values a feature row in memory has; 0 if the store has no features.
func rowDim(src *loader.Source) int {
	if src.Rows == nil {
		return 0
	}
	return src.Rows.Meta().Dim
}

// choose chooses the numbers of partitions, of partitions in memory, and of logical partitions.
func (b *Nodes) choose(src *loader.Source, c *setting.Node, train int) error {
	m, budget := src.Meta, src.Budget
	lists := topology.FileBytes(src.Store, layout.In)
	f := partition.Facts{Nodes: m.Nodes, RowBytes: 4*int64(rowDim(src)) + slotBytes, Edges: m.Edges,
		EdgeBytes: max(1, lists/max(1, int64(m.Edges))), EdgeMemory: entryBytes,
		Memory:     max(0, (budget.Limit()-budget.Used())/2-4*int64(m.Nodes)),
		BlockBytes: layout.PageBytes, NodeTask: true,
		OneByOne: c.PartitionOrder == setting.OrderSequential, Parts: c.Partitions,
		Capacity: c.PartitionsInMemory, Logical: c.LogicalPartitions}
	chosen, err := partition.ChooseOrder(f)
	if err != nil {
		return err
	}
	b.spec = partition.OrderSpec{Policy: partition.Dispersed, Parts: chosen.Parts,
		Capacity: chosen.Capacity,
		Logical:  chosen.Logical, Seed: c.Seed}
	if f.OneByOne {
		b.spec.Policy, b.spec.Logical = partition.Sequential, chosen.Parts
		b.spec.TrainParts = partition.TrainParts(m.Nodes, chosen.Parts, train)
	}
	b.lines = chosen.Lines
	return nil
}

// Record notes in the settings what was chosen, so that a run that goes on has the same. The
// store has the partitions of macro-batches.
func (b *Nodes) Record(c *setting.Node) {
	c.PartitionsInMemory = b.spec.Capacity
	if c.Macro() {
		c.Hubs = b.hubBytes
		return
	}
	c.Partitions, c.LogicalPartitions = b.spec.Parts, b.spec.Logical
}

// config returns the configuration with which the buffer is opened.
func (b *Nodes) config(src *loader.Source, c *setting.Node,
	train []sample.NodeID) (*partbuffer.Config, error) {
	o, err := partition.NewOrder(b.spec)
	if err != nil {
		return nil, err
	}
	m := src.Meta
	spec := partition.DealSpec{Nodes: m.Nodes, Parts: b.spec.Parts, Seed: c.Seed,
		Piece: max(1, min(pieceBytes/max(1, uint64(4*rowDim(src))),
			m.Nodes/uint64(b.spec.Parts*piecesLeast)))}
	if b.spec.Policy == partition.Sequential {
		spec.First = train
	}
	deal, err := partition.NewDeal(spec)
	if err != nil {
		return nil, err
	}
	cfg := &partbuffer.Config{Deal: deal, Order: o, Train: train, Batch: c.Batch, Seed: c.Seed,
		Edges: m.Edges, Threads: plan.CopyThreads(c.Threads), Budget: src.Budget}
	if src.Rows != nil {
		cfg.Rows = src.Rows
	}
	return cfg, nil
}

// cost computes what the first epoch reads.
func (b *Nodes) cost(src *loader.Source, cfg *partbuffer.Config) {
	row := 4 * int64(rowDim(src))
	e := cfg.Order.Epoch(0)
	lists := float64(topology.FileBytes(src.Store, layout.In)) / float64(src.Meta.Nodes)
	b.moved.Sets = e.Sets()
	for set := range e.Sets() {
		for _, p := range e.Entering(set) {
			b.moved.Loads++
			b.moved.ReadBytes += row * int64(cfg.Deal.Size(p))
		}
		for _, p := range e.Partitions(set) { // lists are read anew for each set
			b.moved.EdgeBytes += int64(lists * float64(cfg.Deal.Size(p)))
		}
	}
}

// Decide chooses how often macro-batches are used where that is left to the plan: as often as
// computing takes no longer than reading the next one, by what was measured.
func (b *Nodes) Decide(c *setting.Node, f *plan.Forecast) error {
	if c.Reuse != setting.ReuseAuto {
		return nil
	}
	if f == nil || f.Device == nil || f.Device.Sequential <= 0 || f.Compute <= 0 {
		return errors.New("train: --reuse auto: nothing was measured before this run: give a " +
			"number")
	}
	reading := float64(b.moved.ReadBytes+b.moved.EdgeBytes) / f.Device.Sequential
	computing := max(f.Compute, f.Sample)
	n := int(min(max(1, reading/computing), setting.ReuseMost))
	b.lines = append(b.lines, fmt.Sprintf("each macro-batch is used %d times: an epoch reads for "+
		"%.2g s, and computes for %.2g s once through", n, reading, computing))
	b.macro.Reuse = n
	if c.Reuse = n; n == 1 {
		c.Reuse = 0
	}
	return nil
}

// Describe adds the buffer to the plan of a training. It removes the forecast, which is for
// exact sampling.
func (b *Nodes) Describe(p *plan.Plan) {
	order := string(b.spec.Policy)
	if b.macro != nil {
		order = setting.StrategyMacro
	}
	if b.macro != nil && b.macro.Halo {
		order = setting.StrategyPBS
	}
	p.Partitions = &plan.Partitions{Bytes: b.bytes, Order: order,
		Parts: b.spec.Parts, InMemory: b.spec.Capacity, Logical: b.spec.Logical,
		Sets: b.moved.Sets, Read: b.moved.ReadBytes, Lists: b.moved.EdgeBytes, Lines: b.lines}
	p.Fixed -= b.bytes
	p.Forecast, p.Rivals = nil, nil
}

// Note says whether batches are approximate; "" without a buffer.
func (b *Nodes) Note() string {
	if b == nil {
		return ""
	}
	if b.spec.Capacity == b.spec.Parts {
		return fmt.Sprintf("all %d partitions of the nodes are in memory: neighbors are drawn "+
			"from the whole graph", b.spec.Parts)
	}
	if b.macro != nil && b.macro.Halo {
		last := ", and those of the last hop are missing"
		if b.macro.Summed {
			last = ""
		}
		return fmt.Sprintf("approximate: neighbors outside memory come with hidden states of "+
			"earlier steps, up to %d epochs old%s; in "+
			"memory are %d of %d partitions of the nodes and %d hubs, %s of features and lists "+
			"with the next ones (--strategy pbs)", history.Most, last, b.spec.Capacity,
			b.spec.Parts, len(b.macro.Hubs), mem.FormatSize(b.bytes))
	}
	if b.macro != nil {
		return fmt.Sprintf("approximate: neighbors are drawn among those in memory, %d of %d "+
			"partitions of the nodes and %d hubs, %s of features and lists with the next ones "+
			"(--strategy macro)", b.spec.Capacity, b.spec.Parts, len(b.macro.Hubs),
			mem.FormatSize(b.bytes))
	}
	return fmt.Sprintf("approximate: neighbors are drawn among those in memory, %d of %d "+
		"partitions of the nodes, %s of features and lists (--order %s)", b.spec.Capacity,
		b.spec.Parts, mem.FormatSize(b.bytes), b.spec.Policy)
}
