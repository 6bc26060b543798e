package program

import (
	"slices"
	"testing"

	"gdb/compute/backend"
	"gdb/internal/dense"
	"gdb/internal/mem"
)

// plainPreparer lays lists out one part after the other, and makes nothing of them.
type plainPreparer struct {
	backend.Preparer
	taken, finished int
	sent            []uint32
}

func (p *plainPreparer) Send(b *backend.Block) backend.Tensor {
	p.taken--
	p.sent = b.Words
	return backend.Tensor{Rows: 1, Cols: len(b.Words)}
}

func (p *plainPreparer) ListWords(s backend.ListSizes) int {
	return (s.Lists/backend.BlockAlign + 2*s.Entries/backend.BlockAlign + 2) * backend.BlockAlign
}

func (p *plainPreparer) ListsIn(words []uint32, s backend.ListSizes) backend.Lists {
	l := backend.Lists{Off: words[:s.Lists+1], Idx: words[s.Lists+1:][:s.Entries], Rows: s.Rows,
		Entries: s.Weights}
	if s.At {
		l.At = words[s.Lists+1+s.Entries:][:s.Entries]
	}
	return l
}

func (p *plainPreparer) FinishLists([]uint32, *backend.Lists) { p.finished++ }

func (p *plainPreparer) TakeBlock(words int) (*backend.Block, error) {
	p.taken++
	return &backend.Block{Words: slices.Repeat([]uint32{^uint32(0)}, words)}, nil
}

func (p *plainPreparer) DropBlock(*backend.Block) { p.taken-- }

// TestPreparedInBlock: what is prepared for a device is what the step reads where the host does,
// for every model, with and without padding.
func TestPreparedInBlock(t *testing.T) {
	for name, m := range testModels {
		b := newBench(t, m, Options{})
		if b.program.Reads(EdgeColumn) { // devices refuse them
			continue
		}
		b.input.Rows = b.input.Dense.ReprMap
		for _, padded := range []*Sizes{nil, {Nodes: []int{25, 13, 3}, Entries: []int{30, 20}}} {
			if b.input.Padded = padded; padded != nil && !b.program.Pads() {
				continue
			}
			device := &plainPreparer{}
			want, got := NewPrepared(nil), NewPrepared(nil)
			for range 2 { // in the same memory
				if err := want.Prepare(b.program, &b.input, nil); err != nil {
					t.Fatal(err)
				}
				if err := got.Prepare(b.program, &b.input, device); err != nil {
					t.Fatal(err)
				}
			}
			comparePrepared(t, name, want, got)
			if device.finished != 2*len(b.program.lists) {
				t.Errorf("%s: %d lists are finished", name, device.finished)
			}
			if n, most := len(got.block.Words), b.program.BlockWords(&got.sizes); n > most+
				backend.BlockAlign*2*len(b.program.lists) {
				t.Errorf("%s: a block of %d words, planned are %d", name, n, most)
			}
			if got.Free(); device.taken != 0 {
				t.Errorf("%s: %d blocks are not given back", name, device.taken)
			}
		}
	}
}

func comparePrepared(t *testing.T, name string, want, got *Prepared) {
	t.Helper()
	for i, l := range got.program.lists {
		x, y := &want.lists[i], &got.lists[i]
		if !slices.Equal(x.Off, y.Off) || !slices.Equal(x.Idx, y.Idx) ||
			!slices.Equal(x.At, y.At) || x.Rows != y.Rows || x.Lists.Entries != y.Lists.Entries {
			t.Errorf("%s: %s are %+v, want %+v", name, l, y.Lists, x.Lists)
		}
	}
	for k := range Property(properties) {
		x := want.properties[k]
		if !x.read {
			continue
		}
		rows := got.propertyRows(k)
		in := mem.View[float32](mem.BytesOf(got.block.Words[got.properties[k].first:][:rows]))
		zeros := rows - len(x.of)
		if !slices.Equal(in[zeros:], x.of) || slices.ContainsFunc(in[:zeros],
			func(v float32) bool { return v != 0 }) {
			t.Errorf("%s: property %d is %v, want %v behind zeros", name, k, in, x.of)
		}
	}
}

