package source

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// openLabels opens the file of --labels: an id and a label.
func (s *textGraph) openLabels() (*nodeTable, error) {
	n, err := s.openNodeTable(s.locate(s.opt.Labels))
	if err != nil {
		return nil, err
	}
	named := n.Named(labelNames, n.id)
	switch {
	case s.opt.LabelCol != "":
		n.label, err = s.nodeColumn(n, "--label-col", s.opt.LabelCol, nil)
	case named < 0 && n.Width == 2:
		n.label = 1 - min(n.id, 1)
	default:
		n.label = named
	}
	if err == nil && n.label < 0 {
		err = input.Wrong(n.Path, "name it with --label-col", "which column is the label?")
	}
	if err == nil {
		s.listColumns(n.Table, n.roles())
	}
	return n, err
}

// useLabels guesses by the sample what kind of labels they are; the labels step looks at all.
func (n *nodeTable) useLabels() {
	s := n.s
	s.labelled = n
	if s.opt.MultiLabel || s.opt.LabelSep != "" || n.List(n.label) {
		s.info.Labels = &LabelInfo{Kind: "multi", Text: true}
		s.labels = n.streamManyLabels
		return
	}
	fraction, numbers := false, true
	for _, r := range n.Sample {
		if v := r[n.label]; !s.noLabel([]byte(v)) {
			x, ok := input.ParseFloat([]byte(v))
			fraction = fraction || ok && HasFraction(x)
			numbers = numbers && ok
		}
	}
	s.info.Labels = &LabelInfo{Kind: "class", Text: true}
	if fraction && numbers {
		s.ForceTargets()
		s.note("%s: labels have fractions: they are numbers to predict, not classes", n.Path)
	}
	s.labels = n.streamLabels
}

// ForceTargets reads text labels as numbers to predict from now on.
func (s *parts) ForceTargets() {
	s.labelled.target = true
	s.info.Labels.Kind, s.info.Labels.Text = "target", false
}

// HasFraction reports whether a number has a fraction, and so can be no class.
func HasFraction(x float32) bool { return x-x == 0 && x != float32(int64(x)) }

func (s *parts) noLabel(v []byte) bool {
	return len(v) == 0 || slices.Contains(s.tables.Missing, string(v)) || len(v) == 3 &&
		bytes.EqualFold(v, []byte("nan"))
}

func (n *nodeTable) streamLabels(ctx context.Context, fn func(*LabelChunk) error) error {
	out := &LabelChunk{}
	return n.each(ctx, nodeWants{label: true}, func(r *nodeRows) error {
		out.IDs, out.Where = &r.ids, r.ids.Where
		out.Target, out.Text = r.label.Floats, r.label.Texts
		for i, v := range out.Text {
			if n.s.noLabel(v) {
				out.Text[i] = nil
			}
		}
		return fn(out)
	})
}

// streamManyLabels streams a pair for each label of each row. An empty field is no label.
func (n *nodeTable) streamManyLabels(ctx context.Context, fn func(*LabelChunk) error) error {
	ids := &IDChunk{}
	out := &LabelChunk{IDs: ids}
	sep := []byte(n.s.opt.LabelSep)
	if n.List(n.label) {
		sep = []byte(columnar.ListSep)
	}
	return n.each(ctx, nodeWants{label: true}, func(r *nodeRows) error {
		ids.empty(&r.ids.Where)
		out.Text = out.Text[:0]
		for i, v := range r.label.Texts {
			for label := range eachLabel(v, sep) {
				if n.s.noLabel(label) {
					continue
				}
				ids.add(&r.ids, i)
				out.Text = append(out.Text, label)
			}
		}
		out.Where = ids.Where
		if len(out.Text) == 0 {
			return nil
		}
		return fn(out)
	})
}

// eachLabel cuts a field at a separator; without one it is one label.
func eachLabel(v, sep []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(sep) == 0 {
			yield(v)
			return
		}
		for part := range bytes.SplitSeq(v, sep) {
			if !yield(bytes.TrimSpace(part)) {
				return
			}
		}
	}
}

