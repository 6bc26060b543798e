package partitions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/partition"
	"gdb/layout/partitioner"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/partbuffer"
	"gdb/train/history"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/setting"
)

const (
	// hubShare is the part of the memory of macro-batches that hubs take by default.
	hubShare = 8
	// hubEntries is how many entries the list of a hub is taken to have when candidates are chosen.
	hubEntries = 8
)

// planMacro plans macro-batches of the partitions that the store has: as many as fit twice in half
// of the free memory, with hubs beside them ("Hanoi", section 4.2.1).
func (b *Nodes) planMacro(ctx context.Context, src *loader.Source, c *setting.Node,
	train []sample.NodeID) (*partbuffer.Config, error) {
	b.hubBytes = setting.HubsNone
	deal, entries, err := storePartitions(src.Meta)
	if err != nil {
		return nil, err
	}
	cfg := &partbuffer.Config{Deal: deal, Train: train, Batch: c.Batch, Seed: c.Seed,
		Threads: plan.CopyThreads(c.Threads), Macro: &partbuffer.Macro{Reuse: c.Reuse,
			Halo: c.Halo(), Summed: c.Precompute},
		Budget: src.Budget}
	b.macro = cfg.Macro
	if src.Rows != nil {
		cfg.Rows = src.Rows
	}
	dim, free := rowDim(src), (src.Budget.Limit()-src.Budget.Used())/2
	fits := func(capacity int) (bool, error) {
		return b.setCapacity(cfg, c.Seed, capacity, entries, dim, free)
	}
	defer func() {
		b.describeMacro(src.Meta)
		b.describeHalo(c, len(train), dim)
	}()
	all, err := fits(deal.Parts())
	if err != nil || all && c.PartitionsInMemory == 0 || c.PartitionsInMemory == deal.Parts() {
		return cfg, err
	}
	if given := c.PartitionsInMemory; given > deal.Parts() {
		return nil, fmt.Errorf("train: %d partitions in memory of %d: give no more than the store "+
			"has", given, deal.Parts())
	} else if given > 0 {
		if _, err := fits(given); err != nil {
			return nil, err
		}
	}
	if err := b.chooseHubs(ctx, src, c, cfg, dim, free); err != nil {
		return nil, err
	}
	if c.Halo() {
		err := cfg.ChooseRefreshed(ctx, src.Budget, model.Of(c).Layers()-1, scan(src))
		if err != nil {
			return nil, err
		}
	}
	return cfg, b.chooseCapacity(c, cfg, dim, free, fits)
}

// chooseCapacity makes sets as large as fit, or as was asked for.
func (b *Nodes) chooseCapacity(c *setting.Node, cfg *partbuffer.Config, dim int,
	free int64, fits func(capacity int) (bool, error)) error {
	parts := cfg.Deal.Parts()
	if c.PartitionsInMemory > 0 {
		_, err := fits(c.PartitionsInMemory)
		return err
	}
	least, err := fits(1)
	if err != nil {
		return err
	}
	if !least {
		return fmt.Errorf("train: --strategy %s has %s for partitions, and two of the %d that "+
			"the store has take %s: give more --memory, or order the store in more parts",
			c.Strategy, mem.FormatSize(free), parts, mem.FormatSize(partbuffer.Bytes(cfg, dim)))
	}
	most, over := 1, parts
	for most+1 < over && err == nil {
		mid := (most + over) / 2
		var fit bool
		if fit, err = fits(mid); fit {
			most = mid
		} else {
			over = mid
		}
	}
	if err == nil {
		_, err = fits(most)
	}
	return err
}

// storePartitions returns the partitions of a store, and how many entries the lists of each have.
func storePartitions(m *kv.Meta) (*partition.Deal, []uint64, error) {
	bounds, entries := []kv.NodeID{0}, []uint64(nil)
	all := m.PartBounds()
	for p := range len(all) - 1 {
		if all[p] < all[p+1] { // others are empty
			bounds = append(bounds, kv.NodeID(all[p+1]))
			entries = append(entries, m.Partitions[p].Edges)
		}
	}
	if len(entries) < 2 {
		return nil, nil, errors.New("train: --strategy macro and pbs read partitions, and the " +
			"store has one: order it (gdb order STORE --out NEW --partitions 256), and train on " +
			"that")
	}
	deal, err := partition.NewDeal(partition.DealSpec{Nodes: m.Nodes, Bounds: bounds})
	return deal, entries, err
}

// setCapacity makes sets of about this number of partitions, and says whether they fit.
func (b *Nodes) setCapacity(cfg *partbuffer.Config, seed uint64, capacity int,
	entries []uint64, dim int, free int64) (bool, error) {
	parts := cfg.Deal.Parts()
	groups := (parts + capacity - 1) / capacity
	capacity = (parts + groups - 1) / groups
	b.spec = partition.OrderSpec{Policy: partition.Dispersed, Parts: parts, Capacity: capacity,
		Logical: groups, Seed: seed, Weights: entries}
	var err error
	if cfg.Order, err = partition.NewOrder(b.spec); err != nil {
		return false, err
	}
	cfg.Macro.SetEntries = cfg.Order.Heaviest()
	return partbuffer.Bytes(cfg, dim) <= free, nil
}

