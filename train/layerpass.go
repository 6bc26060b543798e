package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/nodeset"
	"gdb/train/backend"
)

// layerPass computes one layer over the nodes of the graph.
type layerPass struct {
	*inference
	index           int
	src             table        // input of the layer
	from            table        // what is averaged: src, or src times the neighbor weights
	srcSet, fromSet *nodeset.Set // the nodes whose rows they hold
	first           bool         // transform first
	chunk           int          // rows computed at a time

	arena    *mem.Arena
	nodes    []sample.NodeID // a block of nodes
	means    []float32       // their means: (len(nodes), from.dim())
	piece    []float32       // means over a part of the lists: (chunk, from.dim())
	window   []float32       // rows of from, from a file: (.., from.dim())
	places   []sample.NodeID // the rows of a chunk of nodes in src
	rows     []float32       // inputs: (chunk, src.dim())
	results  []float32       // outputs: (chunk, ..)
	off, idx []uint32        // lists cut to the window
}

// allocate takes the buffers: small ones if the table is in memory, else half of what is left for
// means and half for the window on the file.
func (l *layerPass) allocate() error {
	width, total := l.from.dim(), l.fromSet.Rows(l.in.Meta.Nodes)
	block, window := l.chunk, 0
	if l.from.whole() == nil {
		fixed := int64(4 * l.chunk * (l.src.dim() + 2*width + 2*l.model.Dims()[l.index+1]))
		room := max(l.in.room()-fixed, evalBytes/2)
		block = max(l.chunk, min(int(room*2/5)/(4*width), l.rowsOf(l.index+1)))
		window = max(l.chunk, min(int(room*2/5)/(4*width), total))
		if l.rowsMax > 0 {
			block, window = l.rowsMax, l.rowsMax
		}
	}
	dout := l.model.Dims()[l.index+1]
	sizes := []int{block, block * width, l.chunk * width, window * width, l.chunk * l.src.dim(),
		l.chunk * dout, l.chunk}
	sum := 0
	for i, n := range sizes {
		sizes[i] = (n + 15) / 16 * 16
		sum += sizes[i]
	}
	var err error
	if l.arena, err = mem.NewArena(l.in.Budget, "inference", int64(4*sum)); err != nil {
		return err
	}
	all := mem.View[float32](l.arena.Bytes())
	take := func(i, n int) []float32 {
		part := all[:n:n]
		all = all[sizes[i]:]
		return part
	}
	l.nodes = mem.View[sample.NodeID](mem.BytesOf(take(0, block)))
	l.means, l.piece = take(1, block*width), take(2, l.chunk*width)
	l.window, l.rows = take(3, window*width), take(4, l.chunk*l.src.dim())
	l.results = take(5, l.chunk*dout)
	l.places = mem.View[sample.NodeID](mem.BytesOf(take(6, l.chunk)))
	return nil
}

func (l *layerPass) free() error {
	if l.arena == nil {
		return nil
	}
	return l.arena.Free()
}

// transformAll writes src times the neighbor weights to a table, of the nodes that are needed.
func (l *layerPass) transformAll(ctx context.Context) (table, error) {
	rows := l.fromSet.Rows(l.in.Meta.Nodes)
	w, err := l.newTable(fmt.Sprintf("transformed%d", l.index+1), rows, l.model.Dims()[l.index+1])
	if err != nil {
		return nil, err
	}
	if err := l.transformTo(ctx, w); err != nil {
		return nil, errors.Join(err, w.abort())
	}
	return l.finish(ctx, w)
}

func (l *layerPass) transformTo(ctx context.Context, w *tableWriter) error {
	l.rows = make([]float32, l.chunk*l.src.dim())
	l.places = make([]sample.NodeID, l.chunk)
	nodes, out := make([]sample.NodeID, l.chunk), make([]float32, l.chunk*w.width)
	for next := l.fromSet.Nodes(l.in.Meta.Nodes); ; {
		part := next(nodes)
		if len(part) == 0 {
			return nil
		}
		x, err := l.inputs(ctx, part)
		if err != nil {
			return err
		}
		if err := l.product(out, x, len(part)); err != nil {
			return err
		}
		if err := w.add(out[:len(part)*w.width]); err != nil {
			return err
		}
	}
}

// product writes n rows of x times the neighbor weights to out.
func (l *layerPass) product(out, x []float32, n int) error {
	if err := l.be.Begin(); err != nil {
		return err
	}
	y := l.model.Layer(l.index).Transform(l.be.Host(x, n, l.src.dim()))
	l.be.Read(out, y)
	return l.be.Err()
}

// block computes the layer for a block of nodes.
func (l *layerPass) block(ctx context.Context, nodes []sample.NodeID, emit emitRows) error {
	width := l.from.dim()
	whole := l.from.whole()
	if whole == nil {
		if err := l.sweep(ctx, nodes); err != nil {
			return err
		}
	}
	for first := 0; first < len(nodes); first += l.chunk {
		part := nodes[first:min(first+l.chunk, len(nodes))]
		mean, err := l.direct(ctx, part, whole, l.means[first*width:])
		if err != nil {
			return err
		}
		y, err := l.outputs(ctx, part, mean)
		if err != nil {
			return err
		}
		if err := emit(part, y); err != nil {
			return err
		}
	}
	return nil
}

