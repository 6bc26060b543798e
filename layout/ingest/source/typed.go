package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// NodeTable is a table with a row for each node of a type.
type NodeTable struct {
	Type, File string
	// Key is the column of ids, "none" where rows are numbered, and "" where it is not known.
	Key string
}

// String returns the flag that names the table.
func (t NodeTable) String() string { return t.Type + "=" + t.File }

// ColumnSep stands between a type, or a relation, and a column of its table.
const ColumnSep = "."

// typedGraph is a source of nodes of several types, each with a table of its own, and of edges
// between two types each. The nodes of a type follow each other in the order of its rows. A type
// without a table has the ids that stand in its edges; such types come last.
type typedGraph struct {
	*parts
	types     []*nodeType
	relations []*relationEdges
	reverse   bool
	// first is the first node of each type, once the pipeline has told: see PlaceTypes.
	first []uint64
	// index leads from the integer ids of each type to its rows: see UseKeys.
	index []KeyIndex
}

// nodeType is a type of nodes; table is nil if only edges name them.
type nodeType struct {
	name  string
	table *textGraph
	key   string // column of ids of the store that tables are read for; "" if it has another name
}

// keyName returns the name of the column of ids, "" if there is none or it is "id".
func (t *nodeType) keyName() string {
	if t.table == nil || t.table.opened.id < 0 || t.table.opened.Names == nil {
		return t.key
	}
	if name := t.table.opened.Names[t.table.opened.id]; name != "id" {
		return name
	}
	return ""
}

// relationEdges are the edges of a relation, read by a graph of its own.
type relationEdges struct {
	Relation
	graph    *textGraph
	src, dst int // types
}

// edges returns the table.
func (r *relationEdges) edges() *edgeTable { return r.graph.edges[0] }

// openTyped opens tables of nodes and edges of types.
func openTyped(ctx context.Context, fs vfs.FS, opt *Options) (Source, error) {
	s := &typedGraph{parts: newParts(fs, opt, "tables", ""), reverse: opt.Reverse}
	err := inOrder(s.checkTyped, s.nameTypes, func() error { return s.openTables(ctx) },
		func() error { return s.openRelations(ctx) }, s.addLabels, s.addFeatures, s.addColumns)
	if err != nil {
		return nil, input.AsError(err)
	}
	s.info.TextIDs, s.info.Typed, s.info.Ranged = true, true, true
	s.parts.nodes, s.parts.edges = s.streamNodes, s.streamEdges
	return s, nil
}

// checkTyped refuses what typed sources do not read.
func (s *typedGraph) checkTyped() error {
	o := s.opt
	for _, r := range o.Relations {
		if r.Src == "" {
			return input.Usage("--edges %s: with tables of several types, say which the edges "+
				"join: --edges SRC:REL:DST=FILE", r)
		}
	}
	for _, f := range []struct {
		given    bool
		flag, do string
	}{{o.Edges != "", "--edges " + o.Edges, "write --edges SRC:REL:DST=FILE"},
		{len(o.Sources) > 0, "sources without a flag", "name them by --nodes and --edges"},
		{o.Labels != "", "--labels", "name the column by --label-col TYPE.COLUMN"},
		{o.Features != "", "--features", "name columns by --feature-cols TYPE.COLUMN"},
		{len(o.Splits) > 0, "--split NAME=FILE", "name the column by --split-col TYPE.COLUMN"},
		{o.SrcType+o.DstType != "", "--src-type and --dst-type", "write --edges SRC:REL:DST=FILE"},
		{o.SameIDs, "--same-ids", "ids of each type are apart"},
		{o.RelCol != "", "--rel-col", "a relation is a file: --edges SRC:REL:DST=FILE"},
		{o.Format != "", "--format", "each table is read as it is"}} {
		if f.given {
			what := "a store of several types does"
			if len(o.NodeTables) > 0 {
				what = fmt.Sprintf("tables of several types (--nodes %s, …) do", o.NodeTables[0])
			}
			return input.Usage("%s not go with %s: %s", what, f.flag, f.do)
		}
	}
	if len(o.Relations) == 0 && o.Of == nil {
		return input.Usage("there are tables of nodes, and no edges: name them by --edges " +
			"SRC:REL:DST=FILE, or the columns of foreign keys in --schema")
	}
	return nil
}

