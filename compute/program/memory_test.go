package program

import (
	"fmt"
	"testing"
)

// stamps says of each float of both regions whose value it holds.
type stamps struct {
	t       *testing.T
	what    string
	p       *Program
	s       Sizes
	l       *layout
	regions [2][]Value
}

// floats returns those that a value has; nil for one that is not laid out.
func (m *stamps) floats(v Value) []Value {
	x := m.p.of(v)
	if x.role != roleStep && x.role != roleFeatures {
		return nil
	}
	g := m.p.memory.of[v]
	group, spot := m.p.memory.groups[g], m.l.spots[g]
	first := (m.s.Of(group.rows) - m.s.Of(x.rows)) * x.cols
	end := first + m.s.Of(x.rows)*x.cols
	if x.half {
		first, end = first/2, (end+1)/2
	}
	first, end = spot.at+first, spot.at+end
	if end > len(m.regions[spot.region]) {
		m.t.Fatalf("%s: %%%d ends at float %d of %d", m.what, v, end, len(m.regions[spot.region]))
	}
	return m.regions[spot.region][first:end]
}

func (m *stamps) write(v Value) {
	for i := range m.floats(v) {
		m.floats(v)[i] = m.p.root(v)
	}
}

func (m *stamps) read(at string, v Value) {
	for _, of := range m.floats(v) {
		if of != m.p.root(v) {
			m.t.Fatalf("%s: where %s reads %%%d there is %%%d\n%s", m.what, at, v, of, m.p)
		}
	}
}

// TestNothingIsOverwritten follows, in all programs, which value each float of memory holds:
// whatever an operation reads is there as it was written.
func TestNothingIsOverwritten(t *testing.T) {
	models := map[string]Model{"wide": wideLayers, "sage": sageLayers}
	for name, m := range inputModels() {
		models[name] = m
	}
	few, many := SizesOf(testBatch()), sizesByHand
	few.Segments = []int{14, 5}
	few.Items, many.Items = 4, 30
	for name, m := range models {
		places := Make(&Params{}, m, Options{Layers: 2, Features: testCols, Train: true}).Places()
		for _, order := range orders(places) {
			for _, o := range []Options{{}, {Train: true}, {Train: true, Half: true},
				{Train: true, InPlace: true}, {Train: true, InputGrad: true},
				{Train: true, Half: true, HalfFeatures: true}} {
				o.Layers, o.Features, o.Order = 2, testCols, order
				p := Make(&Params{}, m, o)
				for _, s := range []Sizes{few, many} {
					followStamps(t, fmt.Sprintf("%s, %+v", name, o), p, s)
				}
			}
		}
	}
}

func followStamps(t *testing.T, what string, p *Program, s Sizes) {
	t.Helper()
	first := p.features
	if p.InPlace() {
		first = p.own
	}
	features := p.FeatureFloats(s.Of(p.of(first).rows))
	m := &stamps{t: t, what: what, p: p, s: s, l: p.memory.arrange(&s, features)}
	m.regions = [2][]Value{regionStep: make([]Value, m.l.floats),
		regionFeatures: make([]Value, features)}
	m.write(first)
	for i := range p.ops {
		if i == p.forward && p.seed != 0 {
			m.read("the loss", p.logits)
			m.write(p.seed)
			if logits := m.floats(p.logits); &logits[0] != &m.floats(p.seed)[0] {
				m.read("the loss", p.logits) // it may write in their place, and in no other of them
			}
		}
		o := &p.ops[i]
		for _, v := range o.reads() {
			m.read(p.Op(i), v)
		}
		for _, v := range append([]Value{o.out}, o.extra...) {
			m.write(v)
		}
		if o.target() != 0 && !o.copies && o.inPlace < 0 { // added to
			m.read(p.Op(i), o.out)
		}
		for _, v := range o.in { // while the result is written
			if target := o.target(); target == 0 || p.root(v) != p.root(target) || o.copies {
				m.read(p.Op(i), v)
			}
		}
	}
	if p.seed == 0 {
		m.read("the caller", p.logits)
	}
	if p.input != 0 {
		m.read("the caller", p.input)
	}
}

