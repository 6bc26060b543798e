package sample

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/rowfile"
)

// labelsResidentMax bounds the classes or numbers that are held in memory, in bytes: 64 M nodes
// with up to 255 classes fit. If they take more, the labels of each batch's seeds are read with it.
const labelsResidentMax = 64 << 20

// labelsChunk is how many rows are read together while labels are loaded.
const labelsChunk = 1 << 16

// Labels returns the labels of seeds: classes, the bits of multi-labels as floats, or numbers. It
// may be used from any goroutine.
type Labels struct {
	rows    *rowfile.Reader
	multi   bool
	knownAt int // byte of a row where the bits of known multi-labels begin; 0 if all are known
	numbers bool
	classes int
	values  []float32  // number of each class, if numbers stand for classes: see UseNumbers
	all     *mem.Arena // all classes or numbers, or nil if they do not fit
	width   uint64     // bytes of each label in all, where classes are stored plus one
	scratch sync.Pool  // *[]byte
}

// NewLabels returns the labels of a graph with this number of nodes. Classes and numbers are loaded
// if they take no more than 64 MiB and the budget, which may be nil, has room. The caller calls
// Close.
func NewLabels(ctx context.Context, meta *kv.LabelsMeta, rows *rowfile.Reader, nodes uint64,
	budget *mem.Budget) (*Labels, error) {
	l := &Labels{rows: rows, classes: len(meta.Classes)}
	l.scratch.New = func() any { return new([]byte) }
	switch meta.Kind {
	case "multi":
		l.multi, l.knownAt = true, meta.KnownAt()
		have := 8 * rows.Meta().RowBytes
		if have < l.classes || l.knownAt > 0 && have < 2*l.classes {
			return nil, fmt.Errorf("sample: label rows have %d bits for %d classes", have,
				l.classes)
		}
		return l, nil
	case "class":
		if b := rows.Meta().RowBytes; b != 4 {
			return nil, fmt.Errorf("sample: class labels have rows of %d bytes, not 4", b)
		}
	case "target":
		l.numbers = true
		if b := rows.Meta().RowBytes; b != 4 {
			return nil, fmt.Errorf("sample: labels have rows of %d bytes: a number takes 4", b)
		}
	default:
		return nil, fmt.Errorf("sample: labels of kind %q are unknown", meta.Kind)
	}
	if l.width = l.widthHeld(); nodes*l.width > labelsResidentMax {
		return l, nil
	}
	var full *mem.LimitError
	if err := l.load(ctx, nodes, budget); err != nil && !errors.As(err, &full) {
		return nil, err
	}
	return l, nil
}

// HeldLabels returns labels that are no file's: all, in memory, are numbers, or the numbers of
// classes if there are some. The caller calls Close.
func HeldLabels(classes int, all []float32, budget *mem.Budget) (*Labels, error) {
	l := &Labels{classes: classes, numbers: classes == 0}
	l.width = l.widthHeld()
	arena, err := mem.NewArena(budget, "labels", int64(len(all))*int64(l.width))
	if err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	l.all = arena
	raw := mem.View[int32](mem.BytesOf(all))
	if classes > 0 {
		raw = make([]int32, len(all))
		for i, c := range all {
			raw[i] = int32(c)
		}
	}
	l.hold(arena.Bytes(), raw)
	return l, nil
}

// load reads all labels to memory.
func (l *Labels) load(ctx context.Context, nodes uint64, budget *mem.Budget) error {
	all, err := mem.NewArena(budget, "labels", int64(nodes*l.width))
	if err != nil {
		return err
	}
	part := make([]int32, labelsChunk)
	for first := uint64(0); first < nodes && err == nil; first += labelsChunk {
		end, from := min(first+labelsChunk, nodes), NodeID(first)
		part := part[:end-first]
		err = l.rows.ScanRaw(ctx, from, len(part), mem.BytesOf(part))
		if err == nil && !l.numbers {
			err = l.check(part, func(i int) NodeID { return from + NodeID(i) })
		}
		if err == nil {
			l.hold(all.Bytes()[first*l.width:end*l.width], part)
		}
	}
	if err != nil {
		_ = all.Free() // unmapping what was mapped cannot fail
		return fmt.Errorf("sample: load labels: %w", err)
	}
	l.all = all
	return nil
}

// widthHeld returns how many bytes a label takes in memory.
func (l *Labels) widthHeld() uint64 {
	switch {
	case l.numbers || l.classes >= 1<<16:
		return 4
	case l.classes >= 1<<8:
		return 2
	}
	return 1
}

// hold writes labels to memory, in the width of l.
func (l *Labels) hold(to []byte, labels []int32) {
	for i, c := range labels {
		switch l.width {
		case 1:
			to[i] = uint8(c + 1)
		case 2:
			binary.LittleEndian.PutUint16(to[2*i:], uint16(c+1))
		default:
			binary.LittleEndian.PutUint32(to[4*i:], uint32(c)+l.shift())
		}
	}
}

