package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/rowfile"
)

// labelsResult is what the labels step gives; Meta is nil if there are no labels.
type labelsResult struct {
	Meta  *kv.LabelsMeta
	Files []kv.FileMeta
	// Rows are the sorted (node, label) pairs of multi-labels: of them the catalog gets its set.
	Rows []extsort.Run
}

func (p *pipeline) labels(ctx context.Context, m *nodeMap) (*labelsResult, error) {
	return steps.Do(ctx, p.Work, "labels", func(ctx context.Context, out *labelsResult) error {
		if p.info.Labels == nil {
			return nil
		}
		is := p.info.Labels
		l := &labelWriter{p: p, m: m, kind: is.Kind, classes: steps.NewClassTable(is.Classes),
			meta: &kv.LabelsMeta{Kind: is.Kind, OfType: is.OfType}}
		return l.write(ctx, out)
	})
}

// labelWriter writes the labels file.
type labelWriter struct {
	p       *pipeline
	m       *nodeMap
	kind    string
	classes *steps.ClassTable
	meta    *kv.LabelsMeta
	final   []uint32 // class number by number of first appearance
	unknown bool     // of some labels nobody knows whether the node has them
	known   []byte   // the bits of all classes, if unknown
	rows    *rowfile.Writer
	next    uint64 // node of the next row
	row     []byte // of the node before next, while its labels come in
	none    []byte // the row of a node without a label
	filled  bool   // row holds a node's label
	value   uint32 // its label, as it came
}

func (l *labelWriter) write(ctx context.Context, out *labelsResult) error {
	a := &attacher{p: l.p, m: l.m, name: "labels", what: "label", stream: l.stream}
	runs, err := l.numbered(ctx, a)
	if err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	twice := noRow
	err = l.p.eachPair(ctx, "labels", runs, func(node uint64, value uint32, seq uint64) error {
		if twice != noRow {
			return nil
		}
		return l.add(node, value, seq, &twice)
	})
	if err == nil && twice != noRow {
		err = a.at(ctx, twice, l.errTwice)
	}
	if err == nil {
		err = l.skipTo(l.m.nodes)
	}
	if err != nil {
		return errors.Join(err, l.rows.Abort())
	}
	if l.meta.Rows, out.Files, err = l.rows.Finish(); err != nil {
		return err
	}
	if n := l.meta.Unknown; n > 0 {
		l.p.note("%d of %d labels are unknown: training and metrics leave them out", n,
			l.meta.Labeled*uint64(len(l.meta.Classes)))
	}
	out.Meta = l.meta
	l.p.KeepFiles(out.Files...)
	if l.kind == "multi" {
		out.Rows = runs
		l.p.KeepRuns(runs)
	}
	return nil
}

// targetForcer is what sources have that guess from their first rows that labels are classes.
type targetForcer interface{ ForceTargets() }

// numbered returns the rows with their nodes, and numbers the classes. Only now all labels are
// known: whether they are numbers to predict, and whether -1 is a class.
func (l *labelWriter) numbered(ctx context.Context, a *attacher) ([]extsort.Run, error) {
	runs, err := a.byNode(ctx)
	t, guesses := l.p.src.(targetForcer)
	if guesses && l.kind == "class" && (err == nil || errors.Is(err, steps.ErrTargets)) {
		if numbers, fractions := l.classes.Numbers(); numbers && fractions {
			l.p.note("labels have fractions: they are numbers to predict, not classes")
			t.ForceTargets()
			l.kind, l.meta.Kind = "target", "target"
			runs, err = a.byNode(ctx)
		}
	}
	if err != nil || l.kind == "target" {
		return runs, err
	}
	order, err := l.classes.Sorted()
	if err != nil {
		return nil, err
	}
	l.meta.Classes, l.final = order.Names, order.Final
	for _, name := range order.Unlabeled {
		l.p.note("the label %s means unlabeled", name)
	}
	for _, forms := range order.Same {
		l.p.note("the labels %s are one number, and one class", forms)
	}
	l.meta.ClassCounts = make([]uint64, len(l.meta.Classes))
	return runs, nil
}

// noRow is the place of no row.
const noRow uint64 = math.MaxUint64