// scan returns what reads all lists in order.
func scan(src *loader.Source) func(context.Context,
	func(kv.NodeID, bool, *listfile.Lists) error) error {
	return func(ctx context.Context, fn func(kv.NodeID, bool, *listfile.Lists) error) error {
		return topology.Scan(ctx, src.Store, src.Device, layout.In, fn)
	}
}

// chooseHubs chooses the nodes that stay in memory.
func (b *Nodes) chooseHubs(ctx context.Context, src *loader.Source, c *setting.Node,
	cfg *partbuffer.Config, dim int, free int64) error {
	if b.hubBytes = c.Hubs; c.Hubs == 0 && cfg.Macro.Halo && cfg.Macro.Summed {
		b.hubBytes = setting.HubsNone // their states take less than their rows
	} else if c.Hubs == 0 {
		if c.PartitionsInMemory > 0 {
			free = min(free, partbuffer.MacroBytes(cfg, dim))
		}
		b.hubBytes = max(1, free/hubShare)
	}
	m, row := src.Meta, 4*int64(dim)+2*12+8
	g := &partitioner.Graph{Nodes: m.Nodes, Entries: m.Edges, Scan: scan(src)}
	most := int(min(b.hubBytes/(row+4*hubEntries), int64(m.Nodes)))
	if most < 1 { // or there are to be none
		return nil
	}
	ranked, err := partitioner.Hubs(ctx, g, partitioner.HubOptions{By: c.HubScore(),
		Train: cfg.Train, Steps: model.Of(c).Layers(), Count: most, Budget: src.Budget})
	if err != nil {
		return fmt.Errorf("train: choose hubs: %w", err)
	}
	left := b.hubBytes
	for _, h := range ranked {
		// Its list is there whole, and twice as far as its neighbors are in memory.
		if left -= row + 3*4*int64(h.Entries); left < 0 {
			break
		}
		cfg.Macro.Hubs = append(cfg.Macro.Hubs, h.Node)
		cfg.Macro.HubEntries += uint64(h.Entries)
	}
	slices.Sort(cfg.Macro.Hubs)
	b.lines = append(b.lines, fmt.Sprintf("%d hubs, by %s, take up to %s", len(b.macro.Hubs),
		c.HubScore(), mem.FormatSize(b.hubBytes)))
	return nil
}

// describeMacro tells of sets, and how many neighbors a node keeps: those in its partition, and as
// many of the others as its set has of the other partitions ("Hanoi", Table 4.3).
func (b *Nodes) describeMacro(m *kv.Meta) {
	c, p := b.spec.Capacity, b.spec.Parts
	if p == 0 || c == p {
		return
	}
	b.lines = append(b.lines, fmt.Sprintf("an epoch has %d macro-batches of %d of %d partitions, "+
		"which the store has (%s)", b.spec.Logical, c, p, m.Partitioner))
	cut := 1 - 1/float64(p) // by chance
	switch {
	case m.EdgeCut != nil:
		cut = *m.EdgeCut
	case m.Partitioner != "random":
		return
	}
	kept := 1 - cut + cut*float64(c-1)/float64(p-1)
	degree := float64(m.Edges) / float64(max(1, m.Nodes))
	b.lines = append(b.lines, fmt.Sprintf("a node keeps about %.1f of %.1f neighbors (%.0f %%), "+
		"and those that are hubs", kept*degree, degree, 100*kept))
}

// describeHalo tells what neighbors outside memory take of an epoch, and what is computed for them.
func (b *Nodes) describeHalo(c *setting.Node, train, dim int) {
	if !c.Halo() || b.spec.Parts == b.spec.Capacity {
		return
	}
	features := b.haloFeatures(c, train, dim)
	if features == "" {
		return
	}
	b.lines = append(b.lines, fmt.Sprintf("neighbors outside memory are drawn too, %s; their "+
		"hidden states are up to %d epochs old", features, history.Most))
	b.lines = append(b.lines, fmt.Sprintf("states of %d nodes are computed for batches of other "+
		"partitions, from the third epoch on a fourth in each", len(b.macro.Refresh)))
}

// haloFeatures tells what is read of the features of neighbors outside memory; "" if that is not
// known.
func (b *Nodes) haloFeatures(c *setting.Node, train, dim int) string {
	if b.macro.Summed {
		return "whose features nothing reads"
	}
	fanout, _ := model.Of(c).Sampled()
	drawn, seeds := 0, int64(train)
	for _, f := range fanout[:len(fanout)-1] {
		if f == sample.All {
			return ""
		}
		seeds *= int64(f)
		drawn += int(seeds)
	}
	return fmt.Sprintf("up to %d an epoch, whose features are read one by one, up to %s", drawn,
		mem.FormatSize(4*int64(dim)*int64(drawn)))
}
