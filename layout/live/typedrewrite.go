package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/ingest/table"
	"gdb/layout/openfiles"
	"gdb/layout/typedchange"
	"gdb/layout/typedlevel"

	"github.com/RoaringBitmap/roaring/v2"
)

// rewriting is a commit that writes a store anew: a typed one, since nodes of a type follow each
// other, so that new ones cannot be numbered behind all others, as a level has them; or one of one
// type that isPlainAnew names.
type rewriting struct {
	*appending
	budget  *mem.Budget
	files   *openfiles.Set // of the store
	rows    *layout.Store  // the tables of nodes; nil if there are none
	change  typedchange.Change
	plain   *typedchange.PlainChange // of a store of one type; nil of a typed one
	changed *roaring.Bitmap
	gone    uint64 // edges that the new base has less: see typedchange.AllEdges
	// without leaves out deleted edges; nil if none are.
	without func(c *source.EdgeChunk) *source.EdgeChunk
}

// newRewriting begins such a commit, of which a quarter of the memory reads the store and the rest
// ingests. The caller calls close.
func (a *appending) newRewriting() (*rewriting, error) {
	if least := steps.LeastBytes / 3 * 4; a.opt.Memory < int64(least) {
		return nil, input.Usage("--memory %s is too small to write this store anew, "+
			"the least is %s", mem.FormatSize(a.opt.Memory), mem.FormatSize(int64(least)))
	}
	if l := a.meta.Labels; l != nil && l.Kind == "multi" && a.meta.Typed() {
		return nil, input.Usage("%s: nodes have several labels: such a store of several types "+
			"takes edges, and no rows of nodes or deletions so far; ingest all sources anew",
			a.store.Dir())
	}
	budget := mem.NewBudget(max(1, a.opt.Memory/4))
	return &rewriting{appending: a, budget: budget,
		changed: roaring.New(),
		files:   openfiles.New(a.store, a.dev, budget)}, nil
}

func (r *rewriting) close() error { return r.files.Close() }

// appendAnew adds nodes, and edges among them and those of the store, and gives nodes of the store
// other values.
func (a *appending) appendAnew(ctx context.Context, src source.Source) (done *Added, err error) {
	r, err := a.newRewriting()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	dict, err := r.files.IDs(ctx, 0)
	if err != nil {
		return nil, err
	}
	if len(a.opt.NodeTables) > 0 {
		if err := r.readTables(ctx); err != nil {
			return nil, err
		}
		read := openfiles.New(r.rows, r.dev, r.budget)
		defer func() { err = errors.Join(err, read.Close()) }()
		err := r.match(ctx, read, dict, func(_ uint32, node int64, name string) error {
			if node < 0 {
				return nil
			}
			r.changed.Add(uint32(node))
			return r.checkIsNew(name)
		})
		if err != nil {
			return nil, err
		}
		fresh, err := read.IDs(ctx, 0)
		if err != nil {
			return nil, err
		}
		dict = &typedchange.IDs{Dictionary: dict, Rows: fresh, Nodes: r.meta.Nodes}
	}
	more, err := typedlevel.NewFiles(src, r.meta, dict)
	if err != nil {
		return nil, err
	}
	if len(r.meta.EdgeSplits) > 0 {
		d, err := typedchange.NewDivider(ctx, r.meta, more.Each, r.budget)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		if r.change.Divider = d; r.rows == nil && d.Empty() {
			return &Added{LevelMeta: kv.LevelMeta{Snapshot: r.meta.Snapshot}}, nil
		}
	}
	done, err = r.run(ctx, more.Each, src.Info())
	if err == nil && r.onlyNew {
		done.OfNew, done.Between, err = countEnds(ctx, r.meta.Nodes, more.Each)
	}
	return done, err
}

