package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/train"
	"gdb/train/runs"
	"gdb/train/setting"
)

// Of reads what a run recorded. What a test would say that the run does not keep is left out.
func Of(ctx context.Context, st *layout.Store, run string) (d *Data, err error) {
	if runs.PredictsLinks(st, run) {
		d, err = linkData(runs.Open(st, run))
	} else {
		d, err = nodeData(runs.Open(st, run))
	}
	if err != nil {
		return nil, err
	}
	d.Store, d.Data = st.Dir(), Facts(st.Meta())
	all, err := st.Catalog().Runs(ctx)
	for _, r := range all {
		if r.Name == run {
			d.Status, d.Metric, d.Tested = r.Status, r.Metric, r.TestScore()
		}
	}
	return d, err
}

// nodeData reads what a run that predicts nodes recorded.
func nodeData(dir runs.Dir) (*Data, error) {
	file, err := dir.ReadFile()
	if err != nil {
		return nil, err
	}
	d := &Data{Run: dir.Name(), Made: file.GDB, Settings: setting.SetTexts(&file.Config)}
	if d.Test, err = train.Kept(&file, "test"); err != nil {
		return nil, err
	}
	d.Epochs, err = Epochs(dir)
	for _, e := range d.Epochs {
		if e.Best {
			d.Best, d.Val = e.Epoch, e.Val
		}
	}
	return d, err
}

// IsComplete reports whether the test that a run kept has all that one made now would have.
func (d *Data) IsComplete() bool {
	return d.Test != nil && (d.Test.ClassMetrics == nil || d.Test.Curves != nil)
}

// SeveralOf reads what several runs recorded.
func SeveralOf(ctx context.Context, st *layout.Store, names []string) (*Several, error) {
	s := &Several{Store: st.Dir(), Data: Facts(st.Meta())}
	var err error
	if s.Differing, err = Differing(st, names); err != nil {
		return nil, err
	}
	for _, name := range names {
		d, err := Of(ctx, st, name)
		if err != nil {
			return nil, err
		}
		s.Runs = append(s.Runs, d)
	}
	return s, nil
}

// ErrOtherTasks is the error of runs that cannot be compared.
var ErrOtherTasks = errors.New("have other tasks, and so other settings")

// Differing returns the settings that are not the same in all runs: a name, and a value for each.
func Differing(st *layout.Store, names []string) (rows [][]string, err error) {
	var first [][2]string
	for i, name := range names {
		file, err := runs.Open(st, name).ReadAny()
		if err != nil {
			return nil, err
		}
		settings := setting.Texts(file.Settings())
		if i == 0 {
			first = settings
			for _, s := range settings {
				rows = append(rows, []string{s[0]})
			}
		}
		if len(settings) != len(first) {
			return nil, fmt.Errorf("%s and %s %w", names[0], name, ErrOtherTasks)
		}
		for k, s := range settings {
			rows[k] = append(rows[k], s[1])
		}
	}
	return slices.DeleteFunc(rows, func(row []string) bool {
		return row[0] == "run" || !slices.ContainsFunc(row[2:], func(v string) bool {
			return v != row[1]
		})
	}), nil
}

// Epochs reads the epochs of a run that predicts nodes.
func Epochs(dir runs.Dir) (epochs []runs.Epoch, err error) {
	err = dir.Epochs(func(e *runs.Epoch) error {
		epochs = append(epochs, *e)
		return nil
	})
	return epochs, err
}

// Facts returns what gdb info says of the data of a store, as names and values.
func Facts(m *kv.Meta) (rows [][2]string) {
	add := func(name, format string, args ...any) {
		rows = append(rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	add("source", "%s: %s", m.Source.Format, strings.Join(m.Source.Paths, ", "))
	add("nodes", "%s", count(m.Nodes))
	add("edges", "%s", count(m.Edges))
	if n := len(m.EdgeTypes); n > 0 {
		add("edge types", "%d: %s", n, message.First(m.EdgeTypes, 20))
	}
	for _, t := range m.NodeTypes {
		add("nodes of type "+t.Name, "%s", count(t.Nodes))
	}
	for _, f := range m.Features {
		add("features "+f.Name, "%d x %s", f.Dim, f.DType)
		if names := m.FeatureColumns(f).Sources(); len(names) > 0 {
			add("columns of "+f.Name, "%d: %s", len(names), message.First(names, 20))
		}
	}
	if m.Labels != nil && m.Labels.Kind == "target" {
		add("labels", "numbers, %s nodes", count(m.Labels.Labeled))
	} else if m.Labels != nil {
		add("labels", "%s, %s nodes, %d classes", m.Labels.Kind, count(m.Labels.Labeled),
			len(m.Labels.Classes))
		if n := m.Labels.Unknown; n > 0 {
			add("unknown labels", "%s", count(n))
		}
	}
	for _, s := range m.Splits {
		add("split "+s.Name, "%s nodes", count(s.Count))
	}
	add("size", "%s", mem.FormatSize(m.Bytes()))
	add("identity", "%s", m.UUID)
	return rows
}