// nameTypes lists the types: those with tables, and then those that only edges name.
func (s *typedGraph) nameTypes() error {
	add := func(name string) int {
		if i := slices.Index(s.info.NodeTypes, name); i >= 0 {
			return i
		}
		s.info.NodeTypes = append(s.info.NodeTypes, name)
		s.types = append(s.types, &nodeType{name: name, key: s.opt.keyName(name)})
		return len(s.types) - 1
	}
	for _, t := range s.opt.NodeTables {
		if strings.ContainsAny(t.Type, ColumnSep+TypeSep) {
			return input.Usage("--nodes %s: the name of a type has no %s and no %s", t, ColumnSep,
				TypeSep)
		}
		if add(t.Type) < len(s.types)-1 {
			return input.Usage("--nodes %s: the type %s has a table already; put its rows into "+
				"one file, or a directory of Parquet", t, t.Type)
		}
	}
	used := make([]bool, len(s.types))
	for _, r := range s.opt.Relations {
		e := &relationEdges{Relation: r, src: add(r.Src), dst: add(r.Dst)}
		for _, end := range []int{e.src, e.dst} {
			if end < len(used) {
				used[end] = true
			}
		}
		s.relations = append(s.relations, e)
	}
	for i, is := range used {
		if !is && s.opt.Of == nil {
			s.note("no relation joins nodes of type %s: they will have no edges", s.types[i].name)
		}
	}
	return s.nameRelations()
}

// nameRelations gives each relation a name of its own: its name, or, where several have it, with
// the types before and behind it.
func (s *typedGraph) nameRelations() error {
	count := map[string]int{}
	for _, r := range s.relations {
		count[r.Name]++
	}
	add := func(name string, src, dst int) error {
		if slices.Contains(s.info.EdgeTypes, name) {
			return input.Usage("two relations are called %s: rename one", name)
		}
		s.info.EdgeTypes = append(s.info.EdgeTypes, name)
		s.info.Relations = append(s.info.Relations, kv.RelationMeta{Src: src, Dst: dst})
		return nil
	}
	name := func(relation, src, dst string, of *relationEdges) string {
		if count[of.Name] > 1 {
			return src + TypeSep + relation + TypeSep + dst
		}
		return relation
	}
	for _, r := range s.relations {
		if err := add(name(r.Name, r.Src, r.Dst, r), r.src, r.dst); err != nil {
			return err
		}
	}
	for _, r := range s.relations {
		if !s.reverse {
			break
		}
		if err := add(name("rev_"+r.Name, r.Dst, r.Src, r), r.dst, r.src); err != nil {
			return err
		}
	}
	return nil
}

// columnsOf returns the columns of a list of TYPE.COLUMN that are of one type, with commas between;
// "*" is of all types.
func (s *typedGraph) columnsOf(list, typ string) string {
	if list == "*" {
		return list
	}
	var of []string
	for _, c := range table.ListOf(list) {
		if column, has := strings.CutPrefix(c, typ+ColumnSep); has {
			of = append(of, column)
		}
	}
	return strings.Join(of, ",")
}

// checkColumns refuses columns without a type or relation before them, or with an unknown one.
func (s *typedGraph) checkColumns(flag, list, kind string, names []string) error {
	if list == "" || list == "*" && flag == "--feature-cols" {
		return nil
	}
	for _, c := range table.ListOf(list) {
		if typ, _, has := strings.Cut(c, ColumnSep); !has || !slices.Contains(names, typ) {
			return input.Usage("%s %s: write %s%sCOLUMN, where %s is one of %s", flag, c, kind,
				ColumnSep, kind, strings.Join(names, ", "))
		}
	}
	return nil
}

// sub returns a graph that reads one table, with options of its own.
func (s *typedGraph) sub(opt *Options) *textGraph {
	g := &textGraph{parts: newParts(s.fs, opt, "csv", ""), keeps: true}
	g.tables.Note, g.info.TextIDs = s.note, true
	g.tables.Use = func(path string, bytes int64) {
		if !slices.Contains(s.info.Paths, path) {
			s.use(path, bytes)
		}
	}
	return g
}

// took takes over what a graph found out about its table.
func (s *typedGraph) took(g *textGraph) {
	s.info.Notes = append(s.info.Notes, g.info.Notes...)
	s.info.Columns = append(s.info.Columns, g.info.Columns...)
	s.info.IDsAbout += g.info.IDsAbout
}

// openRelations opens the tables of edges.
func (s *typedGraph) openRelations(ctx context.Context) error {
	var names []string
	for _, r := range s.relations {
		names = append(names, r.Name)
	}
	o := s.opt
	for flag, list := range map[string]string{"--src-col": o.SrcCol, "--dst-col": o.DstCol,
		"--weight-col": o.WeightCol, "--time-col": o.TimeCol} {
		if err := s.checkColumns(flag, list, "REL", names); err != nil {
			return err
		}
	}
	for _, r := range s.relations {
		if isKey, err := s.openKey(ctx, r); err != nil || isKey {
			if err != nil {
				return err
			}
			continue
		}
		of := *o
		for _, col := range []*string{&of.SrcCol, &of.DstCol, &of.WeightCol, &of.TimeCol} {
			*col = s.columnsOf(*col, r.Name)
		}
		if c := r.Columns; c != nil {
			of.SrcCol, of.DstCol, of.WeightCol, of.TimeCol = c.Source, c.Target, c.Weight, c.Time
		}
		of.RelCol = NoColumn
		r.graph = s.sub(&of)
		r.graph.endIDs = [2]string{s.types[r.src].keyName(), s.types[r.dst].keyName()}
		format, err := detectText(s.fs, r.File)
		if err == nil {
			err = r.graph.openEdges(ctx, r.Relation, format)
		}
		if err != nil {
			return err
		}
		s.info.Weighted = s.info.Weighted || r.edges().weight >= 0
		s.addTime(r.edges())
		s.info.EdgesAbout += r.edges().Lines
		s.took(r.graph)
	}
	return nil
}

