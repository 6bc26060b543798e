package train

import (
	"cmp"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/explain"
	"gdb/train/model"
)

// neighborhood is the batch of one node, with what the model computes of it: an explain.Net.
type neighborhood struct {
	*trained
	batch *sample.Batch
	in    explain.Input
	entry []int       // of each edge the entry that is nearest to the node
	owner []uint32    // of each entry the position of the node whose list it is in
	held  mem.Account // of copies
	// columns are the names of columns.
	columns []string
	// What the model was last given, and what it gave.
	x, outputs, ofMask, ofRows []float32
}

// Bytes that are held of a neighborhood for each entry, and for each value of its rows.
const entryHeld, valueHeld = 200, 16

// newNeighborhood takes a batch, which it puts in the order that masks need.
func newNeighborhood(t *trained, b *sample.Batch) (*neighborhood, error) {
	n := &neighborhood{trained: t, batch: b,
		held: mem.NewAccount(t.in.Budget, "the neighborhood that is explained")}
	d, width := &b.Dense, t.model.Dims()[0]
	if err := n.held.Add(mem.HeapCost(entryHeld*int64(len(d.ReprMap)) +
		valueHeld*int64(width)*int64(len(d.NodeIDs)))); err != nil {
		return nil, err
	}
	rows := b.X
	if t.vectors != nil {
		var err error
		if rows, err = t.vectors.Input(d.NodeIDs, b.X); err != nil {
			return nil, err
		}
	}
	n.in.Width, n.in.Rows = width, slices.Clone(rows[:width*len(d.NodeIDs)])
	n.takeColumns()
	sortByTypes(d, len(t.cfg.EdgeFeatures))
	n.takeEdges()
	return n, nil
}

// sortByTypes puts the entries of each list in the order of their types, as programs of typed
// graphs read them; columns says how many columns an entry has.
func sortByTypes(d *sample.Dense, columns int) {
	if len(d.Types) == 0 {
		return
	}
	old := *d
	order := make([]int, len(d.ReprMap))
	for i := range d.Inner() {
		part := order[d.NbrOffsets[i]:d.NbrOffsets[i+1]]
		for k := range part {
			part[k] = int(d.NbrOffsets[i]) + k
		}
		slices.SortStableFunc(part, func(a, b int) int {
			return cmp.Compare(d.Types[a], d.Types[b])
		})
	}
	d.ReprMap, d.Types = moved(old.ReprMap, order, 1), moved(old.Types, order, 1)
	d.Nbrs, d.Weights = moved(old.Nbrs, order, 1), moved(old.Weights, order, 1)
	d.Columns = moved(old.Columns, order, columns)
}

// moved returns a copy of values, of which each has several, in another order; nothing for none.
func moved[T any](values []T, order []int, several int) (to []T) {
	if len(values) == 0 {
		return nil
	}
	for _, k := range order {
		to = append(to, values[k*several:(k+1)*several]...)
	}
	return to
}

// takeColumns finds which columns the row of each node has, and what they are called.
func (n *neighborhood) takeColumns() {
	m, width := n.trained.in.Meta, n.in.Width
	typed := len(n.cfg.TypeWidths) > 0 && n.cfg.NodeEmbedding == 0
	var first, wide []int
	if typed {
		for t, w := range n.cfg.TypeWidths {
			first, wide = append(first, len(n.columns)), append(wide, w)
			for _, name := range n.namesOf(t) {
				n.columns = append(n.columns, m.NodeTypes[t].Name+"."+name)
			}
			for k := len(n.columns) - first[t]; k < w; k++ {
				n.columns = append(n.columns, fmt.Sprintf("%s.f%d", m.NodeTypes[t].Name, k))
			}
		}
	} else {
		first, wide = []int{0}, []int{width}
		switch {
		case len(m.NodeTypes) == 1 && m.Typed():
			n.columns = n.namesOf(0)
		case len(m.Features) > 0 && m.Features[0].Sections != nil: // columns of different types
			for k := range width - n.cfg.NodeEmbedding {
				n.columns = append(n.columns, fmt.Sprintf("f%d", k))
			}
		case len(m.Features) > 0:
			n.columns = m.FeatureColumns(m.Features[0]).Names()
		}
		for k := range width - len(n.columns) { // of --node-embedding
			n.columns = append(n.columns, fmt.Sprintf("learned[%d]", k))
		}
	}
	for _, v := range n.batch.Dense.NodeIDs {
		t := 0
		if typed {
			t = m.TypeOf(v)
		}
		n.in.First = append(n.in.First, int32(first[t]))
		n.in.Wide = append(n.in.Wide, int32(wide[t]))
	}
	n.in.Columns = len(n.columns)
}

// namesOf returns the names of the columns of a type's rows.
func (n *neighborhood) namesOf(t int) []string {
	if n.cfg.Encoders != nil {
		return n.cfg.Encoders.Types[t].Names()
	}
	return n.trained.in.Meta.NodeTypes[t].FeatureColumns().Names()
}

// takeEdges finds which edge each entry is of: in a graph whose edges go both ways, both entries of
// an edge are of the same one.
func (n *neighborhood) takeEdges() {
	d := &n.batch.Dense
	type ends struct{ src, dst, kind uint32 }
	seen := map[ends]int32{}
	n.owner, n.in.Edge = make([]uint32, len(d.ReprMap)), make([]int32, len(d.ReprMap))
	for i := d.Inner() - 1; i >= 0; i-- { // the node's own list is the last
		v := d.NodeIDOffsets[1] + uint32(i)
		for e := d.NbrOffsets[i]; e < d.NbrOffsets[i+1]; e++ {
			key := ends{src: d.ReprMap[e], dst: v}
			if n.trained.in.Meta.Undirected && key.src > key.dst {
				key.src, key.dst = key.dst, key.src
			}
			if len(d.Types) > 0 {
				key.kind = d.Types[e]
			}
			at, known := seen[key]
			if !known {
				at = int32(len(n.entry))
				seen[key], n.entry = at, append(n.entry, int(e))
			}
			n.owner[e], n.in.Edge[e] = v, at
		}
	}
	n.in.Edges = len(n.entry)
}

// Outputs computes the outputs of the node: see explain.Net.
func (n *neighborhood) Outputs(mask, rows []float32) ([]float32, error) {
	if err := n.be.Begin(); err != nil {
		return nil, err
	}
	d := &n.batch.Dense
	n.x = append(n.x[:0], rows...)
	y, err := n.model.Forward(&d.Lists, n.x, model.Step{Nodes: d.NodeIDs, Mask: mask})
	if err != nil {
		return nil, err
	}
	n.outputs = mem.Resized(n.outputs, y.Len())
	n.be.Read(n.outputs, y)
	return n.outputs, n.be.Err()
}

// Gradients computes the gradients of the mask and of the rows: see explain.Net.
func (n *neighborhood) Gradients(outputs []float32) (mask, rows []float32, err error) {
	n.be.Write(n.model.GradLogits(), outputs)
	n.model.Backward()
	x := n.model.GradInput()
	n.ofRows = mem.Resized(n.ofRows, x.Len())
	n.be.Read(n.ofRows, x)
	n.ofMask = n.ofMask[:0]
	if m := n.model.GradMask(); m.Rows > 0 {
		n.ofMask = mem.Resized(n.ofMask, m.Len())
		n.be.Read(n.ofMask, m)
	}
	return n.ofMask, n.ofRows, n.be.Err()
}
