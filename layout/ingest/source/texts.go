package source

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The names that columns with a role go by, as table.Usual writes them.
var (
	srcNames = []string{"src", "source", "from", "head", "subject", "u", "srcid", "sourceid",
		"fromid", "fromnode", "fromnodeid", "node1", "id1", "citing", "citingpaper", "startid",
		"startnode", "sourcenode", "srcnode", "nodefrom"}
	dstNames = []string{"dst", "target", "to", "tail", "object", "v", "dstid", "targetid", "toid",
		"tonode", "tonodeid", "node2", "id2", "dest", "destination", "cited", "citedpaper",
		"endid", "endnode", "targetnode", "dstnode", "destinationnode", "nodeto"}
	relNames    = []string{"rel", "relation", "relationtype", "edgetype", "type", "predicate"}
	weightNames = []string{"weight", "edgeweight", "w"}
	TimeNames   = []string{"time", "timestamp", "ts", "unixtime"}
	idNames     = []string{"id", "node", "nodeid", "vertex", "vertexid"}
	labelNames  = []string{"label", "labels", "class", "y", "target"}
	splitNames  = []string{"split", "splitname", "subset"}
	edgeNames   = slices.Concat(srcNames, dstNames, relNames, weightNames, TimeNames)
	nodeNames   = slices.Concat(idNames, labelNames)
)

// snapFormat is the format of the edge lists of the Stanford collection.
var snapFormat = input.Format{Comment: '#'}

// textGraph is what a set of text files holds.
type textGraph struct {
	*parts
	edges []*edgeTable
	rows  bool // ids are row numbers
	keeps bool // all columns of nodes are stored, whatever their role
	// taken are columns of a table of nodes that are no features, with what they are: foreign keys,
	// and the time of their edges.
	taken map[string]string
	// nodesFile is the table of nodes, "" if there is none, and nodeTable is it once it is open.
	nodesFile string
	nodeTable *table.Table
	opened    *nodeTable // the same with its columns
	endIDs    [2]string  // what the tables of the ends of edges call their ids
	// isNode tells which of some words are in the first part of nodesFile.
	isNode func(words []string) (known map[string]bool, all bool, err error)
}

// edgeTable is a file of edges; a column that is not there is -1.
type edgeTable struct {
	*table.Table
	src, dst, rel, weight, time int
	split                       string
	// relation is the type of all edges, srcType and dstType are the types of their ends; or "".
	relation, srcType, dstType string
	// key says that dst is a foreign key, which may be null, of a table of nodes; without a column
	// src these have row numbers.
	key    bool
	stored []table.Stored
	// srcKeys and dstKeys lead from the ids of the ends to rows; nil: they are text. numbered says
	// that the sources of foreign keys are the numbers of their rows, and not read.
	srcKeys, dstKeys KeyIndex
	numbered         bool
	// srcID and dstID are what the tables of the ends call their ids; or "".
	srcID, dstID string
}

// typed reports whether edges have types.
func (t *edgeTable) typed() bool { return t.rel >= 0 || t.relation != "" }

// openTexts opens CSV, TSV and SNAP files: edge files, and a node file, label, feature and split
// files that flags or the directory's names tell.
func openTexts(ctx context.Context, fs vfs.FS, opt *Options, format, dir string,
	files []string) (Source, error) {
	s := &textGraph{parts: newParts(fs, opt, format, dir)}
	edges, nodes, splits, err := s.assign(files)
	s.nodesFile = nodes
	s.isNode = func(words []string) (map[string]bool, bool, error) {
		return s.nodesAmong(ctx, words)
	}
	for _, f := range edges {
		if err == nil {
			err = s.openEdges(ctx, Relation{Src: opt.SrcType, Dst: opt.DstType, File: f}, format)
		}
	}
	for _, r := range opt.Relations {
		if r.Src == "" {
			r.Src, r.Dst = opt.SrcType, opt.DstType
		}
		r.File = s.locate(r.File)
		if err == nil {
			err = s.openEdges(ctx, r, format)
		}
	}
	if err == nil {
		err = s.nodeTypes()
	}
	if err == nil {
		err = s.finishEdges()
	}
	if err == nil {
		err = s.openNodes(ctx, nodes)
	}
	for _, name := range slices.Sorted(maps.Keys(splits)) {
		if err == nil {
			err = s.addTextSplit(name, splits[name], false)
		}
	}
	if err == nil {
		err = s.checkTableFlags(nodes)
	}
	if err != nil {
		return nil, input.AsError(err)
	}
	return s.parts, nil
}