// readTables ingests the tables of nodes as a store of their own.
func (r *rewriting) readTables(ctx context.Context) (err error) {
	opt := ingest.Options{Options: r.opt.Options, Out: r.path("read"), Normalize: "none",
		Threads: r.opt.Threads, Version: r.opt.Version, Progress: r.opt.Progress,
		Resume: r.opt.Resume}
	opt.Relations, opt.NoEdges = nil, true
	opt.SrcCol, opt.DstCol, opt.WeightCol, opt.TimeCol = "", "", "", ""
	src, err := ingest.Open(ctx, r.fs, &opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	info := src.Info()
	if l := r.meta.Labels; l != nil && l.Kind == "target" && info.Labels != nil {
		src.(interface{ ForceTargets() }).ForceTargets()
	}
	for i, name := range info.NodeTypes {
		if err := r.checkFeatures(name, i, info); err != nil {
			return err
		}
	}
	if _, err := ingest.RunSource(ctx, r.fs, src, opt); err != nil {
		return err
	}
	r.rows, err = layout.Open(ctx, r.fs, opt.Out)
	return err
}

// checkFeatures fails if features of a type cannot be made of a table.
func (r *rewriting) checkFeatures(name string, typ int, info *source.Info) error {
	if len(info.Features) == 0 || info.Features[0].Dims[typ] == 0 {
		return nil
	}
	at := slices.IndexFunc(r.meta.NodeTypes, func(t kv.NodeTypeMeta) bool { return t.Name == name })
	if want := r.meta.Features[0].Sections[at].Dim; info.Features[0].Dims[typ] != want {
		return input.Usage("features of %s have %d numbers in the tables, and %d in the store",
			name, info.Features[0].Dims[typ], want)
	}
	return nil
}

// match finds the nodes of the tables in the store, which has the ids known. It calls met with each
// in order: its number, that in the store or below 0, and its id.
func (r *rewriting) match(ctx context.Context, read *openfiles.Set, known ids.Dictionary,
	met func(row uint32, node int64, name string) error) error {
	fresh, err := read.IDs(ctx, 0)
	if err != nil {
		return err
	}
	held := mem.NewAccount(r.budget, "nodes of the tables")
	nodes := r.rows.Meta().Nodes
	if err := held.AtLeast(4 * int64(nodes)); err != nil {
		return err
	}
	of := make([]uint32, 0, nodes)
	find := &finder{known: known, most: findMost(r.budget)}
	find.fn = func(name string, node int64) error {
		to := typedchange.Absent
		if node >= 0 {
			to = uint32(node)
		}
		of = append(of, to)
		return met(uint32(len(of)-1), node, name)
	}
	var some []layout.NodeID
	var names []string
	for v := uint64(0); v < nodes; v += chunk {
		some = some[:0]
		for u := v; u < min(v+chunk, nodes); u++ {
			some = append(some, layout.NodeID(u))
		}
		if names, err = fresh.External(ctx, some, names[:0]); err != nil {
			return err
		}
		for _, name := range names {
			if err := find.add(ctx, []byte(name)); err != nil {
				return err
			}
		}
	}
	r.change.Rows = r.rows
	err = find.flush(ctx)
	r.change.Of = of
	return err
}

// changed is a store that changes, as ingest reads it.
type changed interface {
	source.Source
	Fresh() uint64   // nodes that are new
	Changed() uint64 // nodes that get other values
}

// source returns the store as it is to be, with more edges if that is not nil. The caller calls
// Close.
func (r *rewriting) source(ctx context.Context, more typedlevel.Edges) (changed, error) {
	r.change.Store, r.change.More, r.change.Stays = r.store, more, r.staying
	if r.plain != nil {
		r.change.Edges = typedchange.GivenEdges(r.store, r.dev, r.budget)
		r.plain.Change = r.change
		return typedchange.NewPlain(*r.plain, r.dev, r.budget)
	}
	pieces, _, err := r.pieces(ctx, true, r.store.Lists())
	if err != nil {
		return nil, err
	}
	r.change.Edges = typedlevel.OfPieces(r.meta, r.dev, r.budget, pieces)
	if len(r.meta.EdgeSplits) > 0 {
		r.change.Edges = typedlevel.WithSplits(r.change.Edges, r.store.Base(), r.dev)
	}
	return typedchange.New(r.change, r.dev, r.budget)
}

// ingest writes a store that changes anew.
func (r *rewriting) ingest(ctx context.Context, src changed, opt ingest.Options) (*kv.Meta, error) {
	if r.plain == nil {
		return ingest.RunSource(ctx, r.fs, src, opt)
	}
	of := r.shaped()
	opt.Undirected, opt.Dedup, opt.KeepDuplicates = of.Undirected, of.Dedup, of.KeepDuplicates
	opt.KeepSelfLoops, opt.AllowNaN = of.KeepSelfLoops, len(r.meta.Features) > 0
	return ingest.RunAgain(ctx, r.fs, src.(*typedchange.Plain), opt)
}

// run writes the store anew, with more edges if that is not nil, and makes it the base.
func (r *rewriting) run(ctx context.Context, more typedlevel.Edges, info *source.Info) (
	done *Added, err error) {
	src, err := r.source(ctx, more)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	opt := ingest.Options{Out: r.path("base"), Both: slices.Contains(r.meta.Directions, "out"),
		BlockBytes: r.meta.BlockBytes, Threads: r.opt.Threads, Version: r.opt.Version,
		Progress: r.opt.Progress, UUID: r.meta.UUID, Normalize: "none",
		Resume: r.opt.Resume}
	opt.Memory, opt.NoEdges = r.opt.Memory-r.opt.Memory/4, true
	if len(r.meta.Features) > 0 {
		opt.FeatureDType = r.meta.Features[0].DType
	}
	if err := r.goOnWith(&opt); err != nil {
		return nil, err
	}
	made := r.finished(ctx, opt.Out)
	if made == nil {
		if made, err = r.ingest(ctx, src, opt); err != nil {
			return nil, err
		}
	}
	done = &Added{LevelMeta: r.newLevel(src.Fresh(), kv.SourceMeta{Format: info.Format,
		Paths: info.Paths}), Replaced: src.Changed(), Anew: true, Plain: r.plain != nil}
	before, now := typedchange.AllEdges(r.meta), typedchange.AllEdges(made)
	done.UUID, done.Edges, r.gone = made.UUID, now-min(now, before), before-min(now, before)
	for _, f := range made.Files {
		done.Bytes += f.Size
	}
	return done, r.becomeBase(ctx, opt.Out, done.Path, made)
}

// finished returns the record of the new base if the commit that goes on had ended its ingest, and
// becomeBase had given it the sources of the store; else nil. Of a store of one type the ingest
// gives it these, and finds itself that it had ended.
func (r *rewriting) finished(ctx context.Context, out string) *kv.Meta {
	if !r.opt.Resume || r.plain != nil {
		return nil
	}
	s, err := layout.Open(ctx, r.fs, out)
	if err != nil || s.Meta().Source.Format != r.meta.Source.Format {
		return nil // the ingest goes on
	}
	return s.Meta()
}

// staying returns the edges of the store that stay.
func (r *rewriting) staying(c *source.EdgeChunk) *source.EdgeChunk {
	if len(r.keyed) > 0 && c.Len() > 0 && r.keyed[int(c.TypeInt[0])] {
		c = typedchange.Select(c, func(i int) bool {
			return !r.changed.Contains(uint32(c.SrcInt[i]))
		})
	}
	if r.without != nil && c.Len() > 0 {
		c = r.without(c)
	}
	return c
}

// becomeBase makes a store that was written anew the base, in one transaction.
func (r *rewriting) becomeBase(ctx context.Context, from, path string, made *kv.Meta) error {
	s, err := layout.Open(ctx, r.fs, from)
	if err != nil {
		return err
	}
	sets := map[string]*roaring.Bitmap{}
	for _, split := range made.Splits {
		if sets[split.Name], err = s.Split(ctx, split.Name); err != nil {
			return err
		}
	}
	was := r.meta
	made.Created, made.CreatedBy, made.Source = was.Created, was.CreatedBy, was.Source
	made.SplitColumn, made.Numbered, made.Moved = was.SplitColumn, was.Numbered, was.Moved
	gone := r.change.Gone != nil && !r.change.Gone.IsEmpty()
	if gone || slices.Contains(r.change.Of, typedchange.Absent) {
		made.Numbered = was.Snapshot + 1
	}
	if gone {
		made.Moved = was.Snapshot + 1
	}
	keepRead(&made.Stats, was)
	err = s.Catalog().Commit(ctx, nil, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		*m = *made
		return nil, nil
	})
	if err == nil {
		err = r.settle(from, path)
	}
	if err != nil {
		return err
	}
	return r.commit(ctx, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		was := *m
		*m = *made
		m.Snapshot, m.Manifest, m.Base, m.Rewrites = was.Snapshot, was.Manifest, path, 0
		m.Committed = time.Now().UTC().Truncate(time.Second)
		m.Splits = slices.Clone(made.Splits)
		for i := range m.Splits {
			for _, before := range was.Splits {
				if before.Name == m.Splits[i].Name {
					m.Splits[i].Set = before.Set
				}
			}
		}
		return sets, nil
	})
}

