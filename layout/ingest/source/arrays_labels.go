package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/layout/ingest/input"
)

func (s *arraySet) describeLabels(ctx context.Context) (err error) {
	var a *tables.Array
	if s.opt.Labels != "" {
		a, err = s.given("--labels", s.opt.Labels)
	} else {
		a, err = s.one("labels", "--labels", labelStems...)
	}
	if a == nil || err != nil {
		return err
	}
	if a.Stem == "labels_coo" {
		return s.labelPairs(a)
	}
	return s.labelRows(ctx, a)
}

// labelPairs takes an array of (node, label) pairs.
func (s *arraySet) labelPairs(a *tables.Array) error {
	switch {
	case len(a.Shape) != 2 || a.Shape[1] != 2:
		return wrongShape(a, "(pairs, 2): node and label")
	case a.Fortran && a.Shape[0] > 1:
		return fortran(a)
	case !a.DType.Integer():
		return wrongType(a, "integers")
	}
	s.info.Labels = &LabelInfo{Kind: "multi"}
	s.labels = func(ctx context.Context, fn func(*LabelChunk) error) error {
		return s.eachPair(ctx, a, fn)
	}
	return nil
}

func (s *arraySet) eachPair(ctx context.Context, a *tables.Array,
	fn func(*LabelChunk) error) error {
	c := &LabelChunk{IDs: &IDChunk{}, Where: Where{File: a.Name, Unit: "row"}}
	var classes []uint64
	return eachElements(ctx, a, 2, chunkRows, func(first int64, n int, b []byte) error {
		classes, c.IDs.Ints = mem.Sized(classes, n), mem.Sized(c.IDs.Ints, n)
		c.Class, c.Where.First = mem.Sized(c.Class, n), first
		c.IDs.Where = c.Where
		node, class := a.DType.IDs(c.IDs.Ints, b, 0, 2), a.DType.IDs(classes, b, 1, 2)
		for i, v := range classes {
			c.Class[i] = int64(v)
		}
		switch {
		case node >= 0:
			return s.outOfRange(c.Position(node), "label of node", c.IDs.Ints[node], true)
		case class >= 0:
			return input.Wrong(c.Position(class), "leave nodes without a label out",
				"label %d is negative", c.Class[class])
		}
		if i := s.firstOutside(c.IDs.Ints); i >= 0 {
			return s.outOfRange(c.Position(i), "label of node", c.IDs.Ints[i], false)
		}
		return fn(c)
	})
}

// firstOutside returns the index of the first id that is no node, or -1.
func (s *parts) firstOutside(ids []uint64) int {
	if s.nodesFrom == "" {
		return -1
	}
	for i, v := range ids {
		if v >= s.info.Nodes {
			return i
		}
	}
	return -1
}

// labelRows takes an array with a row for each node.
func (s *arraySet) labelRows(ctx context.Context, a *tables.Array) (err error) {
	if len(a.Shape) != 1 && len(a.Shape) != 2 || a.Elements() == 0 {
		return wrongShape(a, "(nodes,), or (nodes, labels) of 0 and 1")
	}
	rows := a.Shape[0]
	cols := a.Elements() / rows
	if a.Fortran && rows > 1 && cols > 1 {
		return fortran(a)
	}
	if err := s.setNodes(a.Name, rows); err != nil {
		return err
	}
	l := &labelArray{Array: a, cols: int(cols)}
	s.labels, s.info.Labels = l.stream, &LabelInfo{Kind: "class"}
	switch {
	case cols > 1:
		s.info.Labels.Kind = "multi"
		return nil
	case a.DType.Kind == 'f':
		target, err := l.hasFractions(ctx)
		if err != nil {
			return err
		}
		if target {
			l.target, s.info.Labels.Kind = true, "target"
			s.note("%s has fractions: labels are numbers to predict, not classes", a.Name)
			return nil
		}
	}
	if l.signs, err = l.hasSigns(ctx); l.signs {
		s.info.Labels.Text = true
		s.note("%s: -1 and 1 are the two classes; elsewhere -1 means unlabeled", a.Name)
	}
	return err
}

// doMultiHot says what columns of classes hold.
const doMultiHot = "labels in several columns are 0 or 1; NaN, -1 or -100 where it is unknown"

// doClass says what classes are.
const doClass = "classes are whole numbers from 0 on; -1, -100 or NaN is unlabeled"

// labelArray is an array of labels with a row for each node.
type labelArray struct {
	*tables.Array
	cols   int
	target bool
	signs  bool // -1 and 1 are the classes
}

// errFound stops a reading that has found what it looks for.
var errFound = errors.New("a label of another kind")