// assign gives files their roles.
func (s *textGraph) assign(files []string) (edges []string, nodes string,
	splits map[string]string, err error) {
	splits = map[string]string{}
	var others []string
	for _, f := range files {
		base := s.fs.PathBase(f)
		switch {
		case s.dir == "" || edgeName.MatchString(base):
			edges = append(edges, f)
		case nodeName.MatchString(base):
			if nodes != "" && s.opt.Nodes == "" {
				return nil, "", nil, input.Wrong(s.dir, "choose one with --nodes",
					"%s and %s could both be the nodes", s.fs.PathBase(nodes), base)
			}
			nodes = f
		case splitText.MatchString(base):
			name := splitText.FindStringSubmatch(base)[1]
			if name == "valid" {
				name = "val"
			}
			splits[name] = f
		case textName.MatchString(base):
			others = append(others, f)
		}
	}
	if s.opt.Edges != "" {
		given, err := table.Glob(s.fs, s.locate(s.opt.Edges))
		if err != nil {
			return nil, "", nil, err
		}
		edges = given
	} else if len(edges) == 0 && len(others) == 1 {
		edges = others
	}
	if len(s.opt.Relations) > 0 && s.opt.Edges == "" {
		edges = nil
	} else if len(edges) == 0 && !s.opt.NoEdges {
		return nil, "", nil, input.Wrong(s.dir, "want edges.csv; or name a file with --edges",
			"no edges were found")
	}
	first := strings.Join(edges[:min(1, len(edges))], "")
	if s.opt.Nodes != "" {
		nodes = s.locate(s.opt.Nodes)
	}
	for name, f := range s.opt.Splits {
		splits[name] = s.locate(f)
	}
	if err := s.sourcesUnread(files, edges, nodes, splits); err != nil {
		return nil, "", nil, err
	}
	// A file named by a flag and found among the sources is not an edge file too.
	edges = slices.DeleteFunc(edges, func(f string) bool {
		return f == nodes || slices.Contains(slices.Collect(maps.Values(splits)), f) ||
			f == s.opt.Labels || f == s.opt.Features
	})
	if len(edges) == 0 && first != "" && !s.opt.NoEdges {
		return nil, "", nil, &input.Error{Where: first, Flag: true,
			What: "it is given for something else too, and no other file holds edges",
			Do:   "nodes, labels, features and splits need files of their own"}
	}
	return edges, nodes, splits, nil
}

// sourcesUnread returns an error if a file that was named as a source is read for nothing, since
// flags name the files of edges.
func (s *textGraph) sourcesUnread(files, edges []string, nodes string,
	splits map[string]string) error {
	if s.dir != "" || len(s.opt.Sources) == 0 {
		return nil
	}
	read := slices.Concat(edges, []string{nodes, s.opt.Labels, s.opt.Features},
		slices.Collect(maps.Values(splits)))
	for _, r := range s.opt.Relations {
		read = append(read, r.File)
	}
	for _, f := range files {
		if !slices.Contains(read, f) && textSplit(f) {
			return input.Usage("%s would not be read, since --edges names the files of edges: "+
				"leave it out, or say what it is, as with --nodes %s", f, f)
		}
	}
	return nil
}

func (s *textGraph) openEdges(ctx context.Context, r Relation, format string) error {
	file := r.File
	hints := table.Hints{Known: append(slices.Clip(edgeNames), s.opt.storedNames()...),
		Header: s.opt.Header}
	if s.nodesFile != "" {
		hints.Nodes = s.isNode
	}
	if format == "snap" {
		hints.Format = &snapFormat
	}
	opened, err := s.tables.Open(file, hints)
	if err != nil {
		return err
	}
	if opened.Width < 2 {
		return input.Wrong(file, "is --delim right?",
			"its rows have one field, but an edge is two nodes")
	}
	t := &edgeTable{Table: opened, relation: r.Name, srcType: r.Src, dstType: r.Dst,
		srcID: s.endIDs[0], dstID: s.endIDs[1]}
	if err := s.edgeColumns(ctx, t); err != nil {
		return err
	}
	s.edges = append(s.edges, t)
	return nil
}

// EndColumns finds, among the names of a header, the columns of the ends of edges and of their
// relation; -1 is none.
func EndColumns(header []string) (src, dst, rel int) {
	find := func(names []string) int {
		return slices.IndexFunc(header, func(h string) bool {
			return slices.Contains(names, table.Usual(h))
		})
	}
	return find(srcNames), find(dstNames), find(relNames)
}

// addTimes decides how times are written: as dates if all files have them so.
func (s *textGraph) addTimes(t, first *edgeTable) {
	if t.time < 0 {
		return
	}
	switch form, before := t.TimeForm(t.time), s.info.Times; {
	case t == first:
		s.info.Times = form
	case form == kv.TimeNumber || before == kv.TimeNumber:
		s.info.Times = kv.TimeNumber
	case form != before:
		s.info.Times = kv.TimeDatetime
	}
}

