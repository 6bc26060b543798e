package exact

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/sample"
)

// layerPass computes one layer over the nodes of the graph.
type layerPass struct {
	*Inference
	index           int
	layer           *program.ExactLayer
	src             table           // input of the layer
	from            table           // table whose rows lists read: src, or computed from it
	srcSet, fromSet *sample.NodeSet // the nodes whose rows src and from hold
	related         *relationRows   // where from has rows for each relation; else nil
	chunk           int             // rows computed at a time

	arena    *mem.Arena
	nodes    []sample.NodeID // a block of nodes
	held     heldLists       // their lists, where from is in a file
	sums     []listSums      // of their lists, one for each reduction
	window   []float32       // rows of from, from a file: (.., from.dim())
	columns  [][]float32     // what weights need of each row of from that is in memory
	places   []sample.NodeID // row numbers in src of a chunk of nodes
	rows     []float32       // inputs: (chunk, src.dim())
	results  []float32       // outputs: (chunk, ..)
	degrees  []uint32        // of a chunk of nodes
	norms    []float32       // what the layer reads of nodes: see program.ExactLayer.NodeProperty
	off, idx []uint32        // lists cut to the window
	deg, of  []uint32        // their degrees, and their places in the block
	edges    program.Edges   // of the entries of these
	// segmented are the lists of a part, of a layer that has attention by type.
	segmented program.SegmentedLists
}

// sizeChunk decides how many nodes are computed at once, and takes the scratch memory for them in
// one piece, since memory that grows takes more.
func (l *layerPass) sizeChunk() error {
	w, heads := l.layer, l.layer.EntryCols()
	l.lists.limit = min(l.limit(), max(1, entryFloats/uint64(max(1, heads))))
	scratch := w.ScratchCols() + heads // a node's loop is an entry
	buffers := l.src.dim() + w.OutCols() + l.sumFloats() + 3
	entries := int(l.lists.limit) * heads
	l.chunk = min(chunkRowsMax, int(l.Source.Meta.Nodes),
		(chunkBytes/4-entries*9/8)/(scratch*9/8+buffers))
	l.chunk = max(16, l.chunk)
	if err := l.Backend.Trim(); err != nil {
		return err
	}
	if err := l.Backend.Begin(); err != nil {
		return err
	}
	l.Backend.Scratch(1, entries+l.chunk*scratch+w.FixedFloats())
	return l.Backend.Err()
}

// windowBytes is the size of a window, with what weights need of its rows. It is the same in
// whatever memory there is, so that results are: sums are taken window by window.
const windowBytes = 32 << 20

// sizes are how much is held in memory of a layer whose table is in a file.
type sizes struct{ block, entries, window int }

// size splits the memory: the window has a third at most, and lists and sums of a block the rest.
// All together leaves a fifth of what is free.
func (l *layerPass) size() sizes {
	dout, total := l.layer.OutCols(), l.tableRows()
	row := 4 * (l.from.dim() + l.layer.ColumnFloats())
	fixed := int64(4 * l.chunk * (l.src.dim() + dout + l.sumFloats() + 3))
	room := int(max(l.room()-fixed, Bytes/2)) * 4 / 5
	s := sizes{window: max(l.chunk, min(room/3, windowBytes)/row)}
	degree := l.Source.Topology.Edges()/l.Source.Meta.Nodes + 2
	list := int(degree*9/8) * l.held.entryBytes()
	s.block = max(l.chunk, (room-s.window*row)/(4*(l.blockFloats()+3)+list))
	if l.RowsMax > 0 {
		s.block, s.window = l.RowsMax, l.RowsMax
	}
	s.window, s.block = min(s.window, total), min(s.block, l.rowsOf(l.index+1))
	if s.entries = s.block * list / l.held.entryBytes(); l.entriesMost > 0 {
		s.entries = l.entriesMost
	}
	return s
}

// useWindows has a table in memory read in windows, if what weights need of all its rows has no
// room.
func (l *layerPass) useWindows() {
	columns := 4 * int64(l.layer.ColumnFloats()) * int64(l.tableRows())
	if columns > 0 && columns > l.room()-Bytes && l.from.whole() != nil {
		l.from = inWindows{l.from}
	}
}