// any reads labels until one is as it is asked, and tells whether there is one.
func (l *labelArray) any(ctx context.Context, is func(v float64) bool) (bool, error) {
	var vals []float64
	err := eachElements(ctx, l.Array, 1, chunkRows, func(_ int64, n int, b []byte) error {
		vals = mem.Sized(vals, n)
		l.DType.Doubles(vals, b)
		if slices.ContainsFunc(vals, is) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// hasFractions reports whether a float is no whole number: then they are targets, not classes. NaN
// is unlabeled in both.
func (l *labelArray) hasFractions(ctx context.Context) (bool, error) {
	return l.any(ctx, func(v float64) bool { return v != math.Trunc(v) && v == v })
}

// hasSigns reports whether -1 and 1 are all labels: then they are two classes.
func (l *labelArray) hasSigns(ctx context.Context) (bool, error) {
	minus, one := false, false
	others, err := l.any(ctx, func(v float64) bool {
		minus, one = minus || v == Unlabeled, one || v == 1
		return v == v && v != 1 && v != Unlabeled
	})
	return minus && one && !others, err
}

// signClasses gives the classes -1 and 1 as text, in which -1 is a class too.
func (l *labelArray) signClasses(c *LabelChunk, n int, b []byte) {
	vals := make([]float64, n)
	l.DType.Doubles(vals, b)
	c.Text = mem.Sized(c.Text, n)
	for i, v := range vals {
		switch v {
		case 1:
			c.Text[i] = []byte("1")
		case Unlabeled:
			c.Text[i] = []byte("-1")
		default:
			c.Text[i] = nil
		}
	}
}

func (l *labelArray) stream(ctx context.Context, fn func(*LabelChunk) error) error {
	c := &LabelChunk{Where: Where{File: l.Name, Unit: "row"}}
	return eachElements(ctx, l.Array, int64(l.cols), max(1, chunkRows/l.cols),
		func(first int64, n int, b []byte) error {
			c.First, c.Where.First = uint64(first), first
			var err error
			switch {
			case l.cols > 1:
				err = l.multiHot(c, n, b)
			case l.target:
				c.Target = mem.Sized(c.Target, n)
				l.DType.Floats(c.Target, b)
			case l.signs:
				l.signClasses(c, n, b)
			case l.DType.Kind == 'f':
				vals := make([]float64, n)
				l.DType.Doubles(vals, b)
				err = floatClasses(c, vals, 1<<53)
			default:
				err = l.intClasses(c, n, b)
			}
			if err != nil {
				return err
			}
			return fn(c)
		})
}

func badClass(c *LabelChunk, i int, class any) error {
	return input.Wrong(c.Position(i), doClass, "label %v is not a class", class)
}

func (l *labelArray) intClasses(c *LabelChunk, n int, b []byte) error {
	ids := make([]uint64, n)
	l.DType.IDs(ids, b, 0, 1)
	c.Class = mem.Sized(c.Class, n)
	for i, v := range ids {
		c.Class[i] = int64(v)
		switch {
		case l.DType.Kind == 'u' && c.Class[i] < 0:
			return badClass(c, i, v)
		case c.Class[i] == Ignored:
			c.Class[i] = Unlabeled
		case c.Class[i] < Unlabeled:
			return badClass(c, i, c.Class[i])
		}
	}
	return nil
}

// floatClasses makes classes of numbers, of which those up to most are exact.
func floatClasses[T float32 | float64](c *LabelChunk, values []T, most T) error {
	c.Class = mem.Sized(c.Class, len(values))
	for i, v := range values {
		switch {
		case v != v || v == Ignored:
			c.Class[i] = Unlabeled
		case v != T(int64(v)) || v < Unlabeled || v > most:
			return badClass(c, i, v)
		default:
			c.Class[i] = int64(v)
		}
	}
	return nil
}

// multiHot turns rows of 0 and 1 into pairs. NaN, -1 and -100 are unknown, and a row of them is no
// label; a row of zeros says that the node is labeled, and of no class.
func (l *labelArray) multiHot(c *LabelChunk, n int, b []byte) error {
	vals := make([]float64, n*l.cols)
	l.DType.Doubles(vals, b)
	c.resetHot()
	for i := range n {
		row, hot := int64(c.First)+int64(i), vals[i*l.cols:(i+1)*l.cols]
		if k := addHot(c, uint64(row), row, hot); k >= 0 {
			return input.Wrong(fmt.Sprintf("%s row %d", l.Name, row), doMultiHot,
				"column %d is %v", k, hot[k])
		}
	}
	c.IDs.Where = c.Where
	return nil
}

// resetHot empties a chunk of pairs.
func (c *LabelChunk) resetHot() {
	if c.IDs == nil {
		c.IDs = &IDChunk{}
	}
	c.IDs.Ints, c.Class, c.Lines = c.IDs.Ints[:0], c.Class[:0], c.Lines[:0]
	c.Unknown = c.Unknown[:0]
}

// unknownHot reports whether a value leaves open whether the node has the class.
func unknownHot[T float32 | float64](v T) bool {
	return v != v || v == Unlabeled || v == Ignored
}

// addHot adds pairs of a node, on a line, and the classes of its row of 0 and 1, and those that are
// unknown where others are known; NoClass if all are 0. It returns the first column that is no such
// number, or -1.
func addHot[T float32 | float64](c *LabelChunk, node uint64, line int64, row []T) int {
	known := 0
	for k, v := range row {
		switch {
		case v == 0 || v == 1:
			known++
		case !unknownHot(v):
			return k
		}
	}
	if known == 0 {
		return -1
	}
	add := func(class int64, unknown bool) {
		c.IDs.Ints, c.Lines = append(c.IDs.Ints, node), append(c.Lines, line)
		c.Class, c.Unknown = append(c.Class, class), append(c.Unknown, unknown)
	}
	some := known < len(row)
	for k, v := range row {
		if unknown := unknownHot(v); unknown || v == 1 {
			some = true
			add(int64(k), unknown)
		}
	}
	if !some {
		add(NoClass, false)
	}
	return -1
}
