package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/serve/protocol"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/setting"
)

// worldMost bounds the clients of a loader.
const worldMost = 1024

// hopsMost bounds the hops of a fanout.
const hopsMost = 64

// arenasBeside is how many batches are in memory beside the one that each client works on: one,
// which is being filled or waits for the client that asks next. The batch before comes back as soon
// as its client has the next one. More arenas would take memory from the cache; the batches that
// the plan lets wait have memory of their own.
const arenasBeside = 1

// epochsAbout is the number of epochs for which the memory is split. Clients do not say how many
// they take, and most of them take more than the first, in which caches are being filled.
const epochsAbout = 10

// open returns the loader that a client asks for: the loader of another client if that has the same
// settings, and otherwise a new one. The client releases it.
func (s *Server) open(ctx context.Context, o *protocol.Open,
	frame *protocol.Frame) (*feed, error) {
	if err := s.check(o); err != nil {
		return nil, err
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.mu.src != nil && o.Memory != 0 && o.Memory != s.mu.memory {
		return nil, usage(fmt.Errorf("serve: the loaders of a store share memory of %s: give "+
			"the first what all need", mem.FormatSize(s.mu.memory)))
	}
	if s.mu.src != nil && asked(o) != "auto" && asked(o) != s.mu.normalize {
		return nil, usage(fmt.Errorf("serve: the loaders of a store share its features, which are "+
			"scaled as normalize %s, not %s: give the first what all need", s.mu.normalize,
			asked(o)))
	}
	if s.mu.src != nil && s.mu.prepares {
		return nil, usage(errors.New("serve: the first loader has the cache belady, which leaves " +
			"no memory to another: open the store once more for this one"))
	}
	if s.mu.src != nil && o.Cache == setting.CacheBelady {
		return nil, usage(errors.New("serve: a loader with the cache belady is the only one of " +
			"its server, and this one has another: open the store once more for it"))
	}
	name := fmt.Sprint(o.Split, o.Fanout, o.FanoutBy, o.Batch, o.Seed, o.World,
		sha256.Sum256(frame.Data), " ", o.Own)
	if f := s.used(name); f != nil {
		return f, nil
	}
	f, err := s.openNew(ctx, o, frame)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.name, f.users = name, 1
	s.mu.feeds[name] = f
	return f, nil
}

// used returns the open loader of a name and counts one more client of it; nil if there is no such
// loader.
func (s *Server) used(name string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.mu.feeds[name]
	if f != nil {
		f.users++
	}
	return f
}

// release counts one client of a loader less. The last client's release closes the loader and
// frees its memory. A loader that prepares has planned for itself alone: its source is closed too.
func (s *Server) release(f *feed) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	f.users--
	last := f.users == 0
	if last {
		delete(s.mu.feeds, f.name)
	}
	s.mu.Unlock()
	if !last {
		return nil
	}
	err := f.close()
	if f.loader.Prepares() {
		s.settle(func() { s.mu.src, s.mu.settled = nil, settled{} })
		err = errors.Join(err, f.src.Close())
		s.bound(s.opt.Memory)
	}
	return err
}

// check reports settings that make no sense.
func (s *Server) check(o *protocol.Open) error {
	switch {
	case o.Batch < 1:
		return usage(fmt.Errorf("serve: a batch of %d seeds: want at least 1", o.Batch))
	case o.World < 1 || o.World > worldMost || o.Rank < 0 || o.Rank >= o.World:
		return usage(fmt.Errorf("serve: rank %d of %d", o.Rank, o.World))
	case len(o.Fanout) == 0:
		return usage(errors.New("serve: no fanout: give the neighbors to draw at each hop"))
	case len(o.Fanout) > hopsMost:
		return usage(fmt.Errorf("serve: a fanout of %d hops: want at most %d", len(o.Fanout),
			hopsMost))
	case o.Memory < 0:
		return usage(fmt.Errorf("serve: memory of %d bytes", o.Memory))
	case !slices.Contains([]string{"none", "auto", setting.NormalizeRow, setting.NormalizeColumns},
		asked(o)):
		return usage(fmt.Errorf("serve: normalize %q: want auto, none, row or zscore", o.Normalize))
	}
	for _, k := range o.Fanout {
		if k != sample.All && k < 1 {
			return usage(fmt.Errorf("serve: fanout %d: want at least 1, or -1 for all", k))
		}
	}
	if _, err := s.byRelation(o); err != nil {
		return usage(fmt.Errorf("serve: %w", err))
	}
	if o.Cache == "" {
		return nil
	}
	if err := setting.CheckCache(o.Cache); err != nil {
		return usage(fmt.Errorf("serve: %w", err))
	}
	return nil
}