// finishEdges decides what all edge files have in common.
func (s *textGraph) finishEdges() error {
	if len(s.edges) == 0 {
		s.parts.edges = func(context.Context, func(*EdgeChunk) error) error { return nil }
		return nil
	}
	first := s.edges[0]
	for _, t := range s.edges {
		if t.typed() != first.typed() || t.weight >= 0 != (first.weight >= 0) ||
			t.time >= 0 != (first.time >= 0) {
			return input.Wrong(t.Path, "edge files must have the same columns",
				"it and %s differ in having types, weights or times", first.Path)
		}
		if t.relation == "" && t.Strange(first.Table) && t.Named(srcNames) < 0 {
			return input.Wrong(t.Path, "give a table of nodes with --nodes, and edges of "+
				"another kind with --edges NAME=FILE", "it has none of the columns of %s: %s",
				first.Path, table.Few(t.Names))
		}
		s.addTimes(t, first)
		s.guessIDs(t.Table, t.src, t.dst)
		s.info.EdgesAbout += t.Lines
		s.info.IDsAbout += 2 * t.Lines
	}
	s.info.Typed, s.info.Weighted, s.info.Timed = first.typed(), first.weight >= 0, first.time >= 0
	given, err := s.givenTypes()
	if err != nil {
		return err
	}
	s.addEdgeTable(0, allEdges, s.edges, given)
	if err := given.allUsed(); err != nil {
		return err
	}
	s.parts.edges = func(ctx context.Context, fn func(*EdgeChunk) error) error {
		some := false
		for _, t := range s.edges {
			err := s.streamEdges(ctx, t, func(c *EdgeChunk) error {
				some = true
				return fn(c)
			})
			if err != nil {
				return err
			}
		}
		if !some && !s.opt.NoEdges {
			return input.Wrong(first.Path, "", "there are no edges")
		}
		return nil
	}
	return nil
}

func (s *textGraph) streamEdges(ctx context.Context, t *edgeTable,
	fn func(*EdgeChunk) error) error {
	if t.key {
		return s.streamKeys(ctx, t, fn)
	}
	id := s.idKind()
	columns := []input.Column{{Field: t.src, Kind: endKind(t.srcKeys, id)},
		{Field: t.dst, Kind: endKind(t.dstKeys, id)}}
	add := func(field int, kind input.Kind, do string) int {
		if field >= 0 {
			columns = append(columns, input.Column{Field: field, Kind: kind, Do: do})
		}
		return len(columns) - 1
	}
	rel, weight := add(t.rel, input.Key, ""), add(t.weight, input.Float, leaveOut("--weight-col"))
	time := add(t.time, input.Time, leaveOut("--time-col"))
	values := len(columns)
	columns = append(columns, t.storedInputs()...)
	c, mode := &EdgeChunk{Split: t.split}, table.Restarts
	src := end{t.src, t.srcType, t.srcKeys, newPrefixer(t.srcType)}
	dst := end{t.dst, t.dstType, t.dstKeys, newPrefixer(t.dstType)}
	name := []byte(t.relation)
	if s.rows {
		mode = table.Skips // text ids are wrong, not a reason to read all ids as text
	}
	return s.tables.Each(ctx, t.Table, mode, input.Spec{Columns: columns},
		func(b *input.Batch) error {
			c.Where = b.Where
			if err := s.ends(ctx, t, c, b, &src, &dst); err != nil {
				return err
			}
			if t.rel >= 0 {
				c.TypeText = b.Columns[rel].Texts
			} else if t.relation != "" {
				c.TypeText = slices.Repeat([][]byte{name}, b.Rows)
			}
			if t.weight >= 0 {
				c.Weight, c.Rounded = b.Columns[weight].Floats, RoundedWeights{}
				for _, r := range b.Columns[weight].Rounded {
					c.Rounded.add(func() string { return c.Position(r.Row) }, r.Text,
						c.Weight[r.Row])
				}
			}
			if t.time >= 0 {
				c.Time = b.Columns[time].Integers
			}
			if t.stored != nil {
				stored := b.Columns[values:]
				if err := t.parseStored(c, stored, b.Rows, s.tables.Missing); err != nil {
					return err
				}
			}
			return fn(c)
		})
}

// ends takes the ends of edges from the first two columns of a batch.
func (s *textGraph) ends(ctx context.Context, t *edgeTable, c *EdgeChunk, b *input.Batch,
	src, dst *end) (err error) {
	if id := s.idKind(); id == input.ID {
		c.SrcInt, c.DstInt = b.Columns[0].IDs, b.Columns[1].IDs
		return nil
	}
	if c.SrcInt, c.SrcText, err = s.ids(ctx, t, src, &b.Columns[0], &c.Where); err != nil {
		return err
	}
	c.DstInt, c.DstText, err = s.ids(ctx, t, dst, &b.Columns[1], &c.Where)
	return err
}

// textSplit reports whether a file is there and not an array.
func textSplit(file string) bool { return path.Ext(file) != ".npy" && path.Ext(file) != ".npz" }
