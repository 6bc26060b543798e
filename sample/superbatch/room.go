package superbatch

import (
	"gdb/internal/mem"
	"gdb/sample/superbatch/changeset"
)

// slotsFor returns how many slots have memory beside the batches of s: all of them, unless some of
// its batches are larger than was planned for.
func (c *Config) slotsFor(s *superbatch, dim int) int {
	p := c.Planned
	if p.Nodes == 0 || p.Inner == 0 {
		return c.Slots
	}
	nodes, edges := max(0, int64(s.nodesMost)-p.Nodes), max(0, int64(s.edgesMost)-p.Edges)
	inner := max(0, int64(s.innerMost)-p.Inner)
	row, frames, rows := 4*int64(dim), int64(c.frames()), int64(c.Ready+1)*nodes
	if c.InPlace {
		rows = changeset.FramesInPlace * inner
	}
	// The records are read ahead, and lists grow by a quarter.
	lists := frames*(12*edges+28*nodes) + 8*nodes
	need := rows*row + mem.HeapCost(lists*5/4) + 2*(9*nodes+4*edges) + p.StepBytes*inner/p.Inner
	return int(max(0, int64(c.Slots)-(need+row-1)/row))
}

// giveSlots gives back, for good, the memory of all slots but the first ones, in whole pages.
func (l *Loader) giveSlots(slots int) error {
	if slots >= l.have {
		return nil
	}
	end := l.have
	if l.trimmed {
		end = min(end, l.cfg.SlotsKept)
	}
	l.have = slots
	return l.arena.Discard(4*slots*l.dim, 4*end*l.dim)
}