// checkNodes finds what tables of nodes of a typed store cannot be read for, and adds the relations
// that are columns of them.
func (a *appending) checkNodes(opt *ingest.Options) error {
	var types []string
	for _, t := range a.meta.NodeTypes {
		types = append(types, t.Name)
	}
	for flag, value := range map[string]*string{"label-col": &opt.LabelCol,
		"split-col": &opt.SplitCol, "feature-cols": &opt.FeatureCols, "fill": &opt.Fill} {
		if *value != "" && !has(a.meta, flag+"="+*value) {
			return input.Usage("--%s %s: columns of nodes mean what they meant when the store was "+
				"ingested: leave it out", flag, *value)
		}
		*value = ""
	}
	for _, t := range opt.NodeTables {
		if !slices.Contains(types, t.Type) {
			return input.Usage("--nodes %s: the store has no nodes of type %s, and new types are "+
				"not taken so far; it has %s", t, t.Type, strings.Join(types, ", "))
		}
		if a.numbered(t.Type) {
			return input.Usage("--nodes %s: nodes of type %s have no ids but the numbers of their "+
				"rows, by which none are added: ingest all tables anew", t, t.Type)
		}
	}
	return nil
}

// numbered reports whether the nodes of a type have the numbers of their rows as ids.
func (a *appending) numbered(typ string) bool {
	for _, arg := range a.meta.Source.Args {
		list, is := strings.CutPrefix(arg, "--id-col=")
		if is && slices.Contains(strings.Split(list, ","), typ+source.ColumnSep+source.NoColumn) {
			return true
		}
	}
	return false
}