// addTextSplit adds a file of one id a line, or with a header and an id column. rows says that ids
// are row numbers, and must be among them.
func (s *parts) addTextSplit(name, file string, rows bool) error {
	// --header and --id-col are meant for the tables; a list of ids has a header if it looks so.
	t, err := s.tables.Open(file, table.Hints{Known: idNames})
	if err != nil {
		return err
	}
	if t.Width > 1 && t.Names == nil && t.Format.Delim == 0 {
		// Without a header there is nothing but ids, and these have blanks in them.
		line := &input.Format{Delim: '\t', Quotes: true, Comment: t.Format.Comment}
		if t, err = s.tables.Open(file, table.Hints{Format: line}); err != nil {
			return err
		}
	}
	id := max(0, t.Named(idNames), slices.Index(t.Names, s.opt.IDCol))
	if t.Names != nil && t.Width == 1 && s.info.TextIDs && t.Names[0] != s.opt.IDCol &&
		t.Named(idNames) < 0 {
		// Where ids are text, the first line is one too, even among integers.
		if t, err = s.tables.Open(file, table.Hints{Header: "no"}); err != nil {
			return err
		}
	}
	if t.Width > 1 && t.Names == nil {
		return input.Wrong(file, "a split has one node id on each line", "its rows have %d fields",
			t.Width)
	}
	if slices.Contains(s.info.Splits, name) {
		return input.Usage("the split %s is there twice", name)
	}
	s.info.Splits = append(s.info.Splits, name)
	s.listColumns(t, map[int]string{id: "ids of " + name})
	s.splits = append(s.splits, func(ctx context.Context, fn func(*SplitChunk) error) error {
		mode := table.Skips
		if rows {
			mode = table.Fails
		}
		columns := []input.Column{{Field: id, Kind: s.idKind()}}
		c, typed := &SplitChunk{Name: name}, newPrefixer(s.nodesType)
		return s.tables.Each(ctx, t, mode, input.Spec{Columns: columns},
			func(b *input.Batch) error {
				typed.apply(b.Columns[0].Texts)
				c.IDs = IDChunk{Ints: b.Columns[0].IDs, Text: b.Columns[0].Texts, Where: b.Where}
				if i := s.firstOutside(c.IDs.Ints); rows && i >= 0 {
					return s.outOfRange(c.IDs.Position(i), "node", c.IDs.Ints[i], false)
				}
				return fn(c)
			})
	})
	return nil
}

// splitWords are what people write in a column of splits, by the name of the split; "" is none.
var splitWords = map[string]string{"train": "train", "training": "train", "val": "val",
	"valid": "val", "validation": "val", "dev": "val", "test": "test", "testing": "test",
	"": "", "none": "", "unused": "", "nan": ""}

// splitsMost is the most splits that a column can name.
const splitsMost = 64

// useSplits takes the splits that a column names, which takes a pass over it.
func (n *nodeTable) useSplits(ctx context.Context) error {
	s := n.s
	names := map[string]bool{}
	err := n.each(ctx, nodeWants{split: true}, func(r *nodeRows) error {
		for i, word := range r.split.Texts {
			name := s.splitOf(word)
			if name == "" || names[name] {
				continue
			}
			if _, known := splitWords[strings.ToLower(name)]; !known && s.opt.SplitCol == "" {
				return input.Wrong(r.ids.Position(i), fmt.Sprintf("--split-col %s takes all "+
					"its words for names of splits; %s", n.Name(n.split), leaveOut("--split-col")),
					"column %q, %.40q, is none of train, val, test and none", n.Name(n.split), name)
			}
			if len(names) == splitsMost {
				return input.Wrong(r.ids.Position(i), "is this the column of splits?",
					"there are more than %d splits", splitsMost)
			}
			names[name] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	sorted := slices.Sorted(maps.Keys(names))
	s.info.Splits = append(s.info.Splits, sorted...)
	s.splits = append(s.splits, func(ctx context.Context, fn func(*SplitChunk) error) error {
		return n.streamSplits(ctx, sorted, fn)
	})
	return nil
}

// splitOf returns the split that a word in a column names; "" if none.
func (s *parts) splitOf(word []byte) string {
	if slices.Contains(s.tables.Missing, string(word)) {
		return ""
	}
	if name, known := splitWords[strings.ToLower(string(word))]; known {
		return name
	}
	return string(word)
}

func (n *nodeTable) streamSplits(ctx context.Context, names []string,
	fn func(*SplitChunk) error) error {
	chunks := map[string]*SplitChunk{}
	for _, name := range names {
		chunks[name] = &SplitChunk{Name: name}
	}
	return n.each(ctx, nodeWants{split: true}, func(r *nodeRows) error {
		for _, c := range chunks {
			c.IDs.empty(&r.ids.Where)
		}
		for i, word := range r.split.Texts {
			name := n.s.splitOf(word)
			if name == "" {
				continue
			}
			c := chunks[name]
			if c == nil {
				return fmt.Errorf("ingest: %s: the file changed while it was read", n.Path)
			}
			c.IDs.add(&r.ids, i)
		}
		for _, name := range names {
			if c := chunks[name]; c.IDs.Len() > 0 {
				if err := fn(c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
