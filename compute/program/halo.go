package program

import (
	"slices"

	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
)

// Halo is what is known of nodes of a batch outside the part of the graph in memory, which have no
// lists there: their hidden states of earlier steps, as Joestar's partition-based sampling has them
// (003, section 5.2.2).
type Halo struct {
	// Inside is 1 for each of Nodes(0) in memory, and else 0: of Nodes(1) if layer 0 reads lists.
	Inside []float32
	// States have, by layer but the last, what is known of its rows: others are zeros.
	States [][]float32
	// Missing says, by hop, of which of Nodes(hop) there is no row: its lists leave them out. It is
	// nil where none is missing, as for a hop that layer 0 reads.
	Missing [][]bool
	// Computed is told what each layer but the last computed. It reads x before it returns.
	Computed func(layer int, x backend.Tensor)
}

// Known replaces the rows of x, the results of a layer, for the nodes outside memory by those that
// are known: Halo.States. No gradient goes through these.
func (b *Builder) Known(x Value, layer int) Value {
	vx := *b.p.of(x)
	inside := b.p.property(Inside, vx.rows)
	states := b.p.new(value{rows: vx.rows, cols: vx.cols, role: roleState, index: layer})
	y := b.Add(b.RowScale(x, inside), states)
	b.p.known = append(b.p.known, y)
	return y
}

// giveStates makes the states of nodes outside memory available.
func (m *Machine) giveStates() {
	m.states = m.states[:0]
	for layer, v := range m.p.known {
		x := m.p.of(v)
		states := m.in.Halo.States[layer]
		m.states = append(m.states, m.be.Host(states, m.batch.own.Of(x.rows), x.cols))
	}
}

// tellStates tells what a layer computed that ends with operation i.
func (m *Machine) tellStates(i int) {
	if layer := slices.Index(m.p.known, m.p.ops[i].out); layer >= 0 {
		m.in.Halo.Computed(layer, m.tensor(m.p.known[layer]))
	}
}

// keptLists are the lists of a hop without the nodes of which nothing is known.
type keptLists struct{ off, idx []uint32 }

// keep writes the lists of a hop, as Dense has them, without entries for missing nodes.
func (k *keptLists) keep(d *dense.Lists, hop int, missing []bool) {
	base, next := d.NodeIDOffsets[hop], d.NodeIDOffsets[hop+1]
	off := d.NbrOffsets[next-d.NodeIDOffsets[1]:]
	k.off, k.idx = mem.Resized(k.off, len(off)), k.idx[:0]
	for i := range off {
		k.off[i] = uint32(len(k.idx))
		if i+1 == len(off) {
			return
		}
		for _, r := range d.ReprMap[off[i]:off[i+1]] {
			if !missing[r-base] {
				k.idx = append(k.idx, r)
			}
		}
	}
}
