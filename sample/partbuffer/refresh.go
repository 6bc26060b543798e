package partbuffer

import (
	"context"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/listfile"
	"gdb/sample"
)

// nodeBits is a bit for each node.
type nodeBits []uint64

func (s nodeBits) has(v sample.NodeID) bool { return s[v>>6]>>(v&63)&1 != 0 }

func (s nodeBits) add(v sample.NodeID) { s[v>>6] |= 1 << (v & 63) }

// ChooseRefreshed makes Macro.Refresh the nodes whose hidden states batches read while they are not
// in memory: those within some steps of training nodes that are in a list of another partition, but
// hubs. scan reads all lists, as often as there are steps. It takes three bits a node meanwhile.
func (c *Config) ChooseRefreshed(ctx context.Context, budget *mem.Budget, steps int,
	scan func(context.Context, func(sample.NodeID, bool, *listfile.Lists) error) error) error {
	words := c.Deal.Nodes()/64 + 1
	held := 3 * 8 * int64(words)
	if err := budget.Reserve("nodes that others read", held); err != nil {
		return fmt.Errorf("sample: %w", err)
	}
	defer budget.Release(held)
	near, needed := make(nodeBits, words), make(nodeBits, words)
	for _, v := range c.Train {
		near.add(v)
	}
	for range steps {
		reached := slices.Clone(near)
		err := scan(ctx, func(first sample.NodeID, _ bool, l *listfile.Lists) error {
			for i := range len(l.Off) - 1 {
				if v := first + sample.NodeID(i); near.has(v) {
					c.needs(v, l.Nbrs[l.Off[i]:l.Off[i+1]], reached, needed)
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("sample: find the nodes that other partitions read: %w", err)
		}
		near = reached
	}
	for _, v := range c.Macro.Hubs {
		needed[v>>6] &^= 1 << (v & 63)
	}
	for v := range sample.NodeID(c.Deal.Nodes()) {
		if needed.has(v) {
			c.Macro.Refresh = append(c.Macro.Refresh, v)
		}
	}
	return nil
}

// The first epochs, refreshAll of them, compute the states of all nodes of Macro.Refresh: weights
// change fast there. Later ones compute a part each, so that a state is refreshEvery epochs old at
// most.
const (
	refreshAll   = 2
	refreshEvery = 4
)

// refreshed returns the nodes whose states an epoch computes for others, ascending.
func (c *Config) refreshed(epoch uint64) (some []sample.NodeID) {
	switch {
	case c.Macro == nil:
		return nil
	case epoch < refreshAll:
		return c.Macro.Refresh
	}
	for _, v := range c.Macro.Refresh {
		if part := uint64(v * 0x9e3779b9 >> 16); part%refreshEvery == epoch%refreshEvery {
			some = append(some, v)
		}
	}
	return some
}

// needs notes the neighbors of a node.
func (c *Config) needs(v sample.NodeID, neighbors []sample.NodeID, reached, needed nodeBits) {
	part := c.Deal.Part(v)
	for _, u := range neighbors {
		reached.add(u)
		if c.Deal.Part(u) != part {
			needed.add(u)
		}
	}
}