// allocate takes the buffers. They are small if the table is in memory.
func (l *layerPass) allocate() error {
	width, dout := l.from.dim(), l.layer.OutCols()
	s, rows := sizes{block: l.chunk}, l.tableRows()
	if l.from.whole() == nil {
		l.held.ask(l.layer)
		s = l.size()
		rows = s.window
	} else if isPacked(l.from) && len(l.layer.ColumnCols()) > 0 {
		s.window = l.chunk // unpacked rows, whose columns are computed
	}
	c := carver{}
	nodes, places := c.add(s.block), c.add(l.chunk)
	inputs, results, norms := c.add(l.chunk*l.src.dim()), c.add(l.chunk*dout), c.add(l.chunk)
	of := c.add(s.window * width)
	var columns []int
	for _, cols := range l.layer.ColumnCols() {
		columns = append(columns, c.add(rows*cols))
	}
	lists, sums := l.held.add(&c, s), l.sizeSums(&c, s.block)
	var err error
	if l.arena, err = mem.NewArena(l.Source.Budget, "inference", int64(4*c.floats)); err != nil {
		return err
	}
	c.all = mem.View[float32](l.arena.Bytes())
	l.nodes = mem.View[sample.NodeID](mem.BytesOf(c.take(nodes)))
	l.places = mem.View[sample.NodeID](mem.BytesOf(c.take(places)))
	l.rows, l.results, l.norms = c.take(inputs), c.take(results), c.take(norms)
	l.window = c.take(of)
	for _, i := range columns {
		l.columns = append(l.columns, c.take(i))
	}
	l.held.take(&c, lists)
	l.takeSums(&c, sums)
	return nil
}

// carver divides an arena into pieces that begin at cache lines.
type carver struct {
	at, size []int
	floats   int
	all      []float32
}

// add plans a piece of n floats and returns its number.
func (c *carver) add(n int) int {
	c.at, c.size = append(c.at, c.floats), append(c.size, n)
	c.floats += (n + 15) / 16 * 16
	return len(c.at) - 1
}

// take returns piece i.
func (c *carver) take(i int) []float32 {
	first, end := c.at[i], c.at[i]+c.size[i]
	return c.all[first:end:end]
}

// words returns piece i as numbers.
func (c *carver) words(i int) []uint32 { return mem.View[uint32](mem.BytesOf(c.take(i))) }

func (l *layerPass) free() error {
	l.Backend.Forget(l.from.whole())
	l.Backend.Forget(l.window)
	if l.arena == nil {
		return nil
	}
	return l.arena.Free()
}

// transformAll computes the rows that lists read, for the nodes that are needed, and returns
// them as a table.
func (l *layerPass) transformAll(ctx context.Context) (table, error) {
	if l.layer.ByRelation() {
		l.related = l.newRelationRows(l.fromSet)
	}
	rows := l.tableRows()
	if rows > math.MaxUint32 {
		return nil, fmt.Errorf("exact: layer %d needs %d rows, one for each node and relation, "+
			"and there can be 2^32: evaluate on sampled neighbors", l.index+1, rows)
	}
	w, err := l.newTable(fmt.Sprintf("transformed%d", l.index+1), rows, l.layer.TableCols())
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
	l.places, l.norms = make([]sample.NodeID, l.chunk), make([]float32, l.chunk)
	if l.related != nil {
		return l.transformRelated(ctx, w)
	}
	return l.transformNodes(ctx, w, l.fromSet.Nodes(l.Source.Meta.Nodes), func(*chunk) {})
}

// transformNodes adds the rows of some nodes. set may change what is known of a chunk of them.
func (l *layerPass) transformNodes(ctx context.Context, w *tableWriter, next sample.NodeIter,
	set func(c *chunk)) error {
	nodes, out := make([]sample.NodeID, l.chunk), make([]float32, l.chunk*w.width)
	for {
		part := next(nodes)
		if len(part) == 0 {
			return nil
		}
		c, err := l.read(ctx, part, 0)
		if err != nil {
			return err
		}
		set(c)
		if err := l.Backend.Begin(); err != nil {
			return err
		}
		y := l.layer.Table(l.Model.Machine(), l.host(c.x, l.src.dim()), l.host(c.norms, 1))
		l.Backend.Read(out, y)
		if err := l.Backend.Err(); err != nil {
			return err
		}
		if err := w.add(out[:len(part)*w.width]); err != nil {
			return err
		}
	}
}

