package ingest

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/steps"
)

// edgesResult is a set of runs of edges with node ids, sorted by destination.
type edgesResult struct {
	Edges []extsort.Run
}

// numberedEdges returns the runs of edges whose ids are nodes, or become nodes by their rank.
func (p *pipeline) numberedEdges(ctx context.Context, s *scanResult, m *nodeMap) (
	[]extsort.Run, error) {
	edges := s.Edges
	step := func(name string, do func(context.Context, []extsort.Run, *nodeMap) ([]extsort.Run,
		error)) error {
		r, err := steps.Do(ctx, p.Work, name, func(ctx context.Context, out *edgesResult) error {
			var err error
			out.Edges, err = do(ctx, edges, m)
			return err
		})
		if err == nil {
			edges = r.Edges
		}
		return err
	}
	var err error
	switch {
	case s.Mode.joinsEdges():
		if err = step("join-sources", p.joinSources); err == nil {
			err = step("join-destinations", p.joinDestinations)
		}
	case m.perm != nil && !s.Renumbered:
		err = step("renumber", p.renumber)
	}
	return edges, err
}

// resort merges runs of width words, lets fn turn each record into others, and sorts those.
func (p *pipeline) resort(ctx context.Context, phase string, from []extsort.Run, width int,
	to extsort.Options, fn func(rec []uint64, emit func(...uint64)) error) ([]extsort.Run, error) {
	batch := make([]uint64, 0, scanBatchWords)
	emit := func(rec ...uint64) { batch = append(batch, rec...) }
	done, total := uint64(0), uint64(0)
	for _, r := range from {
		total += r.Records
	}
	runs, err := extsort.SortWords(to, func(s *extsort.Words) error {
		opt := p.Sorter("edges", width, p.Memory.Merge)
		err := extsort.Merge(ctx, opt, from, func(words []uint64) error {
			for i := 0; i < len(words); i += width {
				if err := fn(words[i:i+width], emit); err != nil {
					return err
				}
				if len(batch)+2*to.Width > cap(batch) {
					if err := s.Add(batch); err != nil {
						return err
					}
					batch = batch[:0]
				}
			}
			done += uint64(len(words) / width)
			p.Progress(phase, done, total, "edges")
			return nil
		})
		if err != nil {
			return err
		}
		return s.Add(batch)
	})
	p.DropRuns(from)
	p.KeepRuns(runs)
	return runs, err
}

// joinSources replaces the source's key by its node: (source key, destination key, payload) by
// source key becomes (destination key, source, payload) by destination key.
func (p *pipeline) joinSources(ctx context.Context, from []extsort.Run, m *nodeMap) (
	[]extsort.Run, error) {
	c, err := newKeyCursor(ctx, m)
	if err != nil {
		return nil, err
	}
	width := 2 + p.codec.Payload()
	to := p.Sorter("half", width, p.Memory.Sort)
	to.Key = 1
	var out [extsort.WordsMax]uint64
	runs, err := p.resort(ctx, "number sources", from, width, to,
		func(rec []uint64, emit func(...uint64)) error {
			node, err := c.node(rec[0])
			copy(out[2:], rec[2:])
			out[0], out[1] = rec[1], node
			emit(out[:width]...)
			return err
		})
	return runs, errors.Join(err, c.close())
}

// joinDestinations replaces the destination's key by its node and adds reverse edges.
func (p *pipeline) joinDestinations(ctx context.Context, from []extsort.Run, m *nodeMap) (
	[]extsort.Run, error) {
	c, err := newKeyCursor(ctx, m)
	if err != nil {
		return nil, err
	}
	width, both := 2+p.codec.Payload(), p.addsReverse()
	var out [extsort.WordsMax]uint64
	runs, err := p.resort(ctx, "number destinations", from, width,
		p.Sorter("whole", width-1, p.Memory.Sort),
		func(rec []uint64, emit func(...uint64)) error {
			dst, err := c.node(rec[0])
			src := rec[1]
			copy(out[1:], rec[2:])
			out[0] = dst<<32 | src
			emit(out[:width-1]...)
			if both && (src != dst || !p.opt.Undirected) {
				out[0] = src<<32 | dst
				p.codec.SetReversed(out[:width-1], true)
				emit(out[:width-1]...)
			}
			return err
		})
	return runs, errors.Join(err, c.close())
}

// renumber maps ids to permuted nodes.
func (p *pipeline) renumber(ctx context.Context, from []extsort.Run, m *nodeMap) ([]extsort.Run,
	error) {
	width := 1 + p.codec.Payload()
	var out [extsort.WordsMax]uint64
	return p.resort(ctx, "renumber edges", from, width, p.Sorter("whole", width, p.Memory.Sort),
		func(rec []uint64, emit func(...uint64)) error {
			dst, ok := m.node(rec[0] >> 32)
			src, ok2 := m.node(rec[0] & (1<<32 - 1))
			if !ok || !ok2 {
				return fmt.Errorf("ingest: an edge's id is not in the set of ids: %w",
					extsort.ErrDamaged)
			}
			copy(out[1:], rec[1:])
			out[0] = uint64(dst)<<32 | uint64(src)
			emit(out[:width]...)
			return nil
		})
}

// keyCursor walks the dictionary along ascending keys.
type keyCursor struct {
	ctx     context.Context
	entries *extsort.Entries
	head    extsort.Entry
	ok      bool
}

func newKeyCursor(ctx context.Context, m *nodeMap) (*keyCursor, error) {
	entries, err := m.openDict(ctx)
	if err != nil {
		return nil, err
	}
	c := &keyCursor{ctx: ctx, entries: entries}
	if c.head, c.ok, err = entries.Next(ctx); err != nil {
		return nil, errors.Join(err, entries.Close())
	}
	return c, nil
}

// seek goes to the first entry whose key is not below key.
func (c *keyCursor) seek(key uint64) (err error) {
	for c.ok && c.head.Key < key && err == nil {
		c.head, c.ok, err = c.entries.Next(c.ctx)
	}
	return err
}

// node is the node of a key that must be there.
func (c *keyCursor) node(key uint64) (uint64, error) {
	if c.ok && c.head.Key == key {
		return c.head.Aux, nil
	}
	if err := c.seek(key); err != nil {
		return 0, err
	}
	if !c.ok || c.head.Key != key {
		return 0, fmt.Errorf("ingest: an edge's id is not in the dictionary: %w",
			extsort.ErrDamaged)
	}
	return c.head.Aux, nil
}

func (c *keyCursor) close() error { return c.entries.Close() }