// TestBlockWords works out by hand what a block takes of a batch of 64 nodes, of which 16 have
// lists.
func TestBlockWords(t *testing.T) {
	p := Make(&Params{}, func(b *Builder, x Value) Value {
		return b.RowScale(b.Pull(x, b.Lists(), Sum), b.InvWeightSums())
	}, Options{Layers: 1, Features: testCols})
	got := p.BlockWords(&Sizes{Nodes: []int{64, 16}, Entries: []int{48}})
	if want := 16 + 1 + 48 + 6*backend.BlockAlign + 16 + backend.BlockAlign; got != want {
		t.Errorf("a block of %d words, want %d", got, want)
	}
}

// TestPreparedAgain: a batch that is prepared in the memory of the one before takes no memory.
func TestPreparedAgain(t *testing.T) {
	b := newBench(t, sageLayers, Options{})
	budget := mem.NewBudget(0)
	p := NewPrepared(budget)
	prepare := func() {
		if err := p.Prepare(b.program, &b.input, nil); err != nil {
			t.Fatal(err)
		}
	}
	prepare()
	held := budget.Used()
	if prepare(); held == 0 || budget.Used() != held {
		t.Errorf("%d bytes are held, before %d", budget.Used(), held)
	}
	if p.Free(); budget.Used() != 0 {
		t.Errorf("%d bytes are held in the end", budget.Used())
	}
}

// TestNoHops: a batch without hops has neither lists nor what nodes with lists have.
func TestNoHops(t *testing.T) {
	b := newBench(t, sageLayers, Options{})
	b.program = Make(&Params{}, func(b *Builder, x Value) Value { return b.ReLU(x) },
		Options{Features: testCols})
	b.input = Input{Dense: &dense.Lists{NodeIDOffsets: []uint32{0, 17}}, X: testFeatures()}
	if got := mustForward(t, b.machine, b.program, b.input); got.Rows != 17 {
		t.Errorf("%d rows", got.Rows)
	}
}

// TestStepAllocations: a step on a prepared batch allocates what kernels share among their threads,
// some words for each operation, however large the batch is.
func TestStepAllocations(t *testing.T) {
	b := newBench(t, sageLayers, Options{})
	b.input.X = testFeatures()
	batch, err := b.machine.Prepare(b.program, &b.input)
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		if err := b.be.Begin(); err != nil {
			t.Fatal(err)
		}
		logits, err := b.machine.Forward(batch, b.input)
		if err != nil {
			t.Fatal(err)
		}
		backend.Copy(b.be, b.machine.GradLogits(), logits)
		b.machine.Backward()
	}
	n := testing.AllocsPerRun(10, step)

	if most := float64(5 * b.program.Len()); n > most {
		t.Errorf("%g allocations of a step of %d operations", n, b.program.Len())
	}
}

// TestPlaces: a step sends the room for places that was asked for last, behind all else, and none
// where nobody asked.
func TestPlaces(t *testing.T) {
	b := newBench(t, sageLayers, Options{})
	device, p := &plainPreparer{}, NewPrepared(nil)
	for _, places := range []int{0, 2} {
		b.input.Places = places
		for _, asked := range []int{0, 1, 3} {
			if err := p.Prepare(b.program, &b.input, device); err != nil {
				t.Fatal(err)
			}
			room := places * p.FeatureRows()
			if p.Places(room+1) != nil {
				t.Errorf("there is room for more than %d words", room)
			}
			if asked > room {
				continue
			}
			if asked > 0 {
				p.Places(2)
				for i := range p.Places(asked) {
					p.Places(asked)[i] = uint32(7 + i)
				}
			}
			all, got := p.send()
			last := device.sent[len(device.sent)-asked:]
			if got.Len() != asked || all.Len() != len(device.sent) ||
				got.Offset != len(device.sent)-asked ||
				len(device.sent)-asked != p.places.first {
				t.Errorf("places are %+v of %+v, %d words", got, all, len(device.sent))
			}
			for i, v := range last {
				if v != uint32(7+i) {
					t.Errorf("places are %d", last)
				}
			}
		}
	}
}
