package exact

import (
	"context"
	"errors"

	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/layout/topology"
)

// edgesAsked holds what a layer reads of list entries besides their neighbors (weights, types,
// shares of types), and the memory for it.
type edgesAsked struct {
	weights, types bool

	values program.Edges
	// These count types, for shares. A list that lies in a part as a whole is counted by
	// whole. A longer one is counted by long; counted is the index of the list that long has
	// counted, -1 for none.
	counted     int
	long, whole program.TypeCounter
	off, pos    []uint32 // of a part of that list
	part        []uint32 // its types
}

// ask finds out what a layer reads of entries, for each to deliver it.
func (l *lists) ask(w *program.ExactLayer) error {
	a := &l.asked
	a.weights = w.Reads(program.EdgeWeight)
	a.types = w.ReadsTypes()
	if _, ok := l.session.(topology.AttributeReader); !ok && (a.weights || a.types) {
		return errors.New("exact: these lists cannot be asked for weights and types of edges")
	}
	return nil
}

// edges reads what the layer asks of the entries [first, end) of the concatenated lists, for which
// window has set off and pos.
func (l *lists) edges(ctx context.Context, first, end uint64) (e program.Edges, err error) {
	a, n := &l.asked, int(end-first)
	if !a.weights && !a.types {
		return e, nil
	}
	to := topology.Attributes{}
	if a.weights {
		a.values.Weights = mem.Resized(a.values.Weights, n)
		to.Weights, e.Weights = a.values.Weights, a.values.Weights
	}
	if a.types {
		a.values.Types = mem.Resized(a.values.Types, n)
		a.values.Shares = mem.Resized(a.values.Shares, n)
		to.Types, e.Types, e.Shares = a.values.Types, a.values.Types, a.values.Shares
	}
	reader := l.session.(topology.AttributeReader)
	if err := reader.GatherAttributes(ctx, l.off, l.pos, to); err != nil || !a.types {
		return e, err
	}
	for i, d := range l.deg {
		lo, hi := l.off[i], l.off[i+1]
		types := e.Types[lo:hi]
		switch {
		case lo == hi:
		case hi-lo == d:
			a.whole.Add(types)
			a.whole.Shares(e.Shares[lo:hi], types)
			a.whole.Drop(types)
		default:
			if a.counted != i {
				if err := l.countLong(ctx, reader, i); err != nil {
					return e, err
				}
			}
			a.long.Shares(e.Shares[lo:hi], types)
		}
	}
	return e, nil
}

// countLong counts the types of all entries of list i, part by part.
func (l *lists) countLong(ctx context.Context, reader topology.AttributeReader, i int) error {
	a := &l.asked
	a.counted = i
	a.long.Reset()
	a.off = mem.Resized(a.off, len(l.deg)+1)
	for from := uint32(0); from < l.deg[i]; {
		n := uint32(min(uint64(l.deg[i]-from), l.limit))
		a.pos, a.part = mem.Resized(a.pos, int(n)), mem.Resized(a.part, int(n))
		for k := range a.off {
			a.off[k] = 0
			if k > i {
				a.off[k] = n
			}
		}
		for k := range a.pos {
			a.pos[k] = from + uint32(k)
		}
		err := reader.GatherAttributes(ctx, a.off, a.pos, topology.Attributes{Types: a.part})
		if err != nil {
			return err
		}
		a.long.Add(a.part)
		from += n
	}
	return nil
}
