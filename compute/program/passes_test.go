package program

import (
	"slices"
	"strings"
	"testing"
)

// sageLayers are two layers of means and products, as GraphSAGE has them.
func sageLayers(b *Builder, x Value) Value {
	for l := range 2 {
		cols := []int{6, 3}[l]
		x = b.Dropout(x, 0.5)
		mean := b.Pull(x, b.Lists(), Mean)
		own := b.Own(x)
		at := []string{"1 ", "2 "}[l]
		x = b.Add(testDense(b, own, at+"own", cols), testDense(b, mean, at+"mean", cols))
		x = b.Bias(x, b.Param(at+"bias", 1, cols, Zero))
		if l == 0 {
			x = b.ReLU(x)
		}
		b.Next()
	}
	return x
}

// made prints a program of two layers, trained.
func made(m Model, o Options) string {
	o.Layers, o.Features, o.Train = 2, testCols, true
	return Make(&Params{}, m, o).String()
}

// attentionLayers returns a layer of attention, and one that only takes the nodes' own rows.
func attentionLayers(b *Builder, x Value) Value {
	y := testAttention(false)(b, x)
	b.Next()
	return b.Scale(b.Own(y), 1)
}

// TestPasses shows what each pass makes of a program: lines that are there only without it, and
// lines that are there only with it.
func TestPasses(t *testing.T) {
	all := Passes{Elements: true, Sums: true, Dead: true}
	without := func(clear func(p *Passes)) Options {
		p := all
		clear(&p)
		return Options{Without: p}
	}
	for name, c := range map[string]struct {
		model         Model
		before, after Options
		gone, come    []string
	}{
		"elements": {sageLayers, Options{Without: all},
			without(func(p *Passes) { p.Elements = false }),
			[]string{"= bias(%9, 1 bias)", "= relu("}, []string{"= bias-relu(%9, 1 bias)"}},
		"sums": {sageLayers, Options{Without: all}, without(func(p *Passes) { p.Sums = false }),
			[]string{"= add(%6, %8)"}, []string{"= %6 + matmul(%3, 1 mean)"}},
		"order: the product first": {sageLayers, Options{Without: all},
			Options{Without: all, Order: []bool{true}},
			[]string{"= pull-mean(%2) hop0", "= matmul(%3, 1 mean)"},
			[]string{"= matmul(%2, 1 mean)", "= push-mean(%32) hop0"}},
		"order: weights of heads first": {attentionLayers, Options{Without: all},
			Options{Without: all, Order: []bool{false}},
			[]string{"= matmul(features, g0z)"},
			[]string{"= headmul(g0z, g0src)", "= pull-weighted(features,"}},
		"attention": {attentionLayers, Options{Without: all},
			Options{Without: all, FuseAttention: true}, []string{"= scores(", "= softmax(",
				"= pull-weighted(", "= push-weighted("},
			[]string{"= attend(%3, %5, %8) hop0 dropout",
				"= attend-to-rows(%18, %3,", "= attend-to-scores("}},
		"attention over rows that are not learned": {attentionLayers,
			Options{Without: all, Order: []bool{false}},
			Options{Without: all, Order: []bool{false}, FuseAttention: true}, nil,
			[]string{"= attend(features,", "= attend-to-scores("}},
		"rows in place": {sageLayers, Options{Without: all}, Options{Without: all, InPlace: true},
			[]string{"(N0 x 6) = dropout(features)", "= pull-mean(%2) hop0"},
			[]string{"= pull-mean-dropped(table) hop0", "= matmul(%25, 1 own)"}},
	} {
		before, after := made(c.model, c.before), made(c.model, c.after)
		for _, line := range c.gone {
			if !strings.Contains(before, line) || strings.Contains(after, line) {
				t.Errorf("%s: %q is not what the pass takes away:\n%s\n%s", name, line, before,
					after)
			}
		}
		for _, line := range c.come {
			if strings.Contains(before, line) || !strings.Contains(after, line) {
				t.Errorf("%s: %q is not what the pass makes:\n%s\n%s", name, line, before, after)
			}
		}
	}
}

// TestDeadBackward: a first layer that aggregates before it multiplies has no backward pass over
// its lists: nothing that is learned comes before (Joestar, 003, section 5.3.3).
func TestDeadBackward(t *testing.T) {
	aggregates := made(sageLayers, Options{})
	multiplies := made(sageLayers, Options{Order: []bool{true}})
	if strings.Count(aggregates, "push-mean") != 1 || strings.Count(multiplies, "push-mean") != 2 {
		t.Errorf("backward passes over lists:\n%s\n%s", aggregates, multiplies)
	}
}

// TestMemoryIsUsedAgain: a step takes less scratch than all its values, and what it leaves of the
// features.
func TestMemoryIsUsedAgain(t *testing.T) {
	p := Make(&Params{}, sageLayers, Options{Layers: 2, Features: testCols, Train: true})
	s, all := SizesOf(testBatch()), 0
	for _, g := range p.memory.groups {
		if g.role == roleStep {
			all += aligned(s.Of(g.rows) * g.cols)
		}
	}
	l, dead := p.memory.arrange(&s, s.Nodes[0]*testCols), 0
	for i, spot := range l.spots {
		if p.memory.groups[i].role == roleStep && spot.region == regionFeatures {
			dead++
		}
	}
	if l.floats >= all || dead == 0 {
		t.Errorf("scratch of %d floats for values of %d, of which %d are in the features' dead "+
			"rows", l.floats, all, dead)
	}
}

// TestFewColumns: the gradient of the weights of heads is a product of few columns where a head of
// the second operand has few, though all of them together have more.
func TestFewColumns(t *testing.T) {
	const heads, first = 4, 4 * 16
	for cols, want := range map[int][2]operand{
		heads * fewColumns:       {takesEither, takesFloats},
		heads * (fewColumns + 1): {takesHalf, takesHalf},
	} {
		p := &Program{}
		x, dy := p.new(value{rows: Nodes(0), cols: first}), p.new(value{rows: Nodes(0), cols: cols})
		o := simple(opHeadMulTA, x, dy)
		o.heads, o.out = heads, p.new(value{rows: Fixed(first / heads), cols: cols})
		if got := [2]operand{p.takes(&o, 0), p.takes(&o, 1)}; got != want {
			t.Errorf("%d columns: operands are taken as %v, want %v", cols, got, want)
		}
	}
}

// TestReadTwiceIsCopied: an operation whose result would come in the place of a value that it also
// reads as another operand, as h + h W, has memory of its own for it, in both passes: it would read
// what it has written.
func TestReadTwiceIsCopied(t *testing.T) {
	found := 0
	for name, m := range testModels {
		p := Make(&Params{}, m, Options{Layers: 2, Features: testCols, Train: true})
		for i := range p.ops {
			o := &p.ops[i]
			target, operands := o.acc, o.in
			if target == 0 && o.inPlace >= 0 {
				target, operands = o.in[o.inPlace], slices.Delete(slices.Clone(o.in), o.inPlace,
					o.inPlace+1)
			}
			if target == 0 || !slices.ContainsFunc(operands, func(v Value) bool {
				return p.root(v) == p.root(target)
			}) {
				continue
			}
			if found++; !o.copies || p.memory.of[o.out] == p.memory.of[p.root(target)] {
				t.Errorf("%s: %%%d is written in the place of %%%d, which it reads:\n%s", name,
					o.out, target, p)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d operations read their target twice, want those of both passes of h + h W",
			found)
	}
}
