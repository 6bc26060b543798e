package source

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"gdb/layout/ingest/columnar"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// openLabels opens the file of --labels: an id and a label.
func (s *textGraph) openLabels() (*nodeTable, error) {
	n, err := s.openNodeTable(locate(s.fs, s.dir, s.opt.Labels))
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
		err = &input.Error{Where: n.Path, What: "which column is the label?",
			Do: "name it with --label-col"}
	}
	if err == nil {
		s.listColumns(n.Table, n.roles())
	}
	return n, err
}

// useLabels guesses by the sample what kind of labels they are; the labels step looks at all.
func (s *parts) useLabels(n *nodeTable) {
	s.labelled = n
	if s.opt.MultiLabel || s.opt.LabelSep != "" || n.List(n.label) {
		s.info.Labels = &LabelInfo{Kind: "multi", Text: true}
		s.labels = func(ctx context.Context, fn func(*LabelChunk) error) error {
			return s.streamManyLabels(ctx, n, fn)
		}
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

func (s *parts) noLabel(v []byte) bool {
	return len(v) == 0 || slices.Contains(s.tables.Missing, string(v)) || len(v) == 3 &&
		bytes.EqualFold(v, []byte("nan"))
}

func (s *parts) streamLabels(ctx context.Context, n *nodeTable, fn func(*LabelChunk) error) error {
	out := &LabelChunk{}
	return s.eachNode(ctx, n, table.Skips, nodeWants{label: true}, func(r *nodeRows) error {
		out.IDs, out.Where = &r.ids, r.ids.Where
		out.Target, out.Text = r.label.Floats, r.label.Texts
		for i, v := range out.Text {
			if s.noLabel(v) {
				out.Text[i] = nil
			}
		}
		return fn(out)
	})
}

// streamManyLabels streams a pair for each label of each row. An empty field is no label.
func (s *parts) streamManyLabels(ctx context.Context, n *nodeTable,
	fn func(*LabelChunk) error) error {
	ids := &IDChunk{}
	out := &LabelChunk{IDs: ids}
	sep := []byte(s.opt.LabelSep)
	if n.List(n.label) {
		sep = []byte(columnar.ListSep)
	}
	return s.eachNode(ctx, n, table.Skips, nodeWants{label: true}, func(r *nodeRows) error {
		ids.empty(&r.ids.Where)
		out.Text = out.Text[:0]
		for i, v := range r.label.Texts {
			for label := range eachLabel(v, sep) {
				if s.noLabel(label) {
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
