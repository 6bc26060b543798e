package topology

import (
	"context"
	"errors"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/layout"
	"gdb/layout/listfile"
)

// openRecoded opens the lists of a store with levels in the compact form, in which the lists that
// levels have are coded anew as a whole: it reads as fast as from a store that was never appended
// to. The lists of levels are in memory beside while it opens. Where lists that are coded anew take
// more than was counted for them, they stay as they are, and are merged when entries are drawn.
func openRecoded(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options) (t Reader, err error) {
	a, err := loadAdded(ctx, s, dev, dir, opt.Budget)
	if err != nil {
		return nil, err
	}
	c, err := recode(ctx, s, dev, dir, opt, a)
	if err == nil || !errors.Is(err, listfile.ErrHeldFull) {
		if err = errors.Join(err, a.free()); err != nil && c != nil {
			err = errors.Join(err, c.Close())
		}
		return c, err
	}
	base, err := openLists(ctx, s.Base(), dev, dir, opt)
	if err == nil {
		if err = a.place(ctx, base); err != nil {
			err = errors.Join(err, base.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, a.free())
	}
	return &live{Reader: base, added: a, nodes: layout.CountLists(s.Meta(), dir),
		budget: opt.Budget,
		note: "the lists of levels are merged as they are drawn, which is slower: coded as one " +
			"with the others they take more memory than can be foreseen; " + message.Program +
			" compact makes the store one"}, nil
}

// recodedFields are the fields of the lists of base and levels as one.
func recodedFields(s *layout.Store, dir layout.Direction) listfile.Fields {
	f := listfile.FieldsOf(s.Base().Meta(), dir)
	f.Nodes, f.Lists = s.Meta().Nodes, layout.CountLists(s.Meta(), dir)
	return f
}

// recodedShare says how much lists of the base may grow, one part in recodedShare, as entries of
// levels come between theirs, and as blocks are filled less. Another recodedLeast blocks are for
// small stores.
const recodedShare, recodedLeast = 16, 16

// recodedBlocks returns for how many blocks of lists of base and levels as one there is room.
func recodedBlocks(s *layout.Store, dir layout.Direction) int64 {
	base := s.Base()
	blockBytes := int64(max(base.Meta().BlockBytes, listfile.BlockMin))
	n := (FileBytes(base, dir) - codec.HeaderBytes) / blockBytes
	n += n/recodedShare + recodedLeast
	entries := int64(0)
	for _, l := range s.Lists() {
		if !l.Of.Gone {
			entries += int64(l.Meta().Edges)
		}
	}
	const more = 3 // bits that an entry may take beside its id, a part of what its list takes too
	bits := int64(idBits(s.Meta().Nodes)) + more + 8*(entryBytes(s)-listfile.IDBytes-4)
	return n + entries*bits/8/blockBytes
}

// recode codes the lists of base and levels as one.
//
//lint:parameters Open's, and the lists of levels
func recode(ctx context.Context, s *layout.Store, dev blockdev.Device, dir layout.Direction,
	opt Options, a *added) (t Reader, err error) {
	f, err := listfile.Open(ctx, s.Base(), dev, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c := &compact{f: *f, kinds: len(s.Meta().EdgeTypes), budget: opt.Budget}
	c.f.Fields = recodedFields(s, dir)
	c.held, err = listfile.NewHeld(&c.f.Fields, recodedBlocks(s, dir), opt.Budget)
	if err != nil {
		return nil, err
	}
	c.f.Shape = c.held.Shape
	r := &recoding{a: a, f: f, to: c.held.NewFiller()}
	r.seek(0)
	stop := c.held.Populate()
	if err = f.EachRun(ctx, r.run); err == nil && r.read != s.Base().Meta().Edges {
		err = f.Damage(-1, 0, "file has %d edges, the store %d", r.read, s.Base().Meta().Edges)
	}
	if err == nil {
		err = r.finish()
	}
	stop()
	if err == nil {
		err = r.to.Finish()
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.edges = r.edges
	return c, nil
}

// recoding merges the lists of a file with those of levels, in order. A list that levels have is
// open from its node on until the next node, since it may go on in the next block.
type recoding struct {
	a     *added
	f     *listfile.File
	to    *listfile.Filler
	read  uint64 // entries of the base so far
	edges uint64 // entries of all so far

	next layout.NodeID // the first node from the open list on whose list levels change
	more bool          // whether there is one
	open bool          // the list of next is open
	own  uint64        // the next entry of levels of the open list
	asIs bool          // the last block was taken as it is

	lists, union listfile.Lists
}

// seek makes next the first node from v on whose list is not that of the base.
func (r *recoding) seek(v uint64) {
	some := func(e *entries, list uint32) bool {
		return len(e.starts) > 0 && e.starts[list] < e.starts[list+1]
	}
	for ; ; v = uint64(r.next) + 1 {
		if r.next, r.more = r.a.has.Next(v); !r.more {
			return
		}
		if rank, _ := r.a.has.Rank(r.next); some(&r.a.entries, rank) || some(&r.a.gone, rank) {
			return
		}
	}
}

// asIsLeast is how many blocks that no level touches follow each other where they are taken as they
// are, since the block before them stays as it is then, whatever is in it.
const asIsLeast = 16

// run merges consecutive blocks.
func (r *recoding) run(run []listfile.Placed) error {
	for len(run) > 0 {
		n := 0
		for n < len(run) && !r.touched(&run[n]) {
			n++
		}
		if n < asIsLeast {
			n = min(n+1, len(run))
			for i := range run[:n] {
				if err := r.block(&run[i]); err != nil {
					return err
				}
			}
			run = run[n:]
			continue
		}
		for i := range run[:n] {
			k := &run[i].Block
			if err := r.to.Block(k); err != nil {
				return r.failed(k, err)
			}
			r.read += uint64(k.Entries)
			r.edges += uint64(k.Entries)
		}
		r.asIs = true
		run = run[n:]
	}
	return nil
}

// failed returns an error of a block.
func (r *recoding) failed(k *listfile.Block, err error) error {
	if errors.Is(err, listfile.ErrBlock) {
		return r.f.DamageBlock(k.Number(), err)
	}
	return err
}

// touched reports whether levels have the list of a node of a block, or of one before it that was
// not written yet.
func (r *recoding) touched(k *listfile.Placed) bool {
	return r.more && uint64(r.next) < uint64(k.First)+uint64(k.Slots)
}

// block merges the lists of a block.
func (r *recoding) block(k *listfile.Placed) error {
	if err := r.upTo(uint64(k.First)); err != nil {
		return err
	}
	if err := r.f.Shape.Decode(&k.Block, &r.lists); err != nil {
		return r.f.DamageBlock(k.Number(), err)
	}
	r.read += uint64(k.Entries)
	for i := range uint64(k.Slots) {
		v, from, to := layout.NodeID(uint64(k.First)+i), r.lists.Off[i], r.lists.Off[i+1]
		var err error
		switch {
		case i > 0 || !k.Cont:
			err = r.list(v, from, to)
		case r.open:
			err = r.merge(from, to)
		case r.asIs:
			if err = r.to.Begin(v, k.Start); err == nil {
				err = r.add(&r.lists, from, to)
			}
		default:
			err = r.add(&r.lists, from, to)
		}
		if err != nil {
			return err
		}
	}
	r.asIs = false
	return nil
}

// list begins the list of v, of which entries from … to-1 of the block are the first.
func (r *recoding) list(v layout.NodeID, from, to uint64) error {
	if err := r.upTo(uint64(v)); err != nil {
		return err
	}
	if !r.more || r.next != v {
		if from == to {
			return nil
		}
		if err := r.to.Begin(v, 0); err != nil {
			return err
		}
		return r.add(&r.lists, from, to)
	}
	if err := r.begin(); err != nil {
		return err
	}
	return r.merge(from, to)
}

// begin opens the list of next.
func (r *recoding) begin() error {
	rank, _ := r.a.has.Rank(r.next)
	r.open, r.own = true, r.a.starts[rank]
	return r.to.Begin(r.next, 0)
}

// upTo ends the open list, and adds the lists that only levels have, of nodes before v.
func (r *recoding) upTo(v uint64) error {
	for r.more && uint64(r.next) < v {
		if !r.open {
			if err := r.begin(); err != nil {
				return err
			}
		}
		rank, _ := r.a.has.Rank(r.next)
		own := r.ofLevels()
		if err := r.add(&own, r.own, r.a.starts[rank+1]); err != nil {
			return err
		}
		r.open = false
		r.seek(uint64(r.next) + 1)
	}
	return nil
}

// ofLevels returns the entries of levels as lists.
func (r *recoding) ofLevels() listfile.Lists {
	a := r.a
	return listfile.Lists{Nbrs: a.nbrs, Types: a.types, Weights: a.weights, Times: a.times}
}

// merge adds entries from … to-1 of the block to the open list, and those of levels that come
// before the last of them.
func (r *recoding) merge(from, to uint64) error {
	a, l, w := r.a, &r.lists, &r.union
	rank, _ := a.has.Rank(r.next)
	own, end := r.ofLevels(), a.starts[rank+1]
	w.Nbrs, w.Types, w.Weights, w.Times = w.Nbrs[:0], w.Types[:0], w.Weights[:0], w.Times[:0]
	loses := len(a.gone.starts) > 0 && a.gone.starts[rank] < a.gone.starts[rank+1]
	begin := from // of the entries of the base that were not taken yet
	for k := from; k < to; k++ {
		u := l.Nbrs[k]
		if loses && a.isGone(rank, l, k, -1) {
			take(w, l, begin, k)
			begin = k + 1
			continue
		}
		if r.own == end && !loses {
			break
		}
		if first := r.own; first < end && a.nbrs[first] < u {
			for r.own < end && a.nbrs[r.own] < u {
				r.own++
			}
			take(w, l, begin, k)
			take(w, &own, first, r.own)
			begin = k
		}
	}
	take(w, l, begin, to)
	return r.add(w, 0, uint64(len(w.Nbrs)))
}

// add adds entries to the list that was begun.
func (r *recoding) add(l *listfile.Lists, from, to uint64) error {
	r.edges += to - from
	return r.to.Add(l, from, to)
}

// finish adds what is left of levels.
func (r *recoding) finish() error { return r.upTo(1 << 32) }

// recodedBytes returns the memory that compact lists of base and levels as one take once they are
// open, at most.
func recodedBytes(s *layout.Store, dir layout.Direction) int64 {
	f := recodedFields(s, dir)
	return mem.ArenaBytes(listfile.HeldBytes(recodedBlocks(s, dir), &f))
}
