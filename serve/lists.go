package serve

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/serve/protocol"
	"gdb/train/plan"
)

// listShare and blockShare split the memory of a store that has only neighbor lists: the lists are
// held in memory if they take at most one listShare-th of it; otherwise they are read through a
// cache that takes one blockShare-th of it.
const listShare, blockShare = 2, 4

// openLists opens the graph of a store whose nodes have neither features nor labels. Only the lists
// need memory then, so nothing is measured.
func (s *Server) openLists(ctx context.Context, src *loader.Source, o *protocol.Open,
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
	c.Seeds, c.Batch, c.Fanout, c.Seed = seeds, o.Batch, o.Fanout, o.Seed
	return loader.New(src, c), nil
}
