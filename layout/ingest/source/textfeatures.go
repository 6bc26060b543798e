package source

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// featureColumn matches names of columns that are taken for features without a flag, and
// featureList names of columns of lists.
var (
	featureColumn = regexp.MustCompile(`^(f|x|feat|feature)_?[0-9]+$`)
	featureList   = regexp.MustCompile(`^(x|feats?|features?|emb|embeddings?|vectors?)$`)
)

// openFeatures opens the file of --features: an id and numbers.
func (s *textGraph) openFeatures() (*nodeTable, error) {
	n, err := s.openNodeTable(s.locate(s.opt.Features))
	if err != nil {
		return nil, err
	}
	if err := s.featureColumns(n); err != nil {
		return nil, err
	}
	if len(n.features) == 0 {
		return nil, input.Wrong(n.Path, "", "there is no column but the id")
	}
	s.listColumns(n.Table, n.roles())
	return n, nil
}

// storedFeatures takes the columns of features that those of a store are made of.
func (n *nodeTable) storedFeatures(of *kv.NodeTypeMeta) {
	if of.Encoding == nil {
		return
	}
	for _, c := range of.Encoding.Columns {
		at := n.columnOf(c.Name)
		if at < 0 {
			continue
		}
		n.features = append(n.features, at)
		if c.Category {
			n.categories = append(n.categories, at)
		}
	}
}

// columnOf returns where a column is, -1 if the table does not have it.
func (n *nodeTable) columnOf(name string) int {
	for c := range n.Width {
		if n.Name(c) == name {
			return c
		}
	}
	return -1
}

// restore returns the encoder that made the features of a store.
func (n *nodeTable) restore(of *kv.FeatureEncoding) *table.Encoder {
	said := map[string]bool{}
	return table.Restore(of.Columns, n.columnOf, func(column, word string) {
		if !said[column] && n.s.opt.Notes != nil {
			said[column] = true
			// A note that cannot be written must not end the ingest.
			_, _ = fmt.Fprintf(n.s.opt.Notes, "ingest: %s: features of the store have no number "+
				"for the word %.40q of column %s, and maybe others: there all its numbers are 0\n",
				n.Path, word, column)
		}
	})
}

// featureColumns finds the columns of features: by flags, else by their usual names; in a file of
// --features, all but the id. A column that has another role is no feature.
func (s *textGraph) featureColumns(n *nodeTable) (err error) {
	used := slices.AppendSeq([]int{n.id, n.label, n.split}, maps.Keys(n.taken))
	own := s.opt.Features != ""
	if own {
		used = append(used, s.notFeatures(n)...)
	}
	var taken []int
	if s.opt.Categorical != "" {
		n.categories, taken, err = s.tables.Columns(n.Table, "--categorical", s.opt.Categorical,
			used...)
		if err = firstOf(err, s.takenTwice(n, "--categorical", taken)); err != nil {
			return err
		}
	}
	list := s.opt.FeatureCols
	if list == "*" && s.keeps && !s.hasNumbers(n, used) {
		list = "" // other types have numbers
	}
	if list != "" {
		n.features, taken, err = s.tables.Columns(n.Table, "--feature-cols", list,
			append(used, n.categories...)...)
		taken = slices.DeleteFunc(taken, func(c int) bool {
			return slices.Contains(n.categories, c)
		})
		if err = firstOf(err, s.takenTwice(n, "--feature-cols", taken)); err != nil {
			return err
		}
	} else {
		for c := range n.Width {
			if !slices.Contains(used, c) && (own || looksFeature(n.Table, c)) {
				n.features = append(n.features, c)
			}
		}
	}
	for _, c := range n.categories {
		if !slices.Contains(n.features, c) {
			n.features = append(n.features, c)
		}
	}
	if list+s.opt.Categorical != "" && len(n.features) == 0 {
		return input.Usage("--feature-cols and --categorical name only columns of %s that have "+
			"another role", n.Path)
	}
	return n.refuseText()
}

// hasNumbers reports whether a column that is not in use has numbers.
func (s *textGraph) hasNumbers(n *nodeTable, used []int) bool {
	for c := range n.Width {
		if !slices.Contains(used, c) && s.tables.Numeric(n.Table, c) {
			return true
		}
	}
	return false
}

func firstOf(err, next error) error {
	if err != nil {
		return err
	}
	return next
}