// byRelation returns the fanouts of each hop by number of relation; nil where none are asked for.
func (s *Server) byRelation(o *protocol.Open) ([][]int, error) {
	if len(o.FanoutBy) == 0 {
		return nil, nil
	}
	if len(o.FanoutBy) != len(o.Fanout) {
		return nil, fmt.Errorf("fanouts by relation of %d hops beside a fanout of %d",
			len(o.FanoutBy), len(o.Fanout))
	}
	var by []sample.RelationFanout
	for h, hop := range o.FanoutBy {
		for relation, n := range hop {
			if n != sample.All && n < 0 {
				return nil, fmt.Errorf("fanout %d of %q at hop %d: want at least 0, or -1 for "+
					"all", n, relation, h+1)
			}
		}
		by = append(by, hop)
	}
	return sample.RelationFanouts(by, s.opt.Store.Meta())
}

// asked returns how a client wants features scaled.
func asked(o *protocol.Open) string { return cmp.Or(o.Normalize, "none") }

// settle calls change with mu held, to change what all loaders share.
func (s *Server) settle(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// openNew opens a loader, and first the source of all loaders if there is none yet. The caller
// holds opening.
func (s *Server) openNew(ctx context.Context, o *protocol.Open, frame *protocol.Frame) (f *feed,
	err error) {
	src := s.mu.src
	if src == nil {
		s.bound(cmp.Or(o.Memory, s.opt.Memory))
		s.budget.CollectHeap() // requests that came before are garbage by now
		src = loader.NewSource(s.opt.Store, s.opt.Device, s.budget)
		m := s.opt.Store.Meta()
		src.EdgeTypes, src.EdgeWeights = len(m.EdgeTypes) > 0, m.Weighted
		defer func() {
			if err != nil {
				s.settle(func() { s.mu.src = nil })
				s.bound(s.opt.Memory)
				err = errors.Join(err, src.Close())
			}
		}()
	}
	seeds, held, err := s.seeds(ctx, src, o, frame)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			src.Budget.Release(held)
		}
	}()
	all := (uint64(len(seeds)) + uint64(o.Batch) - 1) / uint64(o.Batch)
	batches := all / uint64(o.World)
	if o.Own != "" {
		batches = (all + uint64(o.World) - 1) / uint64(o.World)
	} else {
		all = batches * uint64(o.World)
	}
	if batches == 0 {
		return nil, usage(fmt.Errorf("serve: %d seeds are fewer batches of %d than there are "+
			"clients (%d): take smaller batches", len(seeds), o.Batch, o.World))
	}
	by, err := s.byRelation(o)
	if err != nil {
		return nil, err
	}
	l, err := s.loader(ctx, src, o, by, seeds)
	if err != nil {
		return nil, err
	}
	ready := s.mu.shape.Ready
	if l.Prepares() {
		ready = 0 // those that are ready have memory of their own, and are copied
	}
	return &feed{loader: l, seeds: seeds, batches: batches, all: all, world: o.World,
		ready: max(1, ready), times: &s.times, held: held,
		stock: newStock(src.Budget, o.World+arenasBeside+ready),
		pack:  newPacker(src), src: src, open: o, byRelation: by}, nil
}

// loader makes a loader of a source, and opens the source if this loader is the first.
func (s *Server) loader(ctx context.Context, src *loader.Source, o *protocol.Open, by [][]int,
	seeds []sample.NodeID) (*loader.Loader, error) {
	switch m := s.opt.Store.Meta(); {
	case s.mu.src == nil && len(m.Features) == 0 && m.Labels == nil:
		return s.openLists(ctx, src, o, by, seeds)
	case s.mu.src == nil:
		return s.plan(ctx, src, o, by, seeds)
	}
	c := s.mu.shape
	c.Seeds, c.Batch, c.Fanout, c.ByRelation, c.Seed = seeds, o.Batch, o.Fanout, by, o.Seed
	return loader.New(src, c), nil
}

// seeds returns the seeds that a client gives, or the nodes of a split, and the bytes that are
// reserved for them in the budget of the source.
func (s *Server) seeds(ctx context.Context, src *loader.Source, o *protocol.Open,
	frame *protocol.Frame) (seeds []sample.NodeID, held int64, err error) {
	if len(frame.Data) == 0 {
		base, column, err := splitOf(o.Split)
		if err != nil {
			return nil, 0, err
		}
		seeds, err := loader.SplitNodes(ctx, s.opt.Store, base, column, src.Budget)
		return seeds, nodeBytes * int64(len(seeds)), err
	}
	if seeds, err = s.seedsOf(frame); err != nil {
		return nil, 0, err
	}
	if held = frame.KeepData(); held == 0 {
		held = int64(len(frame.Data))
		if err := src.Budget.Reserve("seeds of a client", held); err != nil {
			return nil, 0, err
		}
	}
	return seeds, held, nil
}

// nodeBytes is the size of a node's number.
const nodeBytes = 4

// nodesOf returns the nodes in the data of a request. It fails if the store does not have one of
// them.
func (s *Server) nodesOf(f *protocol.Frame) ([]sample.NodeID, error) {
	if len(f.Data)%nodeBytes != 0 {
		return nil, usage(fmt.Errorf("serve: %d bytes of nodes: each takes %d", len(f.Data),
			nodeBytes))
	}
	nodes := mem.View[sample.NodeID](f.Data)
	for _, v := range nodes {
		if n := s.opt.Store.Meta().Nodes; uint64(v) >= n {
			return nil, usage(fmt.Errorf("serve: node %d: the store has nodes 0 to %d", v, n-1))
		}
	}
	return nodes, nil
}

