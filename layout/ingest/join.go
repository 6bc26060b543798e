package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
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
	lists, err := p.listsOf(p.firsts, m.nodes, layout.In)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	width, both := 2+p.codec.Payload(), p.addsReverse()
	var out [extsort.WordsMax]uint64
	runs, err := p.resort(ctx, "number destinations", from, width,
		p.Sorter("whole", width-1, p.Memory.Sort),
		func(rec []uint64, emit func(...uint64)) error {
			dst, err := c.node(rec[0])
			src := rec[1]
			if err != nil {
				return err
			}
			copy(out[1:], rec[2:])
			if out[0], err = pairOf(lists, dst, src, p.codec.TypeOf(rec[2:])); err != nil {
				return err
			}
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

// node returns the node of a key that must be there.
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

// idRowsChunk is a run of rows that carry something for a node: labels, split members, features.
type idRowsChunk struct {
	ids   *source.IDChunk // nil: rows are node numbers from first on
	first uint64
	n     int
	where *source.Where
	// value is what row i carries; false if it carries nothing.
	value func(i int) (uint32, bool, error)
}

// rowStream streams rows, from the start at each call.
type rowStream func(ctx context.Context, fn func(c *idRowsChunk) error) error

// attachment is a row with its node.
type attachment struct {
	node  uint32
	value uint32
	seq   uint64 // place in the stream
}

// attacher finds the nodes of the rows of a stream. In modes that join it sorts the rows by key and
// joins them with the dictionary, comparing texts, so that an unknown id of equal hash is found.
type attacher struct {
	p      *pipeline
	m      *nodeMap
	name   string // of temporary files
	what   string // of the rows, for messages: "label"
	stream rowStream
}

// each calls fn for every row that carries something; in order of the stream in direct modes, in
// any order in modes that join.
func (a *attacher) each(ctx context.Context, fn func(at attachment) error) error {
	if a.m.mode.joinsRows() && !a.p.info.Ranged {
		return a.eachJoined(ctx, fn)
	}
	return a.rows(ctx, func(c *idRowsChunk, i int, value uint32, seq uint64) error {
		node, err := a.direct(c, i)
		if err != nil {
			return err
		}
		return fn(attachment{node, value, seq})
	})
}

// rows calls fn with every row that carries something, what it carries, and its place in the
// stream.
func (a *attacher) rows(ctx context.Context, fn func(c *idRowsChunk, i int, value uint32,
	seq uint64) error) error {
	seq := uint64(0)
	return a.stream(ctx, func(c *idRowsChunk) error {
		for i := range c.n {
			value, ok, err := c.value(i)
			if err == nil && ok {
				err = fn(c, i, value, seq)
			}
			if err != nil {
				return err
			}
			seq++
		}
		return ctx.Err()
	})
}

// direct finds the node of a row in memory.
func (a *attacher) direct(c *idRowsChunk, i int) (uint32, error) {
	switch { // rows of a table of nodes
	case a.p.info.Ranged && c.ids != nil:
		return uint32(c.ids.Ints[i]), nil
	case a.p.info.Ranged:
		return uint32(c.first + uint64(i)), nil
	}
	if c.ids == nil {
		if a.m.mode != idRows {
			return 0, a.errNumbered(c)
		}
		if node, ok := a.m.node(c.first + uint64(i)); ok {
			return node, nil
		}
		return 0, a.errUnknown(c, i)
	}
	id, ok := uint64(0), true
	if c.ids.Ints != nil {
		id = c.ids.Ints[i]
	} else {
		id, ok = input.ParseID(c.ids.Text[i])
	}
	if ok {
		if node, ok := a.m.node(id); ok {
			return node, nil
		}
	}
	return 0, a.errUnknown(c, i)
}

func (a *attacher) errNumbered(c *idRowsChunk) error {
	return input.Usage("%s: the %ss have no ids, but the edges' ids are not row numbers: "+
		"give a column of ids", c.where.File, a.what)
}

func (a *attacher) errUnknown(c *idRowsChunk, i int) error {
	e := &input.Error{Where: c.where.Position(i),
		What: fmt.Sprintf("%s of unknown node %s", a.what, c.id(i)),
		Do:   "every id must be in the edges or the node table"}
	if a.m.mode == idRows {
		e.What = fmt.Sprintf("%s of node %s, but there are %d nodes", a.what, c.id(i), a.m.nodes)
		e.Do = fmt.Sprintf("ids are row numbers, 0 to %d", a.m.nodes-1)
	}
	return e
}

// id returns the id of row i, for messages.
func (c *idRowsChunk) id(i int) string {
	switch {
	case c.ids == nil:
		return strconv.FormatUint(c.first+uint64(i), 10)
	case c.ids.Ints != nil:
		return strconv.FormatUint(c.ids.Ints[i], 10)
	}
	return strconv.Quote(string(c.ids.Text[i]))
}

// eachJoined sorts the rows by key and joins them.
func (a *attacher) eachJoined(ctx context.Context, fn func(at attachment) error) error {
	runs, err := a.sortByKey(ctx)
	if err != nil {
		return err
	}
	c, err := newKeyCursor(ctx, a.m)
	if err != nil {
		return err
	}
	unknown, any := uint64(0), false
	err = steps.EachEntry(ctx, a.p.Sorter(a.name+"-ids", 0, a.p.Memory.Merge), runs,
		func(e extsort.Entry) error {
			if err := c.seek(e.Key); err != nil {
				return err
			}
			text := e.Text[:len(e.Text)-4]
			if !c.ok || c.head.Key != e.Key || !bytes.Equal(text, c.head.Text) {
				if !any || e.Aux < unknown {
					unknown, any = e.Aux, true
				}
				return nil
			}
			value := binary.LittleEndian.Uint32(e.Text[len(text):])
			return fn(attachment{uint32(c.head.Aux), value, e.Aux})
		})
	if err = errors.Join(err, c.close()); err != nil {
		return err
	}
	opt := a.p.Sorter(a.name, 0, 0)
	for _, r := range runs {
		if err := opt.Remove(r); err != nil {
			return err
		}
	}
	if any {
		return a.at(ctx, unknown, a.errUnknown)
	}
	return nil
}

// sortByKey sorts (key, text and value, place in the stream).
func (a *attacher) sortByKey(ctx context.Context) ([]extsort.Run, error) {
	var text []byte
	to := a.p.Sorter(a.name+"-ids", 0, a.p.Memory.Strings)
	return extsort.SortEntries(to, func(s *extsort.Strings) error {
		return a.rows(ctx, func(c *idRowsChunk, i int, value uint32, seq uint64) error {
			if c.ids == nil {
				return a.errNumbered(c)
			}
			var key uint64
			var ok bool
			if key, text, ok = a.key(c.ids, i, text[:0]); !ok {
				return a.errUnknown(c, i)
			}
			text = binary.LittleEndian.AppendUint32(text, value)
			return s.Add(extsort.Entry{Key: key, Text: text, Aux: seq})
		})
	})
}

// key returns the key of an id in modes that join, and the text that the dictionary has beside it,
// appended to buf.
func (a *attacher) key(c *source.IDChunk, i int, buf []byte) (uint64, []byte, bool) {
	if a.m.mode == idWide {
		if c.Ints != nil {
			return c.Ints[i], buf, true
		}
		id, ok := input.ParseID(c.Text[i])
		return id, buf, ok
	}
	if c.Ints != nil {
		buf = strconv.AppendUint(buf, c.Ints[i], 10)
	} else {
		buf = append(buf, c.Text[i]...)
	}
	return a.p.hash(a.m.seed, buf), buf, true
}

// at streams again up to a row, and makes an error of it.
func (a *attacher) at(ctx context.Context, seq uint64, fn func(c *idRowsChunk, i int) error) error {
	at := uint64(0)
	err := a.stream(ctx, func(c *idRowsChunk) error {
		if seq < at+uint64(c.n) {
			return fn(c, int(seq-at))
		}
		at += uint64(c.n)
		return nil
	})
	if err == nil {
		err = fmt.Errorf("ingest: %s: the source changed while it was read", a.what)
	}
	return err
}

// byNode sorts the rows by node: records (node and value, place).
func (a *attacher) byNode(ctx context.Context) ([]extsort.Run, error) {
	var rec [2]uint64
	to := a.p.Sorter(a.name, 2, a.p.Memory.Sort)
	return extsort.SortWords(to, func(s *extsort.Words) error {
		return a.each(ctx, func(at attachment) error {
			rec[0], rec[1] = uint64(at.node)<<32|uint64(at.value), at.seq
			return s.Add(rec[:])
		})
	})
}

// eachPair calls fn with the rows of runs of byNode in order of node: node and value, and place.
func (p *pipeline) eachPair(ctx context.Context, name string, runs []extsort.Run,
	fn func(node uint64, value uint32, seq uint64) error) error {
	from := p.Sorter(name, 2, p.Memory.Merge)
	return extsort.Merge(ctx, from, runs, func(recs []uint64) error {
		for i := 0; i < len(recs); i += 2 {
			if err := fn(recs[i]>>32, uint32(recs[i]), recs[i+1]); err != nil {
				return err
			}
		}
		return nil
	})
}
