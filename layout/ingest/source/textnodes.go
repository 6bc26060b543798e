package source

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// nodeTable is a file with a row for each node; a column that is not there is -1. Without an id
// column rows are node numbers.
type nodeTable struct {
	*table.Table
	s                *parts
	id, label, split int
	features         []int
	categories       []int          // of features, the columns of text
	target           bool           // labels are numbers to predict
	taken            map[int]string // columns that are no features, and what they are
	// placed says that rows are the nodes from number first on: their ids are not read any more.
	placed bool
	first  uint64
}

// openNodes opens the node file, and the files of --labels and --features.
func (s *textGraph) openNodes(ctx context.Context, file string) error {
	if file == "" && (s.opt.LabelCol != "" && s.opt.Labels == "" ||
		s.opt.FeatureCols+s.opt.Categorical != "" && s.opt.Features == "") {
		return input.Usage("--label-col needs the file with that column, --nodes or --labels; " +
			"--feature-cols and --categorical need --nodes or --features")
	}
	var nodes, labels, features *nodeTable
	var err error
	if file != "" {
		if nodes, err = s.openNodeTable(file); err != nil {
			return s.nodesExchanged(err)
		}
		if err := s.swapped(nodes); err != nil {
			return err
		}
		if err := s.nodeColumns(nodes); err != nil {
			return s.nodesExchanged(err)
		}
		s.nodes = func(ctx context.Context, fn func(*IDChunk) error) error {
			return nodes.each(ctx, nodeWants{restart: true},
				func(r *nodeRows) error { return fn(&r.ids) })
		}
		labels, features, s.opened = nodes, nodes, nodes
	}
	if s.opt.Labels != "" {
		if labels, err = s.openLabels(); err != nil {
			return err
		}
	}
	if s.opt.Features != "" {
		if features, err = s.openFeatures(); err != nil {
			return err
		}
	}
	if labels != nil && labels.label >= 0 {
		labels.useLabels()
	}
	if nodes != nil && nodes.split >= 0 {
		if err := nodes.useSplits(ctx); err != nil {
			return err
		}
	}
	if features != nil && len(features.features) > 0 {
		return features.useFeatures(ctx)
	}
	return nil
}

// sayUnstored notes which columns of a table of nodes are left out, and what takes them.
func (s *textGraph) sayUnstored(n *nodeTable) {
	roles := n.roles()
	var names []string
	for c := range n.Width {
		if roles[c] == "" && !n.Unnamed(c) && !slices.Contains(n.Index, c) {
			names = append(names, n.Name(c))
		}
	}
	if s.keeps || len(names) == 0 || s.opt.FeatureCols == "*" { // which says what it leaves out
		return
	}
	label := ""
	if n.label < 0 {
		label = "--label-col a column of labels, "
	}
	s.note("%s: not stored: %s; --feature-cols names columns of features ('*': all numbers), %s"+
		"and --nodes node=FILE --edges node:edge:node=FILE keeps all", n.Path,
		table.Few(names), label)
}

// openNodeTable opens a file of nodes and finds the id column.
func (s *textGraph) openNodeTable(file string) (*nodeTable, error) {
	t, err := s.openNodesOnce(file)
	if err != nil {
		return nil, err
	}
	n := &nodeTable{Table: t, s: s.parts, label: -1, split: -1, taken: map[int]string{}}
	if n.id, err = s.idColumn(t); err != nil {
		return nil, err
	}
	for name, role := range s.taken {
		c, err := t.Column(role, name)
		if err != nil {
			return nil, err
		}
		n.taken[c] = role
	}
	s.guessIDs(t, n.id)
	s.info.IDsAbout += t.Lines
	return n, nil
}

// openNodesOnce opens a table of nodes, or returns the table of --nodes if the edges needed it
// before.
func (s *textGraph) openNodesOnce(file string) (t *table.Table, err error) {
	if file == s.nodesFile && s.nodeTable != nil {
		return s.nodeTable, nil
	}
	t, err = s.tables.Open(file, table.Hints{Known: nodeNames, Header: s.opt.Header})
	if file == s.nodesFile && err == nil {
		s.nodeTable = t
	}
	return t, err
}