// addTime takes over how a relation writes times.
func (s *typedGraph) addTime(t *edgeTable) {
	if t.time < 0 {
		return
	}
	switch form := t.TimeForm(t.time); {
	case !s.info.Timed:
		s.info.Times = form
	case form != s.info.Times && (form == kv.TimeNumber || s.info.Times == kv.TimeNumber):
		s.info.Times = kv.TimeNumber
	case form != s.info.Times:
		s.info.Times = kv.TimeDatetime
	}
	s.info.Timed = true
}

// openTables opens the tables of nodes.
func (s *typedGraph) openTables(ctx context.Context) error {
	o := s.opt
	names := s.info.NodeTypes[:len(o.NodeTables)]
	for flag, list := range map[string]string{"--id-col": o.IDCol, "--label-col": o.LabelCol,
		"--feature-cols": o.FeatureCols, "--split-col": o.SplitCol,
		"--categorical": o.Categorical} {
		if flag == "--label-col" && list == NoColumn || flag == "--split-col" && list == NoColumn {
			continue
		}
		if err := s.checkColumns(flag, list, "TYPE", names); err != nil {
			return err
		}
	}
	for i, t := range o.NodeTables {
		of := *o
		of.Nodes, of.NodesType, of.Relations = t.File, t.Type, nil
		for _, col := range []*string{&of.IDCol, &of.LabelCol, &of.FeatureCols, &of.SplitCol,
			&of.Categorical} {
			given := *col
			if *col = s.columnsOf(given, t.Type); *col == "" && given != "" &&
				(col == &of.LabelCol || col == &of.SplitCol) {
				*col = NoColumn // another type has it
			}
		}
		if t.Key != "" {
			of.IDCol = t.Key
		}
		s.storedRoles(&of, t.Type)
		g := s.sub(&of)
		g.nodesFile, g.nodesType, g.taken = t.File, t.Type, s.keysIn(&t)
		if err := g.openNodes(ctx, t.File); err != nil {
			return err
		}
		if err := g.opened.checkStored(o.storedType(t.Type)); err != nil {
			return err
		}
		s.types[i].table = g
		s.info.KeyNames = append(s.info.KeyNames, s.types[i].keyName())
		s.took(g)
	}
	return nil
}

// addLabels takes the labels of the one type that has any, and the splits.
func (s *typedGraph) addLabels() error {
	of := ""
	for _, t := range s.types {
		if t.table == nil {
			continue
		}
		s.splits = append(s.splits, t.table.splits...)
		for _, name := range t.table.info.Splits {
			if !slices.Contains(s.info.Splits, name) {
				s.info.Splits = append(s.info.Splits, name)
			}
		}
		if t.table.labels == nil {
			continue
		}
		if of != "" {
			return input.Usage("the tables of %s and %s have a column of labels each: say which "+
				"is learned by --label-col TYPE%sCOLUMN, or --label-col %s", of, t.name, ColumnSep,
				NoColumn)
		}
		of = t.name
		s.info.Labels, s.labels, s.labelled = t.table.info.Labels, t.table.labels, t.table.labelled
		s.info.Labels.OfType = t.name
	}
	slices.Sort(s.info.Splits)
	s.noteUnreached(of)
	return nil
}

// noteUnreached notes that the nodes with labels have no in-edges, so that models would learn from
// their own columns alone.
func (s *typedGraph) noteUnreached(labeled string) {
	reached := slices.ContainsFunc(s.info.Relations, func(r kv.RelationMeta) bool {
		return s.types[r.Dst].name == labeled
	})
	if labeled != "" && !reached && s.opt.Of == nil {
		s.note("no edges lead to %s, whose labels are learned, so models see no neighbors of "+
			"theirs: --reverse adds the relations the other way", labeled)
	}
}

// ForceTargets reads text labels as numbers to predict from now on.
func (s *typedGraph) ForceTargets() {
	for _, t := range s.types {
		if t.table != nil && t.table.labelled != nil {
			t.table.ForceTargets()
		}
	}
}