// addKeys adds the relations that are columns of tables of nodes, where the tables have these.
func (a *appending) addKeys(opt *ingest.Options) {
	opener := source.NewOpener(a.fs, &opt.Options)
	for i := range typedlevel.Forward(a.meta) {
		name, src, dst := source.RelationEnds(a.meta, i)
		for _, t := range opt.NodeTables {
			if t.Type != src || a.keyOf(src, name) != "key of "+dst {
				continue
			}
			of, err := opener.Open(t.File, table.Hints{Header: opt.Header})
			if err != nil || !slices.Contains(of.Names, name) {
				continue // what is wrong with the table is found when it is read
			}
			a.keyed[i] = true
			rel := source.Relation{Src: src, Name: name, Dst: dst, File: t.File}
			prefix := fmt.Sprintf("--time-col=%s%s%s=", src, source.TypeSep, name)
			for _, arg := range a.meta.Source.Args {
				if time, is := strings.CutPrefix(arg, prefix); is {
					rel.Time = time
				}
			}
			if !slices.ContainsFunc(opt.Relations, func(r source.Relation) bool {
				return r.Src == src && r.Name == name && r.Dst == dst && r.File == t.File
			}) {
				opt.Relations = append(opt.Relations, rel)
			}
		}
	}
}

// keyOf returns the role of a column of a type.
func (a *appending) keyOf(typ, column string) string {
	for i := range a.meta.NodeTypes {
		if t := &a.meta.NodeTypes[i]; t.Name == typ {
			return t.Roles[column]
		}
	}
	return ""
}

// addColumns names the columns of edges that the ingest of the store was told, unless the commit
// names others, where the files have them.
func (a *appending) addColumns(opt *ingest.Options) {
	opener := source.NewOpener(a.fs, &opt.Options)
	for flag, to := range map[string]*string{"--src-col=": &opt.SrcCol, "--dst-col=": &opt.DstCol,
		"--weight-col=": &opt.WeightCol, "--time-col=": &opt.TimeCol} {
		var columns []string
		for _, arg := range a.meta.Source.Args {
			list, is := strings.CutPrefix(arg, flag)
			for _, word := range strings.Split(list, ",") {
				relation, column, _ := strings.Cut(word, source.ColumnSep)
				if is && a.hasColumn(opener, opt, relation, column) {
					columns = append(columns, word)
				}
			}
		}
		if *to == "" {
			*to = strings.Join(columns, ",")
		}
	}
}

// hasColumn reports whether the file of a relation has a column.
func (a *appending) hasColumn(opener table.Opener, opt *ingest.Options, relation,
	column string) bool {
	for _, r := range opt.Relations {
		if r.Name != relation {
			continue
		}
		of, err := opener.Open(r.File, table.Hints{Header: opt.Header})
		// What is wrong with a table is found when it is read.
		if err == nil && (column == source.NoColumn || slices.Contains(of.Names, column)) {
			return true
		}
	}
	return false
}