// idColumn returns the column of ids: by flag, by name, the index of a frame of pandas, or the
// first. Where the first has another role, it asks.
func (s *textGraph) idColumn(t *table.Table) (int, error) {
	switch {
	case s.keeps && s.opt.IDCol != "" && isNone(t, s.opt.IDCol):
		if s.opt.SkipBad > 0 {
			return -1, input.Wrong(t.Path, "give it a key, or leave out --skip-bad",
				"its nodes are row numbers, so no row may be left out")
		}
		return -1, nil
	case s.opt.IDCol != "" && s.opt.Schema != "":
		return t.Column(s.opt.Schema+", key", s.opt.IDCol)
	case s.opt.IDCol != "":
		return t.Column("--id-col", s.opt.IDCol)
	}
	taken := s.flaggedNodes(t)
	if c := t.Named(idNames, taken...); c >= 0 {
		return c, nil
	}
	for c := range t.Width {
		if slices.Contains(t.Index, c) && len(t.Index) == 1 || t.Unnamed(c) {
			return c, nil
		}
	}
	taken = append(taken, t.Named(labelNames), t.Named(splitNames))
	switch {
	case t.Width == 1, !slices.Contains(taken, 0) && !looksFeature(t, 0):
		return 0, nil
	case t.Width == 2 && slices.Contains(taken, 0):
		return 1, nil
	}
	return 0, &input.Error{Where: t.Path, Flag: true,
		What: fmt.Sprintf("which column has the ids? The first, %s, has another role", t.Name(0)),
		Do:   "name it with --id-col"}
}

// flaggedNodes returns the columns of a table of nodes that flags name as labels and splits.
func (s *textGraph) flaggedNodes(t *table.Table) (columns []int) {
	for _, name := range []string{s.opt.LabelCol, s.opt.SplitCol} {
		if c, err := t.Column("", name); name != "" && err == nil {
			columns = append(columns, c)
		}
	}
	return columns
}

// nodesLooked is how many rows of a table of nodes are looked at for the ids of a first row.
const nodesLooked = 1 << 20

// nodesAmong returns which of some words are ids in the first rows of the table of nodes, and
// whether these are all its rows.
func (s *textGraph) nodesAmong(ctx context.Context, words []string) (known map[string]bool,
	all bool, err error) {
	t, err := s.openNodesOnce(s.nodesFile)
	if err != nil {
		return nil, false, err
	}
	id, err := s.idColumn(t)
	if err != nil {
		return nil, false, s.nodesExchanged(err)
	}
	return s.tables.Among(ctx, t, id, words, nodesLooked)
}

// nodeColumns finds labels and features in the node file.
func (s *textGraph) nodeColumns(n *nodeTable) (err error) {
	if s.opt.Labels == "" {
		if n.label, err = s.nodeColumn(n, "--label-col", s.opt.LabelCol, labelNames); err != nil {
			return err
		}
	}
	if n.split, err = s.nodeColumn(n, "--split-col", s.opt.SplitCol, splitNames); err != nil {
		return err
	}
	if of := s.opt.storedType(s.nodesType); of != nil {
		n.storedFeatures(of)
	} else if s.opt.Features == "" {
		if err := s.featureColumns(n); err != nil {
			return err
		}
	}
	s.listColumns(n.Table, n.roles())
	s.sayUnstored(n)
	return nil
}

// nodeColumn returns a column of a table of nodes: by flag, else by name among the columns that no
// flag names; -1 if there is none.
func (s *textGraph) nodeColumn(n *nodeTable, flag, value string, names []string) (c int,
	err error) {
	switch {
	case value == "":
		except := append(s.flaggedNodes(n.Table), n.id, n.label, n.split)
		return n.Named(names, except...), nil
	case isNone(n.Table, value):
		return -1, nil
	}
	if c, err = n.Column(flag, value); err != nil {
		return -1, err
	}
	for of, other := range map[string]int{"the ids": n.id, "the labels": n.label} {
		if c == other {
			return -1, input.Usage("%s %s: the column has %s: it has one role", flag, value, of)
		}
	}
	return c, nil
}

// roles returns what each column is taken for.
func (n *nodeTable) roles() map[int]string {
	roles := map[int]string{}
	for _, c := range n.features {
		roles[c] = "feature"
		if slices.Contains(n.categories, c) {
			roles[c] = "feature, by category"
		}
	}
	maps.Copy(roles, n.taken)
	roles[n.split], roles[n.label], roles[n.id] = "split", "label", "node id"
	return roles
}

// nodeWants are the columns that a pass over a table of nodes is for, besides the ids.
type nodeWants struct {
	label, split, features bool
	restart                bool // where an id is no integer, although others are
	keys                   bool // ids are read as integers: see Keys
	columns                []input.Column
}