func (l *labelWriter) open() (err error) {
	spec := rowfile.Spec{UUID: l.p.Journal.UUID, Name: "labels", Path: "labels/labels.rows",
		DType: "i32", Dim: 1, Nodes: l.m.nodes}
	l.none = binary.LittleEndian.AppendUint32(nil, math.MaxUint32) // -1
	switch l.kind {
	case "multi":
		width := max(1, (len(l.meta.Classes)+7)/8)
		spec.DType, spec.Dim = "u8", width
		if l.unknown {
			spec.Dim, l.known = 2*width, make([]byte, width)
			for class := range l.meta.Classes {
				l.known[class/8] |= 1 << (class % 8)
			}
		}
		l.none = make([]byte, spec.Dim)
	case "target":
		spec.DType = "f32"
		l.none = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	}
	l.row = make([]byte, len(l.none))
	l.rows, err = rowfile.NewWriter(l.p.FS, l.p.Path("labels/labels"), spec)
	return err
}

// stream adapts the source's labels.
func (l *labelWriter) stream(ctx context.Context, fn func(c *idRowsChunk) error) error {
	return l.p.src.Labels(ctx, func(c *source.LabelChunk) error {
		r := &idRowsChunk{ids: c.IDs, first: c.First, where: &c.Where,
			n: max(len(c.Class), len(c.Text), len(c.Target))}
		r.value = func(i int) (uint32, bool, error) {
			if l.kind == "target" {
				v := c.Target[i]
				return math.Float32bits(v), !math.IsNaN(float64(v)), nil
			}
			number := l.classes.Integer
			if c.Text != nil {
				number = l.classes.Text
			}
			value, ok, err := number(c, i)
			if c.Unknown != nil && c.Unknown[i] {
				l.unknown = true
				value |= unknownBit
			}
			return value, ok, err
		}
		return fn(r)
	})
}

// add takes the next pair, in order of node. If the node has another label already, twice is set
// to the row.
func (l *labelWriter) add(node uint64, value uint32, seq uint64, twice *uint64) error {
	if l.kind != "target" && value != steps.ClassNone &&
		l.final[value&^unknownBit] == steps.ClassUnlabeled {
		return nil
	}
	if l.filled && node == l.next-1 {
		if l.kind == "multi" {
			l.setClass(value)
		} else if value != l.value && (l.kind == "target" || l.final[value] != l.final[l.value]) {
			*twice = seq
		}
		return nil
	}
	if err := l.skipTo(node); err != nil {
		return err
	}
	l.filled, l.value, l.next = true, value, node+1
	l.meta.Labeled++
	switch l.kind {
	case "target":
		binary.LittleEndian.PutUint32(l.row, value)
	case "multi":
		clear(l.row)
		copy(l.row[len(l.row)-len(l.known):], l.known)
		l.setClass(value)
	default:
		class := l.final[value]
		l.meta.ClassCounts[class]++
		binary.LittleEndian.PutUint32(l.row, class)
	}
	return nil
}

// unknownBit is set in the value of a pair of which nobody knows whether the node has the class.
const unknownBit = 1 << 31

// setClass sets the bit of a class, bit c%8 of byte c/8; of a class that is unknown it clears the
// bit that says that it is known.
func (l *labelWriter) setClass(value uint32) {
	if value == steps.ClassNone {
		return
	}
	class := l.final[value&^unknownBit]
	at, bit := &l.row[class/8], byte(1)<<(class%8)
	switch known := l.row[len(l.row)-len(l.known):]; {
	case value&unknownBit != 0 && known[class/8]&bit != 0:
		known[class/8] &^= bit
		l.meta.Unknown++
	case value&unknownBit == 0 && *at&bit == 0:
		*at |= bit
		l.meta.ClassCounts[class]++
	}
}

// skipTo writes the row that was filled, and rows without a label up to node.
func (l *labelWriter) skipTo(node uint64) error {
	if l.filled {
		l.filled = false
		if err := l.rows.Add(l.row); err != nil {
			return err
		}
	}
	for ; l.next < node; l.next++ {
		if err := l.rows.Add(l.none); err != nil {
			return err
		}
	}
	return nil
}

func (l *labelWriter) errTwice(c *idRowsChunk, i int) error {
	return input.Wrong(c.where.Position(i),
		"give one label a node, or say --multi-label (of arrays: labels_coo.npy)",
		"node %s has another label already", c.id(i))
}