// shift returns what is added to a label in memory: 1 to classes, so that none is 0, and 0 to
// numbers.
func (l *Labels) shift() uint32 {
	if l.numbers {
		return 0
	}
	return 1
}

// held returns the label of node v from memory.
func (l *Labels) held(all []byte, v NodeID) int32 {
	switch at := uint64(v) * l.width; l.width {
	case 1:
		return int32(all[at]) - 1
	case 2:
		return int32(binary.LittleEndian.Uint16(all[at:])) - 1
	default:
		return int32(binary.LittleEndian.Uint32(all[at:]) - l.shift())
	}
}

// check returns an error unless all labels are -1 or a class. Others need not check labels again.
func (l *Labels) check(labels []int32, node func(i int) NodeID) error {
	for i, c := range labels {
		if c < -1 || int(c) >= l.classes {
			return &kv.DamageError{Finding: kv.Finding{Path: l.rows.Meta().Path, Block: -1,
				Offset: -1,
				What:   fmt.Sprintf("node %d has class %d of %d", node(i), c, l.classes)}}
		}
	}
	return nil
}

// Classes returns the number of classes.
func (l *Labels) Classes() int { return l.classes }

// Multi reports whether a node can have several labels. If so, Fill sets Batch.Multi.
func (l *Labels) Multi() bool { return l.multi }

// Numbers reports whether labels are numbers to predict. If so, Fill sets Batch.Targets.
func (l *Labels) Numbers() bool { return l.numbers || l.values != nil }

// UseNumbers makes labels numbers from now on: values holds the number of each class.
func (l *Labels) UseNumbers(values []float32) { l.values = values }

// Close frees the memory. It does not close the rows.
func (l *Labels) Close() error {
	if l.all == nil {
		return nil
	}
	return l.all.Free()
}

// Fill sets the labels of a batch's seeds: Multi, Targets or Labels.
func (l *Labels) Fill(ctx context.Context, b *Batch) error {
	switch {
	case l.multi:
		b.Multi = mem.Resize(b.Multi, len(b.Seeds)*l.classes)
		return l.Bits(ctx, b.Seeds, b.Multi)
	case l.Numbers():
		b.Targets = mem.Resize(b.Targets, len(b.Seeds))
		return l.Values(ctx, b.Seeds, b.Targets)
	}
	b.Labels = mem.Resize(b.Labels, len(b.Seeds))
	return l.Of(ctx, b.Seeds, b.Labels)
}

// Of writes the class of each node to out, or -1 if it has none.
func (l *Labels) Of(ctx context.Context, nodes []NodeID, out []int32) error {
	if l.all == nil {
		out = out[:len(nodes)]
		if err := l.rows.GatherRaw(ctx, nodes, nil, mem.BytesOf(out)); err != nil {
			return err
		}
		return l.check(out, func(i int) NodeID { return nodes[i] })
	}
	all := l.all.Bytes()
	for i, v := range nodes {
		out[i] = l.held(all, v)
	}
	return nil
}

// Values writes the number of each node to out, or NaN if it has none.
func (l *Labels) Values(ctx context.Context, nodes []NodeID, out []float32) error {
	if l.values != nil {
		return l.classValues(ctx, nodes, out[:len(nodes)])
	}
	if l.all == nil {
		return l.rows.GatherRaw(ctx, nodes, nil, mem.BytesOf(out[:len(nodes)]))
	}
	all := mem.View[float32](l.all.Bytes())
	for i, v := range nodes {
		out[i] = all[v]
	}
	return nil
}

// classValues writes the number of each node's class to out. It reads the classes to the same
// memory first.
func (l *Labels) classValues(ctx context.Context, nodes []NodeID, out []float32) error {
	classes := mem.View[int32](mem.BytesOf(out))
	if err := l.Of(ctx, nodes, classes); err != nil {
		return err
	}
	for i, c := range classes {
		if c < 0 {
			out[i] = float32(math.NaN())
			continue
		}
		out[i] = l.values[c]
	}
	return nil
}

// Bits writes the labels of each node to out: 0 or 1 for each class, or NaN if it is unknown. Class
// c is bit c%8 of byte c/8 of a row.
func (l *Labels) Bits(ctx context.Context, nodes []NodeID, out []float32) error {
	width := l.rows.Meta().RowBytes
	raw, _ := l.scratch.Get().(*[]byte)
	defer l.scratch.Put(raw)
	*raw = mem.Resize(*raw, len(nodes)*width)
	if err := l.rows.GatherRaw(ctx, nodes, nil, *raw); err != nil {
		return err
	}
	for i := range nodes {
		row, to := (*raw)[i*width:], out[i*l.classes:(i+1)*l.classes]
		for c := range to {
			to[c] = float32(row[c/8] >> (c % 8) & 1)
		}
		if l.knownAt == 0 {
			continue
		}
		for c := range to {
			if row[l.knownAt+c/8]>>(c%8)&1 == 0 {
				to[c] = float32(math.NaN())
			}
		}
	}
	return nil
}
