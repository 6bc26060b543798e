package layout

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
)

// streamChunk is how much a stream reads at a time; it holds two such buffers.
const streamChunk = 4 << 20

type chunk struct {
	off int64
	buf []byte
	err error
}

// stream calls fn with the bytes [from, to) of f in order, in chunks of whole units, and reads the
// next chunk while fn is busy. What is left over after the last whole unit is not read.
func (f *source) stream(ctx context.Context, from, to int64, unit int,
	fn func(off int64, data []byte) error) (err error) {
	size := int64(max(streamChunk/unit, 1)) * int64(unit)
	to -= (to - from) % int64(unit)
	size = min(size, max(to-from, int64(unit)))
	arena, err := mem.NewArena(nil, "read buffers", 2*size)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	free, full := make(chan []byte, 2), make(chan chunk, 2)
	free <- arena.Bytes()[:size]
	free <- arena.Bytes()[size:]
	go func() {
		defer bug.Catch()
		defer close(full)
		for off := from; off < to; off += size {
			var buf []byte
			select {
			case buf = <-free:
			case <-ctx.Done():
				full <- chunk{err: ctx.Err()}
				return
			}
			c := chunk{off: off, buf: buf[:min(size, to-off)]}
			c.err = f.read(ctx, off, c.buf)
			full <- c
			if c.err != nil {
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range full { // the reader ends and closes it
			continue
		}
		err = errors.Join(err, arena.Free())
	}()
	for c := range full {
		if c.err != nil {
			return fmt.Errorf("layout: read %s: %w", f.path, c.err)
		}
		if err := fn(c.off, c.buf); err != nil {
			return err
		}
		free <- c.buf[:size]
	}
	return nil
}

// listFile is an opened topology file.
type listFile struct {
	*source
	topologyFields
	shape  blockShape
	seed   uint32
	blocks int64
}

// openLists opens the lists of a direction and checks header and size.
func (s *Store) openLists(ctx context.Context, dev blockdev.Device,
	dir Direction) (*listFile, error) {
	path, _ := TopologyPaths(dir)
	f, err := s.open(dev, path)
	if err != nil {
		return nil, err
	}
	l := &listFile{source: f, seed: sumSeed(topologyKind(dir), s.meta.UUID)}
	if err := l.begin(ctx, s, dir); err != nil {
		return nil, errors.Join(err, f.file.Close())
	}
	return l, nil
}

func (l *listFile) begin(ctx context.Context, s *Store, dir Direction) error {
	buf, err := mem.NewArena(nil, "header", pageBytes)
	if err != nil {
		return err
	}
	h, err := l.header(ctx, topologyKind(dir), s.meta.UUID, buf.Bytes())
	if err != nil {
		return errors.Join(err, buf.Free())
	}
	l.topologyFields, err = decodeTopologyFields(h.Fields)
	if err != nil {
		return errors.Join(l.damage(0, 0, "header: %v", err), buf.Free())
	}
	if err := buf.Free(); err != nil {
		return err
	}
	if l.nodes != s.meta.Nodes {
		return l.damage(0, 0, "file has %d nodes, the store %d", l.nodes, s.meta.Nodes)
	}
	if l.shape, err = l.topologyFields.shape(); err != nil {
		return l.damage(0, 0, "header: %v", err)
	}
	l.blocks = (l.file.Size() - blockOffset(1, l.blockBytes)) / int64(l.blockBytes)
	for _, m := range s.meta.Files {
		if m.Path == l.path {
			return l.sized(m.Size)
		}
	}
	return l.sized(blockOffset(l.blocks+1, l.blockBytes))
}

// listOrder follows the blocks of a topology file in order, and tells how each goes on.
type listOrder struct {
	next  uint64 // the first node that no block so far holds
	hub   bool   // the last block was one of a hub
	lost  bool   // the last block was damaged: anything may follow
	after uint64 // its end in the list
}

// take checks that k may follow, and returns the empty nodes before it and whether it goes on
// with the hub before it.
func (o *listOrder) take(k *block) (gap uint64, cont bool, err error) {
	cont = o.hub && k.hub && uint64(k.first)+1 == o.next
	switch {
	case o.lost:
		cont = k.hub && k.start > 0
		o.next = uint64(k.first)
	case cont && uint64(k.start) != o.after:
		return 0, cont, fmt.Errorf("%w begins at position %d of node %d's list, want %d",
			errBlock, k.start, k.first, o.after)
	case !cont && uint64(k.first) < o.next:
		return 0, cont, fmt.Errorf("%w begins with node %d, want %d or above", errBlock, k.first,
			o.next)
	case !cont && k.start != 0:
		return 0, cont, fmt.Errorf("%w begins in the middle of node %d's list", errBlock, k.first)
	}
	if !cont {
		gap = uint64(k.first) - o.next
	}
	o.next = uint64(k.first) + uint64(k.slots)
	o.hub, o.after, o.lost = k.hub, uint64(k.start)+uint64(k.entries), false
	return gap, cont, nil
}

// each calls fn with every block in order, verified.
func (l *listFile) each(ctx context.Context, fn func(k *block, gap uint64, cont bool) error) error {
	var order listOrder
	from, unit := blockOffset(1, l.blockBytes), int64(l.blockBytes)
	end := blockOffset(l.blocks+1, l.blockBytes)
	var k block // here, so that not each of them is allocated
	var steps pace.Steps
	return l.stream(ctx, from, end, l.blockBytes, func(off int64, data []byte) error {
		for i := int64(0); i < int64(len(data)); i += unit {
			n, b := (off+i-from)/unit+1, data[i:i+unit:i+unit]
			var gap uint64
			var cont bool
			var err error
			if k, gap, cont, err = l.next(n, b, &order); err != nil {
				return l.damage(n, off+i, "%v", err)
			}
			if err := fn(&k, gap, cont); err != nil {
				return err
			}
			if err := steps.Took(ctx, pace.Block+int(k.entries)); err != nil {
				return err
			}
		}
		return nil
	})
}

// next verifies and parses block n, and checks that it may stand there.
func (l *listFile) next(n int64, b []byte, order *listOrder) (k block, gap uint64, cont bool,
	err error) {
	if err = verifyBlock(l.seed, n, b); err != nil {
		return
	}
	if k, err = parseBlock(&l.shape, b); err != nil {
		return
	}
	if gap, cont, err = order.take(&k); err == nil && order.next > l.nodes {
		err = fmt.Errorf("%w ends with node %d of %d", errBlock, order.next-1, l.nodes)
	}
	if err == nil {
		err = k.checkIDs(l.nodes)
	}
	return
}