// sweep reads the whole table once and leaves the means of nodes in l.means.
func (l *layerPass) sweep(ctx context.Context, nodes []sample.NodeID) error {
	width, total := l.from.dim(), l.fromSet.Rows(l.in.Meta.Nodes)
	clear(l.means[:len(nodes)*width])
	size := len(l.window) / width
	for base := 0; base < total; base += size {
		n := min(size, total-base)
		rows := l.window[:n*width]
		if err := l.from.scan(ctx, sample.NodeID(base), n, rows); err != nil {
			return err
		}
		for first := 0; first < len(nodes); first += l.chunk {
			part_ := nodes[first:min(first+l.chunk, len(nodes))]
			err := l.lists.each(ctx, part_, func(p part) error {
				l.fromSet.MapRows(p.nbrs)
				off, idx := l.cut(p, uint32(base), uint32(n))
				return l.accumulate(l.means[first*width:], rows, off, idx, p.deg)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// direct returns the means of a chunk of nodes: taken from the table if it is in memory, else
// those that sweep left. A chunk whose lists come in parts is summed up in means.
func (l *layerPass) direct(ctx context.Context, nodes []sample.NodeID, whole []float32,
	means []float32) (mean backend.Tensor, err error) {
	width, inParts := l.from.dim(), whole == nil
	means = means[:len(nodes)*width]
	if whole != nil {
		err = l.lists.each(ctx, nodes, func(p part) (err error) {
			l.fromSet.MapRows(p.nbrs)
			if p.whole {
				mean, err = l.segmentMean(whole, p.off, p.nbrs)
				return err
			}
			if !inParts {
				clear(means)
				inParts = true
			}
			return l.accumulate(means, whole, p.off, p.nbrs, p.deg)
		})
	}
	if err != nil || !inParts {
		return mean, err
	}
	if err := l.be.Begin(); err != nil {
		return mean, err
	}
	return l.be.Host(means, len(nodes), width), nil
}

// segmentMean starts a step of the backend and averages rows.
func (l *layerPass) segmentMean(rows []float32, off, idx []uint32) (mean backend.Tensor,
	err error) {
	width := l.from.dim()
	if err := l.be.Begin(); err != nil {
		return mean, err
	}
	x := l.be.Host(rows, len(rows)/width, width)
	mean = l.be.Scratch(len(off)-1, width)
	l.be.SegmentMean(mean, x, l.be.Segments(backend.Lists{Off: off, Idx: idx}))
	return mean, l.be.Err()
}

// accumulate adds to means the share that these entries, of lists of deg, have in them.
func (l *layerPass) accumulate(means, rows []float32, off, idx, deg []uint32) error {
	mean, err := l.segmentMean(rows, off, idx)
	if err != nil {
		return err
	}
	piece, width := l.piece[:mean.Len()], l.from.dim()
	l.be.Read(piece, mean)
	for i, d := range deg {
		n := off[i+1] - off[i]
		if n == 0 {
			continue
		}
		share, row := float32(n)/float32(d), means[i*width:(i+1)*width]
		for k, v := range piece[i*width : (i+1)*width] {
			row[k] += share * v
		}
	}
	return nil
}

// cut keeps the entries of p that lie in the window of n rows from base on, counted from base.
func (l *layerPass) cut(p part, base, n uint32) (off, idx []uint32) {
	l.off = append(l.off[:0], 0)
	l.idx = l.idx[:0]
	for i := range p.deg {
		for _, v := range p.nbrs[p.off[i]:p.off[i+1]] {
			if r := v - base; r < n { // also false below base, where it wraps around
				l.idx = append(l.idx, r)
			}
		}
		l.off = append(l.off, uint32(len(l.idx)))
	}
	return l.off, l.idx
}

// inputs returns the rows of nodes, which ascend: in place where they follow each other in memory.
func (l *layerPass) inputs(ctx context.Context, nodes []sample.NodeID) ([]float32, error) {
	at, din, n := l.places[:len(nodes)], l.src.dim(), len(nodes)
	for i, v := range nodes {
		at[i] = sample.NodeID(l.srcSet.Row(uint32(v)))
	}
	if all := l.src.whole(); all != nil && int(at[n-1]-at[0]) == n-1 {
		return all[int(at[0])*din : (int(at[0])+n)*din], ctx.Err()
	}
	x := l.rows[:n*din]
	return x, l.src.read(ctx, at, x)
}

// outputs computes the layer for a chunk of nodes from their means.
func (l *layerPass) outputs(ctx context.Context, nodes []sample.NodeID,
	mean backend.Tensor) ([]float32, error) {
	x, err := l.inputs(ctx, nodes)
	if err != nil {
		return nil, err
	}
	y := l.model.Layer(l.index).Output(l.be.Host(x, len(nodes), l.src.dim()), mean)
	out := l.results[:y.Len()]
	l.be.Read(out, y)
	return out, l.be.Err()
}