// host returns a matrix in memory of this pass as a tensor.
func (l *layerPass) host(x []float32, cols int) backend.Tensor {
	return l.Backend.Host(x, len(x)/cols, cols)
}

// tableOf returns the rows that lists read, all or those in the window, as a tensor. It stays in
// the host's memory, since it is larger than what is read of it at a time.
func (l *layerPass) tableOf(rows []float32) backend.Tensor {
	width := l.from.dim()
	if isPacked(l.from) && l.from.whole() != nil {
		return l.Backend.Table(rows, len(rows)/(width/2), width/2).Halved()
	}
	return l.Backend.Table(rows, len(rows)/width, width)
}

// normsOf returns what a layer reads of nodes besides their rows, such as a function of their
// degree in the whole graph. The values are undefined if the layer reads no such thing.
func (l *layerPass) normsOf(ctx context.Context, nodes []sample.NodeID) ([]float32, error) {
	norms := l.norms[:len(nodes)]
	k, reads := l.layer.NodeProperty()
	switch {
	case !reads:
		return norms, nil
	case k == program.NodeType:
		firsts := l.Model.Spec().NodeTypes
		if l.types != nil {
			firsts = l.types
		}
		program.NodeTypes(words(norms), words(nodes), firsts)
		return norms, nil
	}
	l.degrees = mem.Resized(l.degrees, len(nodes))
	if err := l.lists.session.Degrees(ctx, nodes, l.degrees); err != nil {
		return nil, err
	}
	if k == program.InvSqrtDegree {
		program.Norms(norms, l.degrees)
		return norms, nil
	}
	if err := sample.SumWeights(ctx, l.lists.session, norms); err != nil {
		return nil, err
	}
	if k == program.InvSqrtWeight {
		program.WeightNorms(norms, norms)
	} else {
		program.InvWeights(norms, norms)
	}
	return norms, nil
}

// words returns values of 4 bytes as bits.
func words[T mem.Scalar](x []T) []uint32 { return mem.View[uint32](mem.BytesOf(x)) }

