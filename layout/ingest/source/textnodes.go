package source

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gdb/layout/ingest/text"
)

// featureColumn are names of columns that are taken for features without a flag.
var featureColumn = regexp.MustCompile(`^(f|x|feat|feature)_?[0-9]+$`)

// nodeTable is a file with a row for each node; a column that is not there is -1. Without an id
// column rows are node numbers.
type nodeTable struct {
	*textTable
	id, label int
	features  []int
	target    bool // labels are numbers to predict
}

// openNodes opens the node file, and the files of --labels and --features.
func (s *textGraph) openNodes(file string) error {
	var nodes, labels, features *nodeTable
	var err error
	if file != "" {
		if nodes, err = s.openNodeTable(file); err != nil {
			return err
		}
		if err := s.nodeColumns(nodes); err != nil {
			return err
		}
		s.nodes = func(ctx context.Context, fn func(*IDChunk) error) error {
			return s.eachNode(ctx, nodes, badRestarts,
				func(c *IDChunk, _ *text.Batch) error { return fn(c) })
		}
		labels, features = nodes, nodes
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
	if s.opt.LabelCol != "" && labels == nil || s.opt.FeatureCols != "" && features == nil {
		return WrongUsage("--label-col and --feature-cols need --nodes, --labels or " +
			"--features")
	}
	if labels != nil && labels.label >= 0 {
		s.useLabels(labels)
	}
	if features != nil && len(features.features) > 0 {
		s.useFeatures(features)
	}
	return nil
}

// openNodeTable opens a file of nodes and finds the id column.
func (s *textGraph) openNodeTable(file string) (*nodeTable, error) {
	t, err := s.openTable(file, tableHints{known: nodeNames, header: s.opt.Header})
	if err != nil {
		return nil, err
	}
	n := &nodeTable{textTable: t, label: -1}
	if n.id = t.named(idNames); n.id < 0 {
		n.id = 0
	}
	if s.opt.IDCol != "" {
		if n.id, err = t.column("--id-col", s.opt.IDCol); err != nil {
			return nil, err
		}
	}
	s.guessIDs(t, n.id)
	return n, nil
}

// nodeColumns finds labels and features in the node file.
func (s *textGraph) nodeColumns(n *nodeTable) (err error) {
	if s.opt.Labels == "" {
		n.label = n.named(labelNames)
		if s.opt.LabelCol != "" {
			if n.label, err = n.column("--label-col", s.opt.LabelCol); err != nil {
				return err
			}
		}
	}
	switch {
	case s.opt.Features != "":
	case s.opt.FeatureCols != "":
		n.features, err = n.columns("--feature-cols", s.opt.FeatureCols, n.id, n.label)
	default:
		for c, name := range n.names {
			if featureColumn.MatchString(strings.ToLower(name)) && c != n.id && c != n.label {
				n.features = append(n.features, c)
			}
		}
	}
	s.noteUnusedColumns(n.textTable, append([]int{n.id, n.label}, n.features...))
	return err
}

// openLabels opens the file of --labels: an id and a label.
func (s *textGraph) openLabels() (*nodeTable, error) {
	n, err := s.openNodeTable(locate(s.fs, s.dir, s.opt.Labels))
	if err != nil {
		return nil, err
	}
	switch n.label = n.named(labelNames); {
	case s.opt.LabelCol != "":
		n.label, err = n.column("--label-col", s.opt.LabelCol)
	case n.label < 0 && n.width == 2:
		n.label = 1 - min(n.id, 1)
	case n.label < 0:
		err = &BadInputError{Where: n.path, What: "which column is the label?",
			Do: "name it with --label-col"}
	}
	return n, err
}

// openFeatures opens the file of --features: an id and numbers.
func (s *textGraph) openFeatures() (*nodeTable, error) {
	n, err := s.openNodeTable(locate(s.fs, s.dir, s.opt.Features))
	if err != nil {
		return nil, err
	}
	if s.opt.FeatureCols != "" {
		n.features, err = n.columns("--feature-cols", s.opt.FeatureCols, n.id)
		return n, err
	}
	for c := range n.width {
		if c != n.id {
			n.features = append(n.features, c)
		}
	}
	if len(n.features) == 0 {
		return nil, &BadInputError{Where: n.path, What: "there is no column but the id"}
	}
	return n, nil
}

// useLabels guesses by the sample what kind of labels they are; the labels step looks at all.
func (s *parts) useLabels(n *nodeTable) {
	fraction, numbers := false, true
	for _, r := range n.sample {
		if v := r[n.label]; !noLabel([]byte(v)) {
			x, ok := text.ParseFloat([]byte(v))
			fraction = fraction || ok && HasFraction(x)
			numbers = numbers && ok
		}
	}
	s.info.Labels, s.labelled = &LabelInfo{Kind: "class", Text: true}, n
	if fraction && numbers {
		s.ForceTargets()
		s.note("%s: labels have fractions: they are numbers to predict, not classes", n.path)
	}
	s.labels = func(ctx context.Context, fn func(*LabelChunk) error) error {
		return s.streamLabels(ctx, n, fn)
	}
}

// ForceTargets reads text labels as numbers to predict from now on.
func (s *parts) ForceTargets() {
	s.labelled.target = true
	s.info.Labels.Kind, s.info.Labels.Text = "target", false
}

// HasFraction tells numbers that can be no class.
func HasFraction(x float32) bool { return x-x == 0 && x != float32(int64(x)) }

func noLabel(v []byte) bool {
	return len(v) == 0 || len(v) == 3 && bytes.EqualFold(v, []byte("nan"))
}

func (s *parts) useFeatures(n *nodeTable) {
	s.info.Features = []FeatureInfo{{Name: "features", Dim: len(n.features), DType: "text"}}
	s.features["features"] = func(ctx context.Context, fn func(*RowChunk) error) error {
		row := &RowChunk{}
		return s.eachNode(ctx, n, badSkips, func(c *IDChunk, b *text.Batch) error {
			row.IDs, row.Rows, row.Where = c, b.Vector, c.Where
			return fn(row)
		})
	}
}

// eachNode streams a node file. If bad lines are to be skipped, every pass reads all columns that
// have a role, so that all passes skip the same lines.
func (s *parts) eachNode(ctx context.Context, n *nodeTable, mode onBad,
	fn func(*IDChunk, *text.Batch) error) error {
	columns := []text.Column{{Field: n.id, Kind: s.idKind()}}
	if n.label >= 0 {
		kind := text.Text
		if n.target {
			kind = text.Optional
		}
		columns = append(columns, text.Column{Field: n.label, Kind: kind})
	}
	vector := n.features
	if mode == badRestarts && s.opt.SkipBad == 0 {
		columns, vector = columns[:1], nil
	}
	c := &IDChunk{}
	return s.eachBatch(ctx, n.textTable, mode, columns, vector, func(b *text.Batch) error {
		c.Ints, c.Text, c.Where = b.Columns[0].IDs, b.Columns[0].Texts, n.where(b)
		return fn(c, b)
	})
}

func (s *parts) streamLabels(ctx context.Context, n *nodeTable,
	fn func(*LabelChunk) error) error {
	out := &LabelChunk{}
	with := *n
	if s.opt.SkipBad == 0 {
		with.features = nil
	}
	return s.eachNode(ctx, &with, badSkips, func(c *IDChunk, b *text.Batch) error {
		out.IDs, out.Where = c, c.Where
		out.Target, out.Text = b.Columns[1].Floats, b.Columns[1].Texts
		for i, v := range out.Text {
			if noLabel(v) {
				out.Text[i] = nil
			}
		}
		return fn(out)
	})
}

// addTextSplit adds a file of one id a line, or with a header and an id column. rows says that ids
// are row numbers, and must be among them.
func addTextSplit(s *parts, name, file string, rows bool) error {
	// --header and --id-col are meant for the tables; a list of ids has a header if it looks so.
	t, err := s.openTable(file, tableHints{known: idNames})
	if err != nil {
		return err
	}
	if t.width > 1 && t.names == nil && t.format.Delim == 0 {
		// Without a header there is nothing but ids, and these have blanks in them.
		line := &text.Format{Delim: '\t', Quotes: true, Comment: t.format.Comment}
		if t, err = s.openTable(file, tableHints{format: line}); err != nil {
			return err
		}
	}
	id := max(0, t.named(idNames), slices.Index(t.names, s.opt.IDCol))
	if t.width > 1 && t.names == nil {
		return &BadInputError{Where: file, What: fmt.Sprintf("its rows have %d fields", t.width),
			Do: "a split has one node id on each line"}
	}
	if slices.Contains(s.info.Splits, name) {
		return WrongUsage("the split %s is there twice", name)
	}
	s.info.Splits = append(s.info.Splits, name)
	s.splits = append(s.splits, func(ctx context.Context, fn func(*SplitChunk) error) error {
		mode := badSkips
		if rows {
			mode = badFails
		}
		columns := []text.Column{{Field: id, Kind: s.idKind()}}
		c := &SplitChunk{Name: name}
		return s.eachBatch(ctx, t, mode, columns, nil, func(b *text.Batch) error {
			c.IDs = IDChunk{Ints: b.Columns[0].IDs, Text: b.Columns[0].Texts, Where: t.where(b)}
			if i := s.firstOutside(c.IDs.Ints); rows && i >= 0 {
				return s.outOfRange(c.IDs.Position(i), "node", c.IDs.Ints[i], false)
			}
			return fn(c)
		})
	})
	return nil
}