// TestMemoryByHand works out what a step takes, of a batch of 64 nodes of which 16 have lists.
func TestMemoryByHand(t *testing.T) {
	const large, small = 64 * 16, 16 * 16 // floats of rows of all nodes, and of those with lists
	s := Sizes{Nodes: []int{64, 16}, Entries: []int{48}}
	mean := func(b *Builder, x Value) Value {
		return b.Pull(testDense(b, x, "a", 16), b.Lists(), Mean)
	}
	for name, c := range map[string]struct {
		model Model
		o     Options
		want  int
	}{
		"a product, its mean, and a product in the place of the first": {func(b *Builder,
			x Value) Value {
			return testDense(b, mean(b, x), "b", 16)
		}, Options{Features: 1, Order: []bool{true}}, large + small},
		"the same, with all but the first in the features": {func(b *Builder, x Value) Value {
			return testDense(b, mean(b, x), "b", 16)
		}, Options{Features: 16, Order: []bool{true}}, large},
		"what is done in place": {func(b *Builder, x Value) Value {
			return b.Scale(b.ReLU(b.Shift(mean(b, x), 1)), 2)
		}, Options{Features: 1, Order: []bool{true}}, large + small},
		"a view that is read late keeps its rows only": {func(b *Builder, x Value) Value {
			h := testDense(b, x, "a", 16)
			y := b.GELU(b.GELU(b.Pull(h, b.Lists(), Sum))) // both in the first rows of h
			return b.Add(y, b.Own(h))
		}, Options{Features: 1, Order: []bool{true}}, large + small},
		"what is read late keeps all": {func(b *Builder, x Value) Value {
			h := testDense(b, x, "a", 16)
			y := b.GELU(b.Pull(h, b.Lists(), Sum))
			z := b.GELU(b.Pull(h, b.Lists(), Sum)) // in the place of the first sum
			return b.Add(b.Add(y, b.Own(h)), z)
		}, Options{Features: 1, Order: []bool{true}}, large + 2*small},
		"a step of training": {mean, Options{Features: 1, Train: true, Order: []bool{true}},
			large + small},
		"one that sends gradients to both": {func(b *Builder, x Value) Value {
			h := testDense(b, x, "a", 16)
			return b.Add(b.Pull(h, b.Lists(), Sum), b.Own(h))
		}, Options{Features: 1, Train: true, Order: []bool{true}}, large + small},
		"halves take half, and all but the first is in the features": {func(b *Builder,
			x Value) Value {
			return testDense(b, b.Pull(x, b.Lists(), Mean), "b", 16)
		}, Options{Features: 16, Half: true, HalfFeatures: true}, small / 2},
	} {
		c.o.Layers = 1
		p := Make(&Params{}, c.model, c.o)
		if got := p.StepFloats(&s, p.FeatureFloats(64)); got != c.want {
			t.Errorf("%s: %d floats, want %d\n%s", name, got, c.want, p)
		}
	}
}

// TestFreeLists: free memory is joined with what is free before and after it, and taken from its
// first place that is large enough; at the end a list grows from what is free there.
func TestFreeLists(t *testing.T) {
	f := freeList{grows: true}
	take := func(n, want int) {
		t.Helper()
		if at, ok := f.take(n); !ok || at != want {
			t.Errorf("%d floats are at %d, %v, want %d: %+v", n, at, ok, want, f)
		}
	}
	take(16, 0)
	take(32, 16)
	take(16, 48)
	take(16, 64)
	f.give(span{0, 16})
	take(32, 80) // the first place is too small
	f.give(span{48, 16})
	f.give(span{16, 32}) // all from 0 to 64 is free
	take(64, 0)
	f.give(span{80, 32})
	take(48, 80) // and 16 more
	if f.end != 128 || len(f.spans) != 0 {
		t.Errorf("%d floats, of which %v are free, want 128 and none", f.end, f.spans)
	}
	f = freeList{end: 32, spans: []span{{0, 32}}}
	take(16, 0)
	if at, ok := f.take(32); ok {
		t.Errorf("32 floats are at %d of 32, of which 16 are taken", at)
	}
	take(16, 16)
}