// seedsOf returns the seeds in the data of a request, as nodesOf does. It fails if one of them was
// deleted.
func (s *Server) seedsOf(f *protocol.Frame) ([]sample.NodeID, error) {
	nodes, err := s.nodesOf(f)
	if err != nil || s.deleted == nil {
		return nodes, err
	}
	for _, v := range nodes {
		if s.deleted.Contains(uint32(v)) {
			return nil, usage(fmt.Errorf("serve: node %d was deleted, so it is no seed: leave it "+
				"out", v))
		}
	}
	return nodes, nil
}

// plan splits the memory for the first loader and opens the graph, the features and the labels of
// which batches are made.
func (s *Server) plan(ctx context.Context, src *loader.Source, o *protocol.Open, by [][]int,
	seeds []sample.NodeID) (*loader.Loader, error) {
	normalize, err := scaleFeatures(ctx, src, asked(o))
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	c := probe.Config{Fanout: o.Fanout, ByRelation: by, Seed: o.Seed, Seeds: seeds,
		Profiles: s.opt.Profiles,
		StepName: fmt.Sprint("serve", o.Fanout, o.Batch, s.opt.Threads, o.World)}
	c.Spare = max(0, lookupBytes(s.mu.memory)-s.lookup.Used()) // what is used is counted already
	c.Memory = s.mu.memory - c.Spare
	c.Settings = plan.Settings{Threads: s.opt.Threads, Epochs: epochsAbout, Batch: o.Batch,
		Cache: o.Cache, Topology: "auto", NeighborCache: setting.NeighborAuto,
		Lent: o.World + arenasBeside - 1} // one is the arena that the pipeline fills
	if c.Cache == "" {
		c.Cache = "auto"
	}
	if c.EntryBytes = src.EntryBytes(); c.Cache == setting.CacheBelady {
		c.Epochs = 1 // superbatches are of one epoch: see feed.order
		c.Places = o.Places
		c.EntryBytes += sample.Extras{Places: o.Places}.EntryBytes()
	}
	c.LentNodeBytes, c.LentEntryBytes = lentBytes(src.EdgeTypes, src.EdgeWeights, o.Places)
	l, p, err := probe.Open(ctx, src, "", c)
	if err != nil {
		return nil, err
	}
	s.settle(func() {
		s.mu.src = src
		s.mu.settled = settled{plan: p.String(), normalize: normalize, prepares: l.Prepares(),
			shape: loader.Config{Workers: p.Samplers, PassWorkers: s.opt.Threads,
				Ready: p.Ready, Later: true}}
	})
	return l, nil
}

// scaleFeatures has the features of a source scaled as gdb train scales them, before they are read.
// It returns the way of scaling, with auto resolved.
func scaleFeatures(ctx context.Context, src *loader.Source, normalize string) (string, error) {
	if len(src.Meta.Features) == 0 {
		return "none", nil
	}
	normalize = setting.ResolveNormalize(normalize, src.Meta)
	src.NormalizeRows = normalize == setting.NormalizeRow
	if normalize == "none" || src.NormalizeRows {
		return normalize, nil
	}
	if err := src.OpenRows(ctx); err != nil {
		return "", err
	}
	scale, err := probe.Scale(ctx, src, normalize == "auto")
	if err != nil || scale == nil {
		return "none", err
	}
	src.Rows.ScaleColumns(scale)
	return setting.NormalizeColumns, nil
}

// listShare and blockShare split the memory of a store that has only neighbor lists: the lists are
// held in memory if they take at most one listShare-th of it; otherwise they are read through a
// cache that takes one blockShare-th of it.
const listShare, blockShare = 2, 4

// openLists opens the graph of a store whose nodes have neither features nor labels. Only the lists
// need memory then, so nothing is measured.
func (s *Server) openLists(ctx context.Context, src *loader.Source, o *protocol.Open, by [][]int,
	seeds []sample.NodeID) (*loader.Loader, error) {
	memory := s.mu.memory - lookupBytes(s.mu.memory)
	opt, how := topology.Options{CacheBytes: memory / blockShare}, "read through a cache"
	for _, form := range src.Forms() {
		if form.Bytes <= memory/listShare {
			opt, how = topology.Options{Resident: true, Form: form.Form}, "in memory"
			break
		}
	}
	if err := src.OpenGraph(ctx, opt); err != nil {
		return nil, err
	}
	c := loader.Config{Workers: plan.Samplers(s.opt.Threads), Ready: 1, Later: true}
	s.settle(func() {
		s.mu.src = src
		s.mu.settled = settled{shape: c, normalize: "none", plan: fmt.Sprintf(
			"memory %s: lists are %s, and there are no features", mem.FormatSize(memory), how)}
	})
	c.Seeds, c.Batch, c.Fanout, c.ByRelation, c.Seed = seeds, o.Batch, o.Fanout, by, o.Seed
	return loader.New(src, c), nil
}