// addFeatures puts the features of all types together, each of a width of its own.
func (s *typedGraph) addFeatures() error {
	info := FeatureInfo{Name: "features", DType: "columns", Dims: make([]int, len(s.types)),
		OfTypes:   make([][]kv.ColumnMeta, len(s.types)),
		Encodings: make([]*kv.FeatureEncoding, len(s.types))}
	for i, t := range s.types {
		if t.table == nil || len(t.table.info.Features) == 0 {
			continue
		}
		f := t.table.info.Features[0]
		info.Dims[i], info.Dim = f.Dim, max(info.Dim, f.Dim)
		info.OfTypes[i], info.Encodings[i] = f.Columns, f.Encodings[0]
	}
	if info.Dim > 0 {
		s.info.Features = []FeatureInfo{info}
		s.features[info.Name] = s.streamFeatures
	}
	return nil
}

// streamFeatures streams the rows of the types that have values, in order of node.
func (s *typedGraph) streamFeatures(ctx context.Context, fn func(*RowChunk) error) error {
	for i, dim := range s.info.Features[0].Dims {
		if dim == 0 {
			continue
		}
		next := s.first[i]
		err := s.types[i].table.features["features"](ctx, func(c *RowChunk) error {
			c.IDs, c.First, c.Type = nil, next, i
			next += uint64(len(c.Rows) / dim)
			return fn(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PlaceTypes tells the first node of each type. From then on the ids of labels and splits are
// nodes.
func (s *typedGraph) PlaceTypes(first []uint64) {
	s.first = first
	for i, t := range s.types {
		if t.table != nil {
			t.table.opened.placed, t.table.opened.first = true, first[i]
		}
	}
}

// SkippedLines returns the number of bad lines that were skipped so far, of all tables.
func (s *typedGraph) SkippedLines() (n int64) {
	for _, t := range s.types {
		if t.table != nil {
			n += t.table.SkippedLines()
		}
	}
	for _, r := range s.relations {
		n += r.graph.SkippedLines()
	}
	return n
}

// streamNodes streams the ids of all types in order: those of a table by its rows, and those of
// other types as they stand in edges, where they repeat.
func (s *typedGraph) streamNodes(ctx context.Context, fn func(*IDChunk) error) error {
	for i, t := range s.types {
		typed := func(c *IDChunk) error {
			c.Type = i
			return fn(c)
		}
		var err error
		switch {
		case s.keysOf(i) != nil:
		case t.table != nil:
			err = t.table.nodes(ctx, typed)
		default:
			err = s.streamEnds(ctx, i, typed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// streamEnds streams the ids of a type that stand in edges.
func (s *typedGraph) streamEnds(ctx context.Context, typ int, fn func(*IDChunk) error) error {
	out := &IDChunk{Repeats: true}
	for _, r := range s.relations {
		if r.src != typ && r.dst != typ {
			continue
		}
		err := r.graph.streamEdges(ctx, r.edges().bare(), func(c *EdgeChunk) error {
			for end, ids := range [][][]byte{c.SrcText, c.DstText} {
				if [2]int{r.src, r.dst}[end] != typ {
					continue
				}
				out.Text, out.Where = ids, c.Where
				if err := fn(out); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// streamEdges streams the edges of all relations, each chunk of one, and behind it the chunk of
// reverse edges, where they are wanted.
func (s *typedGraph) streamEdges(ctx context.Context, fn func(*EdgeChunk) error) error {
	for i, r := range s.relations {
		var weights []float32
		var times []int64
		var types []uint32
		number := func(n, relation int) []uint32 {
			types = slices.Grow(types[:0], n)[:n]
			for k := range types {
				types[k] = uint32(relation)
			}
			return types
		}
		err := r.graph.streamEdges(ctx, r.edges(), func(c *EdgeChunk) error {
			n := c.Len()
			if s.info.Weighted && c.Weight == nil {
				for len(weights) < n {
					weights = append(weights, 1)
				}
				c.Weight = weights[:n]
			}
			if s.info.Timed && c.Time == nil {
				for len(times) < n {
					times = append(times, kv.NoTime)
				}
				c.Time = times[:n]
			}
			c.TypeText, c.TypeInt = nil, number(n, i)
			err := fn(c)
			if err == nil && s.reverse {
				columns := c.Columns
				c.TypeInt, c.Columns = number(n, i+len(s.relations)), nil
				c.SrcText, c.DstText = c.DstText, c.SrcText
				c.SrcInt, c.DstInt = c.DstInt, c.SrcInt
				c.Rounded = RoundedWeights{}
				err = fn(c)
				c.Columns = columns
			}
			if r.edges().weight < 0 {
				c.Weight = nil
			}
			if r.edges().time < 0 {
				c.Time = nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
