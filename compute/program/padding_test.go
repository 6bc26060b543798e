package program

import (
	"math"
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/dense"
)

// TestPaddedBatches: a padded batch has the loss and the gradients of the batch, for every model
// whose programs can be padded; where rows are read in place too. On the CPU, which pads nothing
// itself, those that have values of entries cannot: they are compared on a device.
func TestPaddedBatches(t *testing.T) {
	for name, m := range testModels {
		for _, inPlace := range []bool{false, true} {
			b := newBench(t, m, Options{InPlace: inPlace})
			alone := slices.Contains([]string{"batch norm", "relations", "segments",
				"attention by type", "additive attention by type", "columns of edges with loops",
				"columns of edges by type"}, name)
			if pads := !alone; b.program.Pads() != pads {
				t.Fatalf("%s: can be padded: %v", name, !pads)
			}
			if !b.program.Pads() || b.program.hasEntryValues() {
				continue
			}
			want := b.results(t)
			b.input.Padded = &Sizes{Nodes: []int{25, 13, 3}, Entries: []int{30, 20}}
			for i, got := range b.results(t) {
				if d := math.Abs(float64(got - want[i])); !(d < 2e-5) {
					t.Fatalf("%s: value %d of a padded batch is %g, not %g", name, i, got, want[i])
				}
			}
		}
	}
}

// hasEntryValues reports whether an operation computes values of entries.
func (p *Program) hasEntryValues() bool {
	return slices.ContainsFunc(p.values, func(v value) bool {
		return v.rows.kind == entryRows || v.rows.kind == loopRows
	})
}

// TestPadsNoSums: the gradient of a matrix that entries are multiplied by sums up over them, those
// of the padding too, so that a step of it cannot be padded.
func TestPadsNoSums(t *testing.T) {
	weighted := func(b *Builder, x Value) Value {
		w := testDense(b, b.EdgeWeights(), "w", 1)
		return b.PullWeighted(x, w, b.Lists(), 1, false)
	}
	for _, train := range []bool{false, true} {
		p := Make(&Params{}, weighted, Options{Layers: 1, Features: testCols, Train: train})
		if p.Pads() == train {
			t.Errorf("training %v: can be padded: %v\n%s", train, p.Pads(), p)
		}
	}
}

// TestPad pads lists before the first, with and without loops; in a table, rows keep their numbers.
func TestPad(t *testing.T) {
	d := &dense.Lists{NodeIDOffsets: []uint32{0, 2, 4, 5}, NbrOffsets: []uint32{0, 2, 2, 3},
		ReprMap: []uint32{4, 0, 1}}
	p := &Prepared{own: SizesOf(d), sizes: Sizes{Nodes: []int{15, 5, 1}, Entries: []int{6, 4}}}
	for _, c := range []struct {
		use          listUse
		rows         []uint32
		off, idx, at []uint32
	}{
		{use: listUse{}, off: []uint32{3, 3, 3, 5, 5, 6}, idx: []uint32{0, 0, 0, 14, 10, 11}},
		{use: listUse{}, rows: []uint32{7, 8, 9}, off: []uint32{3, 3, 3, 5, 5, 6},
			idx: []uint32{0, 0, 0, 7, 8, 9}, at: []uint32{0, 0, 0, 4, 0, 1}},
		{use: listUse{List: List{Loops: true}}, off: []uint32{5, 5, 5, 8, 9, 11},
			idx: []uint32{0, 0, 0, 0, 0, 14, 10, 12, 13, 11, 14}},
	} {
		others := func(n int) []uint32 { return slices.Repeat([]uint32{99}, n) } // there before
		l := backend.Lists{Off: others(len(c.off)), Idx: others(len(c.idx))}
		if c.at != nil {
			l.At = others(len(c.at))
		}
		p.write(&l, c.use, &Input{Dense: d, Rows: c.rows})
		if !slices.Equal(l.Off, c.off) || !slices.Equal(l.Idx, c.idx) || !slices.Equal(l.At, c.at) {
			t.Errorf("%s: %d, %d and %d, want %d, %d and %d", c.use, l.Off, l.Idx, l.At, c.off,
				c.idx, c.at)
		}
	}
}