// fillColumns computes what weights need of each of n rows of from; next iterates over their nodes.
func (l *layerPass) fillColumns(ctx context.Context, rows []float32, n int,
	next sample.NodeIter) error {
	if len(l.columns) == 0 {
		return nil
	}
	width := l.from.dim()
	for first := 0; first < n; first += l.chunk {
		nodes := next(l.places[:min(l.chunk, n-first)])
		norms, err := l.normsOf(ctx, nodes)
		if err != nil {
			return err
		}
		if err := l.Backend.Begin(); err != nil {
			return err
		}
		values, err := l.valuesOf(ctx, rows, first, len(nodes))
		if err != nil {
			return err
		}
		x := l.host(values, width)
		for i, c := range l.layer.Columns(l.Model.Machine(), x, l.host(norms, 1)) {
			l.Backend.Read(l.columns[i][first*c.Cols:], c)
		}
		if err := l.Backend.Err(); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf returns the values of n rows of from, from row first on.
func (l *layerPass) valuesOf(ctx context.Context, rows []float32, first, n int) ([]float32, error) {
	width := l.from.dim()
	if l.from.whole() == nil || !isPacked(l.from) {
		return rows[first*width : (first+n)*width], nil
	}
	values := l.window[:n*width]
	return values, l.from.scan(ctx, sample.NodeID(first), n, values)
}

// block computes the layer for a block of nodes, and returns how many of them it computed: those
// whose lists it could hold.
func (l *layerPass) block(ctx context.Context, nodes []sample.NodeID, emit Emit) (int, error) {
	rows := l.from.whole()
	inParts := rows == nil && len(l.sums) > 0
	if inParts {
		n, err := l.sweep(ctx, nodes)
		if err != nil {
			return 0, err
		}
		nodes = nodes[:n]
	}
	for first := 0; first < len(nodes); first += l.chunk {
		part := nodes[first:min(first+l.chunk, len(nodes))]
		c, err := l.read(ctx, part, first)
		if err != nil {
			return 0, err
		}
		var y []float32
		if inParts || len(l.sums) == 0 {
			y, err = l.fromSums(c)
		} else {
			y, err = l.direct(ctx, c, rows)
		}
		if err != nil {
			return 0, err
		}
		if err := emit(part, y); err != nil {
			return 0, err
		}
	}
	return len(nodes), nil
}

// chunk is a part of a block of nodes that is computed at once.
type chunk struct {
	nodes []sample.NodeID
	first int // in the block
	x     []float32
	norms []float32
}

// read reads what a layer needs of nodes of the block. The first of them is node first of the
// block. The chunk is valid until the next call.
func (l *layerPass) read(ctx context.Context, nodes []sample.NodeID, first int) (*chunk, error) {
	x, err := l.inputs(ctx, nodes)
	if err != nil {
		return nil, err
	}
	norms, err := l.normsOf(ctx, nodes)
	return &chunk{nodes: nodes, first: first, x: x, norms: norms}, err
}

// sweep reads the whole table once, window by window, and adds up the sums of the first of the
// nodes, as many as it returns: those whose lists are held. If the first list is too long for that,
// it is read again for each window.
func (l *layerPass) sweep(ctx context.Context, nodes []sample.NodeID) (n int, err error) {
	if n, err = l.hold(ctx, nodes); err != nil {
		return 0, err
	}
	nodes = nodes[:max(n, 1)]
	l.clearSums(0, len(nodes))
	if err := l.ownOf(ctx, nodes); err != nil {
		return 0, err
	}
	width, total := l.from.dim(), l.tableRows()
	next := l.fromSet.Nodes(l.Source.Meta.Nodes)
	size := len(l.window) / width
	for base := 0; base < total; base += size {
		if n > 0 && len(l.columns) == 0 && !l.held.reach(uint32(base+size)) {
			continue
		}
		rows := l.window[:min(size, total-base)*width]
		if err := l.from.scan(ctx, sample.NodeID(base), len(rows)/width, rows); err != nil {
			return 0, err
		}
		if err := l.fillColumns(ctx, rows, len(rows)/width, next); err != nil {
			return 0, err
		}
		if n > 0 {
			err = l.addHeld(ctx, rows, uint32(base))
		} else {
			err = l.addLong(ctx, nodes, rows, uint32(base))
		}
		if err != nil {
			return 0, err
		}
	}
	return len(nodes), nil
}

// addLong adds what lists of nodes that are not held have in the window from row base on.
func (l *layerPass) addLong(ctx context.Context, nodes []sample.NodeID, rows []float32,
	base uint32) error {
	n := uint32(len(rows) / l.from.dim())
	return l.lists.each(ctx, nodes, l.layer.Loops(), func(p part) error {
		l.mapRows(p.nbrs, p.edges.Types)
		return l.accumulate(0, rows, l.cut(p, base, n))
	})
}

// direct computes a chunk of nodes from rows in memory. Lists that come in several parts are
// summed up first.
func (l *layerPass) direct(ctx context.Context, c *chunk, rows []float32) (y []float32, err error) {
	inParts := false
	err = l.lists.each(ctx, c.nodes, l.layer.Loops(), func(p part) (err error) {
		l.mapRows(p.nbrs, p.edges.Types)
		if p.whole {
			y, err = l.atOnce(c, rows, p)
			return err
		}
		if !inParts {
			inParts = true
			l.clearSums(c.first, len(c.nodes))
			if err := l.ownOfChunk(c); err != nil {
				return err
			}
		}
		return l.accumulate(c.first, rows, p)
	})
	if err != nil || !inParts {
		return y, err
	}
	return l.fromSums(c)
}

// atOnce computes a chunk of nodes whose lists are all in one part.
func (l *layerPass) atOnce(c *chunk, rows []float32, p part) ([]float32, error) {
	if err := l.Backend.Begin(); err != nil {
		return nil, err
	}
	m, w := l.Model.Machine(), l.layer
	table := l.tableOf(rows)
	s := l.Backend.Segments(backend.Lists{Off: p.off, Idx: p.nbrs})
	x, norms := l.host(c.x, l.src.dim()), l.host(c.norms, 1)
	own, scored := w.Own(m, x, norms), 0
	var reduced []backend.Tensor
	for i := range l.sums {
		pull, weights := l.sums[i].pull, backend.Tensor{}
		switch {
		case pull.Segmented:
			reduced = append(reduced, l.segment(rows, own[0], p).Reduced())
			continue
		case pull.Scored:
			columns := l.columns[scored]
			column := l.Backend.Host(columns, table.Rows, l.sums[i].columns)
			weights = w.Weights(m, pull, column, own[scored], p.edges, s)
			scored++
			if pull.Softmax {
				w.Softmax(m, weights, s)
			}
		case pull.Weighted:
			weights = w.Weights(m, pull, backend.Tensor{}, backend.Tensor{}, p.edges, s)
		}
		reduced = append(reduced, w.Reduced(m, pull, table, weights, s))
	}
	return l.output(x, norms, reduced)
}

// segment begins the computation of a part of lists, of which own has what scores read of their
// nodes, from rows in memory.
func (l *layerPass) segment(rows []float32, own backend.Tensor, p part) *program.SegmentedPart {
	table := l.tableOf(rows)
	of := []backend.Tensor{table}
	if cols := l.layer.ColumnCols(); len(cols) > 0 {
		of = of[:0]
		for i, n := range cols {
			of = append(of, l.Backend.Host(l.columns[i], table.Rows, n))
		}
	}
	l.segmented.Set(l.layer, p.off, p.nbrs, p.edges.Types)
	return l.layer.Segment(l.Model.Machine(), of, own, &l.segmented)
}

// fromSums computes a chunk of nodes from the sums of their lists.
func (l *layerPass) fromSums(c *chunk) ([]float32, error) {
	if err := l.Backend.Begin(); err != nil {
		return nil, err
	}
	var reduced []backend.Tensor
	for i := range l.sums {
		reduced = append(reduced, l.host(l.sums[i].of(c.first, len(c.nodes)), l.sums[i].pull.Cols))
	}
	return l.output(l.host(c.x, l.src.dim()), l.host(c.norms, 1), reduced)
}

func (l *layerPass) output(x, norms backend.Tensor, reduced []backend.Tensor) ([]float32, error) {
	y := l.layer.Output(l.Model.Machine(), x, norms, reduced)
	out := l.results[:y.Len()]
	l.Backend.Read(out, y)
	return out, l.Backend.Err()
}

// cut returns the entries of p that lie in the window of n rows from base on, renumbered from base.
func (l *layerPass) cut(p part, base, n uint32) part {
	l.off = append(l.off[:0], 0)
	l.idx = l.idx[:0]
	e := &l.edges
	e.Weights, e.Types, e.Shares = e.Weights[:0], e.Types[:0], e.Shares[:0]
	for i := range p.deg {
		for k := p.off[i]; k < p.off[i+1]; k++ {
			r := p.nbrs[k] - base
			if r >= n { // also below base, where it wraps around
				continue
			}
			l.idx = append(l.idx, r)
			if p.edges.Weights != nil {
				e.Weights = append(e.Weights, p.edges.Weights[k])
			}
			if p.edges.Types != nil {
				e.Types = append(e.Types, p.edges.Types[k])
				e.Shares = append(e.Shares, p.edges.Shares[k])
			}
		}
		l.off = append(l.off, uint32(len(l.idx)))
	}
	return part{off: l.off, nbrs: l.idx, deg: p.deg, edges: l.edges}
}

// inputs returns the rows of nodes, which must ascend. They are not copied where they follow each
// other in memory.
func (l *layerPass) inputs(ctx context.Context, nodes []sample.NodeID) ([]float32, error) {
	at, din, n := l.places[:len(nodes)], l.src.dim(), len(nodes)
	for i, v := range nodes {
		at[i] = sample.NodeID(l.srcSet.Row(uint32(v)))
	}
	if all := l.src.whole(); all != nil && !isPacked(l.src) && int(at[n-1]-at[0]) == n-1 {
		return all[int(at[0])*din : (int(at[0])+n)*din], ctx.Err()
	}
	x := l.rows[:n*din]
	return x, l.src.read(ctx, at, x)
}