// nodeRows are rows of a table of nodes.
type nodeRows struct {
	ids          IDChunk
	label, split *input.Values // nil if not wanted
	columns      []input.Values
	// batch holds the features: the categories in its columns from number first on.
	batch *input.Batch
	first int
}

// each streams the rows of the table. If bad lines are to be skipped, every pass reads all columns
// that have a role, so that all passes skip the same lines.
func (n *nodeTable) each(ctx context.Context, want nodeWants, fn func(*nodeRows) error) error {
	s, mode := n.s, table.Skips
	if want.restart {
		mode = table.Restarts
	}
	if s.opt.SkipBad > 0 {
		want.label, want.split, want.features = true, true, true
	}
	spec := input.Spec{Gaps: s.opt.Fill != "" || s.opt.isOfTyped()}
	id := n.idField(s.idKind())
	if want.keys && n.id >= 0 {
		id.Kind = input.Reference
	}
	others := want.label || want.split || want.features || len(want.columns) > 0
	if !n.placed || !others || s.opt.SkipBad > 0 {
		spec.Columns = append(spec.Columns, id)
	}
	add := func(wanted bool, field int, kind input.Kind) (at int) {
		if !wanted || field < 0 {
			return -1
		}
		spec.Columns = append(spec.Columns, input.Column{Field: field, Kind: kind})
		return len(spec.Columns) - 1
	}
	kind := input.Text
	if n.target {
		kind = input.Optional
	}
	label, split := add(want.label, n.label, kind), add(want.split, n.split, input.Text)
	r := &nodeRows{first: len(spec.Columns)}
	for _, c := range n.features {
		if want.features && slices.Contains(n.categories, c) {
			add(true, c, input.Text)
		} else if want.features {
			spec.Vector = append(spec.Vector, c)
		}
	}
	more := len(spec.Columns)
	spec.Columns = append(spec.Columns, want.columns...)
	typed, number := newPrefixer(s.nodesType), rowNumbers{first: n.first}
	return s.tables.Each(ctx, n.Table, mode, spec, func(b *input.Batch) error {
		r.columns = b.Columns[more:]
		switch {
		case n.placed || want.keys && n.id < 0:
			r.ids = IDChunk{Ints: number.next(b.Rows), Where: b.Where}
		case n.id < 0:
			number.fill(b.Columns[0].Texts)
			fallthrough
		default:
			typed.apply(b.Columns[0].Texts)
			r.ids = IDChunk{Ints: b.Columns[0].IDs, Text: b.Columns[0].Texts, Where: b.Where}
		}
		r.batch = b
		if label >= 0 {
			r.label = &b.Columns[label]
		}
		if split >= 0 {
			r.split = &b.Columns[split]
		}
		return fn(r)
	})
}

// swapped returns an error if the names of columns tell that files of edges and nodes were
// exchanged.
func (s *textGraph) swapped(n *nodeTable) error {
	ends := n.Named(srcNames) >= 0 && n.Named(dstNames) >= 0
	for _, t := range s.edges {
		if ends && t.Named(idNames) >= 0 && (t.Named(srcNames) < 0 || t.Named(dstNames) < 0) {
			return input.Wrong(n.Path, "exchange --edges and --nodes", "it has columns of "+
				"edges (%s), and %s has columns of nodes (%s)", table.Few(n.Names), t.Path,
				table.Few(t.Names))
		}
	}
	return nil
}

// nodesExchanged returns err, about a column that the file of nodes lacks; or, if a file of edges
// has it and not the ends of edges, an error that the two look exchanged.
func (s *textGraph) nodesExchanged(err error) error {
	if s.nodeTable == nil {
		return err
	}
	for _, t := range s.edges {
		if t.Named(srcNames) < 0 || t.Named(dstNames) < 0 {
			err = s.nodeTable.Exchanged(err, t.Table, s.opt.namedNodes())
		}
	}
	return err
}

// edgesExchanged returns err, about a column that a file of edges lacks; or, if the file of nodes
// has it, an error that the two look exchanged.
func (s *textGraph) edgesExchanged(t *table.Table, err error) error {
	if s.nodesFile == "" {
		return err
	}
	nodes, openErr := s.openNodesOnce(s.nodesFile)
	if openErr != nil {
		return err // the first of two errors
	}
	return t.Exchanged(err, nodes, []string{s.opt.SrcCol, s.opt.DstCol, s.opt.RelCol,
		s.opt.WeightCol, s.opt.TimeCol})
}
