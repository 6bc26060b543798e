package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"gdb/internal/files"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/typedchange"
	"gdb/layout/typedlevel"

	"github.com/RoaringBitmap/roaring/v2"
)

// errSplitTimes says that edges in splits cannot be named by their times.
var errSplitTimes = input.Usage("--delete-edges: edges of other splits than train are stored " +
	"without times: name edges by their ends, and give --time-col none")

// typedPattern names edges of a relation: those with these ends, and with this time unless it is
// kv.NoTime.
type typedPattern struct {
	relation, src, dst uint32
	time               int64
	found              bool
}

func (p *typedPattern) compare(of *typedPattern) int {
	return cmp.Or(cmp.Compare(p.relation, of.relation), cmp.Compare(p.src, of.src),
		cmp.Compare(p.dst, of.dst))
}

// typedDeletion is a deletion of a typed store under way, which writes the store anew.
type typedDeletion struct {
	*rewriting
	done     *Deleted
	dict     ids.Dictionary
	patterns []typedPattern
	held     mem.Account
}

// deleteTyped deletes nodes and edges of a typed store. It takes 32 bytes of memory for each edge
// that is named.
func (a *appending) deleteTyped(ctx context.Context, del Deletion, done *Deleted) (err error) {
	if del.DeleteNodes != "" || del.Edges != "" {
		return input.Usage("the store has types of nodes: write --delete-nodes TYPE=FILE and " +
			"--delete-edges SRC:REL:DST=FILE")
	}
	r, err := a.newRewriting()
	if err != nil {
		return err
	}
	d := &typedDeletion{rewriting: r, done: done}
	defer func() { err = errors.Join(err, d.close()) }()
	d.held = mem.NewAccount(d.budget, "edges that are deleted")
	defer d.held.Release()
	if d.dict, err = d.files.IDs(ctx, 0); err != nil {
		return err
	}
	d.change.Gone = roaring.New()
	for _, t := range del.NodeTables {
		if err := d.findNodes(ctx, t); err != nil {
			return err
		}
	}
	if len(del.Relations) > 0 {
		if err := d.readEdges(ctx, del.Options); err != nil {
			return err
		}
		d.without = d.withoutNamed
	}
	done.Snapshot = d.meta.Snapshot
	if done.Nodes = d.change.Gone.GetCardinality(); done.Nodes == 0 && len(d.patterns) == 0 {
		return nil
	}
	paths := []string{}
	for _, r := range del.Relations {
		paths = append(paths, r.File)
	}
	added, err := d.run(ctx, nil, &source.Info{Format: "deletion", Paths: paths})
	if err != nil {
		return err
	}
	done.Snapshot, done.Edges = added.Snapshot, d.gone
	for i := range d.patterns {
		if !d.patterns[i].found {
			done.LostEdges++
		}
	}
	return nil
}

// findNodes finds the nodes of a type that a file has ids of. A first line that is the name of the
// type's ids, and no id, is a header.
func (d *typedDeletion) findNodes(ctx context.Context, t source.NodeTable) error {
	typ := slices.IndexFunc(d.meta.NodeTypes, func(of kv.NodeTypeMeta) bool {
		return of.Name == t.Type
	})
	if typ < 0 {
		return input.Usage("--delete-nodes %s: the store has no nodes of type %s", t, t.Type)
	}
	header := ""
	find := &finder{known: d.dict, most: findMost(d.budget), fn: func(id string, node int64) error {
		switch {
		case node >= 0:
			d.change.Gone.Add(uint32(node))
		case id != header:
			d.done.LostNodes++
		}
		return nil
	}}
	first := true
	err := files.ReadLines(d.fs, t.File, 1<<16, func(line []byte) error {
		name := strings.TrimSuffix(string(line), "\r")
		if name == "" {
			return nil
		}
		id := t.Type + source.TypeSep + name
		if first && d.meta.NodeTypes[typ].IsID(name) {
			header = id
		}
		first = false
		return find.add(ctx, []byte(id))
	})
	if err != nil {
		return err
	}
	return find.flush(ctx)
}

// readEdges makes patterns of files of edges.
func (d *typedDeletion) readEdges(ctx context.Context, opt ingest.Options) (err error) {
	opt.NodeTables, opt.Nodes = nil, ""
	opt.Of = d.meta
	d.addColumns(&opt)
	src, err := ingest.Open(ctx, d.fs, &opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	info := src.Info()
	for _, t := range info.EdgeTables {
		return input.Usage("--delete-edges: edges are named by their ends and their time: leave "+
			"the column %s out of the file", t.Columns[0].Name)
	}
	if info.Weighted {
		return input.Usage("--delete-edges: edges are named by their ends and their time: give " +
			"--weight-col none if a column is taken for weights")
	}
	if info.Timed && typedchange.AllEdges(d.meta) > d.meta.Edges {
		return errSplitTimes
	}
	files, err := typedlevel.NewFiles(src, d.meta, d.dict)
	if err != nil {
		return err
	}
	err = files.EachKnown(ctx, func(c *source.EdgeChunk, lost uint64) error {
		d.done.LostEdges += lost
		for i := range c.SrcInt {
			p := typedPattern{relation: c.TypeInt[i], src: uint32(c.SrcInt[i]),
				dst: uint32(c.DstInt[i]), time: kv.NoTime}
			if c.Time != nil {
				p.time = c.Time[i]
			}
			d.patterns = append(d.patterns, p)
		}
		return d.held.AtLeast(32 * int64(cap(d.patterns)))
	})
	slices.SortFunc(d.patterns, func(p, of typedPattern) int { return p.compare(&of) })
	return err
}

// withoutNamed leaves out the edges that patterns name.
func (d *typedDeletion) withoutNamed(c *source.EdgeChunk) *source.EdgeChunk {
	return typedchange.Select(c, func(i int) bool {
		at := typedPattern{relation: c.TypeInt[i], src: uint32(c.SrcInt[i]),
			dst: uint32(c.DstInt[i])}
		k, _ := slices.BinarySearchFunc(d.patterns, &at, func(p typedPattern,
			of *typedPattern) int {
			return p.compare(of)
		})
		stays := true
		for ; k < len(d.patterns) && d.patterns[k].compare(&at) == 0; k++ {
			p := &d.patterns[k]
			if p.time == kv.NoTime || c.Time != nil && c.Time[i] == p.time {
				p.found, stays = true, false
			}
		}
		return stays
	})
}