// notFeatures returns the columns of a file of features that have labels or splits: by flag, or by
// name if the columns of features have no names of their own.
func (s *textGraph) notFeatures(n *nodeTable) []int {
	columns := s.flaggedNodes(n.Table)
	if list := s.opt.FeatureCols; list == "" || list == "*" {
		columns = append(columns, n.Named(labelNames, n.id), n.Named(splitNames, n.id))
	}
	return columns
}

// takenTwice complains of columns that are named as features and have another role: an error if a
// flag gives it too, and a note if it was found by the name.
func (s *textGraph) takenTwice(n *nodeTable, flag string, columns []int) error {
	for _, c := range columns {
		other, given := "--label-col", s.opt.LabelCol
		switch {
		case c == n.id:
			other, given = "--id-col", s.opt.IDCol
		case c == n.split, n.Name(c) == s.opt.SplitCol:
			other, given = "--split-col", s.opt.SplitCol
		}
		if given != "" {
			return input.Usage("%s and %s both name the column %s: a label, a split or an id "+
				"is no feature", other, flag, n.Name(c))
		}
		do := other + " " + NoColumn + " makes it one"
		if c == n.id {
			do = other + " names the ids"
		}
		s.note("%s: the column %s is the %s, and no feature; %s", n.Path, n.Name(c),
			n.roles()[c], do)
	}
	return nil
}

// looksFeature reports whether a column has a name that features usually have.
func looksFeature(t *table.Table, c int) bool {
	if t.Names == nil {
		return false
	}
	name := strings.ToLower(t.Names[c])
	return featureColumn.MatchString(name) || t.List(c) && featureList.MatchString(name)
}

// refuseText returns an error if a column of features has text and no number in its first rows.
func (n *nodeTable) refuseText() error {
	for _, c := range n.features {
		if slices.Contains(n.categories, c) || n.List(c) {
			continue
		}
		words := 0
		word := ""
		for _, r := range n.Sample {
			f := r[c]
			if f != "" && !slices.Contains(n.s.tables.Missing, f) && !table.IsNumeric(f) {
				words++
				word = f
			}
		}
		if words == 0 || 2*words < len(n.Sample) {
			continue
		}
		name := n.Name(c)
		if pointed := table.WithPoint(word); pointed != "" {
			return input.Wrong(n.Path, "a number has a point: "+pointed+"; or leave the column "+
				"out of --feature-cols", "column %q has %.40q, which is not a number", name, word)
		}
		return input.Wrong(n.Path, fmt.Sprintf("--categorical %s makes a number of each of its "+
			"values; or leave it out of --feature-cols", name), "column %q has text, such as "+
			"%.40q, and features are numbers", name, word)
	}
	return nil
}

// useFeatures measures the columns where that is needed, which takes a pass over the table.
func (n *nodeTable) useFeatures(ctx context.Context) error {
	s := n.s
	fill, err := table.ParseFill(s.opt.Fill)
	if err != nil {
		return input.Usage("%w", err)
	}
	var list []table.FeatureColumn
	for _, c := range n.features {
		list = append(list, table.FeatureColumn{Field: c, Name: n.Name(c), Dim: n.Dim(c),
			List: n.List(c), Category: slices.Contains(n.categories, c)})
	}
	e := table.NewEncoder(list, fill)
	if of := s.opt.storedType(s.nodesType); of != nil {
		e = n.restore(of.Encoding)
	} else if e.Measures() {
		err := n.each(ctx, nodeWants{features: true}, func(r *nodeRows) error {
			return e.Measure(r.batch, r.first)
		})
		if err != nil {
			return err
		}
		e.Finish()
	}
	if what := e.Describe(); what != "" && !s.opt.isOfTyped() {
		s.note("%s: %s", n.Path, what)
	}
	dtype := "text"
	if n.Columnar() {
		dtype = "columns"
	}
	s.info.Features = []FeatureInfo{{Name: "features", Dim: e.Dim(), DType: dtype,
		Encodings: []*kv.FeatureEncoding{{Columns: e.Encoding()}}}}
	if n.Names != nil {
		s.info.Features[0].Columns = e.Names()
	}
	s.features["features"] = func(ctx context.Context, fn func(*RowChunk) error) error {
		row := &RowChunk{}
		return n.each(ctx, nodeWants{features: true}, func(r *nodeRows) error {
			row.IDs, row.Rows, row.Where = &r.ids, r.batch.Vector, r.ids.Where
			if !e.Plain() {
				if row.Rows, err = e.Encode(r.batch, r.first); err != nil {
					return err
				}
			}
			return fn(row)
		})
	}
	return nil
}
