package model

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gdb/compute/program"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/sampletest"
	"gdb/train/setting"
)

// layerSpecs are all models of such widths that are trained by layers, with and without weights of
// edges, and how many there are.
func layerSpecs(t *testing.T, hidden ...int) (all []*Spec) {
	t.Helper()
	for _, a := range architectures {
		for _, o := range []setting.Options{{}, {Aggregate: "mean"}, {Aggregate: "sum"},
			{Aggregate: "max"},
			{EdgeWeight: true}, {EdgeWeight: true, Aggregate: "mean"}} {
			s := &Spec{Architecture: a, Dims: Widths(a, 6, 3, hidden), Options: o}
			usual := s.Validate()
			s.LayerWise = true
			if err := s.Validate(); err == nil {
				all = append(all, s)
			} else if usual == nil && !strings.Contains(err.Error(), "sampler layer: "+a.Name()) {
				t.Errorf("%s %s: %v", a.Name(), o.String(), err)
			}
		}
	}
	return all
}

// TestLayersOfAll: where a layer has all neighbors, models compute what they do over whole lists.
func TestLayersOfAll(t *testing.T) {
	often, weighted := repeated()
	specs := layerSpecs(t, 8)
	for _, s := range specs {
		g := often
		if s.EdgeWeight {
			g = weighted
		}
		got, _ := logitsOf(t, s, g)
		s.LayerWise = false
		want, _ := logitsOf(t, s, g)
		sameLogits(t, fmt.Sprint(s.Name(), s.Options), got, want)
	}
	if len(specs) != 26 {
		t.Errorf("%d models and ways are trained by layers, want 26", len(specs))
	}
}

// layerTrials are batches of which the mean is compared with whole lists.
const layerTrials = 500

// TestLayersEstimate: the logits of a model of one layer are linear in the sums over lists, so
// their mean over many batches comes near to those over whole lists, by as much as their variance
// says.
func TestLayersEstimate(t *testing.T) {
	often, weighted := repeated()
	tested := 0
	for _, s := range layerSpecs(t) {
		if s.Aggregate == "max" || s.Name() == "gin" || s.Name() == "mlp" {
			continue
		}
		g := often
		if s.EdgeWeight {
			g = weighted
		}
		want, m := logitsOf(t, s, g) // all neighbors
		sum, squares := make([]float64, len(want)), make([]float64, len(want))
		sampleLogits(t, m, g, func(logits []float32) {
			for i, x := range logits {
				sum[i] += float64(x)
				squares[i] += float64(x) * float64(x)
			}
		})
		varies := 0.0
		for i := range want {
			mean := sum[i] / layerTrials
			variance := max(0, squares[i]/layerTrials-mean*mean)
			varies = max(varies, variance)
			if diff := mean - float64(want[i]); math.Abs(diff) > 5*math.Sqrt(variance/
				layerTrials)+1e-4 {
				t.Errorf("%s %s: logit %d is %.4f on average, and %.4f over whole lists", s.Name(),
					s.Options.String(), i, mean, want[i])
			}
		}
		if varies < 1e-6 {
			t.Errorf("%s %s: logits are the same in all batches", s.Name(), s.Options.String())
		}
		tested++
	}
	if tested != 15 {
		t.Errorf("%d models and ways were tested, want 15", tested)
	}
}

// sampleLogits calls fn with the logits of the seeds 0 to 9 of batches of small layers.
func sampleLogits(t *testing.T, m *Model, g *sampletest.Graph, fn func(logits []float32)) {
	t.Helper()
	sampler, err := sample.NewSampler([]topology.Reader{g}, sample.Config{LayerSize: []int{15},
		Extras: m.spec.Extras()})
	if err != nil {
		t.Fatal(err)
	}
	defer sampler.Close()
	seeds := []sample.NodeID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	var d sample.Dense
	for trial := range uint64(layerTrials) {
		if err := sampler.Sample(t.Context(), 0, trial, seeds, &d); err != nil {
			t.Fatal(err)
		}
		if err := m.be.Begin(); err != nil {
			t.Fatal(err)
		}
		var x []float32
		for _, v := range d.NodeIDs {
			x = append(x, featuresOf(v, m.spec.Dims[0])...)
		}
		y, err := m.Forward(&d.Lists, x, Step{})
		if err != nil {
			t.Fatal(err)
		}
		fn(values(m.be, y))
	}
}

// TestLayersAreExactOverWholeLists: over whole lists, layer-wise sampling gives the same operations
// as any other, and rows of caches are read in place for plain means only.
func TestLayersAreExactOverWholeLists(t *testing.T) {
	for _, s := range layerSpecs(t, 8) {
		exact := func() (does string) {
			w := s.exactLayersOf(&program.Params{})[0]
			for _, p := range w.Pulls() {
				does += fmt.Sprintln("pull", p.Reduce, p.Weighted, p.Scored)
			}
			for k := program.InvSqrtDegree; k <= program.InvWeightSum; k++ {
				does += fmt.Sprintln("reads", k, w.Reads(k))
			}
			return does
		}
		byLayers, inPlace := exact(), s.InPlace()
		s.LayerWise = false
		if got := exact(); got != byLayers {
			t.Errorf("%s %s: over whole lists\n%s\nand not\n%s", s.Name(), s.Options.String(),
				byLayers, got)
		}
		if inPlace && s.Name() != "mlp" {
			t.Errorf("%s %s: rows are read in place", s.Name(), s.Options.String())
		}
	}
}

// TestLayersAreRefused: with a reason, and with what to do.
func TestLayersAreRefused(t *testing.T) {
	for name, want := range map[string]string{"gat": "softmax", "gatv2": "softmax",
		"rgcn": "of each type", "hsage": "of each type", "hgt": "softmax", "rgat": "softmax"} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s := &Spec{Architecture: a, Dims: Widths(a, 6, 4, []int{8}), LayerWise: true}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "--sampler neighbor") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLayersReadOfEdges: the weights of entries are not those of edges unless these are asked for.
func TestLayersReadOfEdges(t *testing.T) {
	for _, c := range []struct {
		options setting.Options
		want    sample.Extras
	}{
		{setting.Options{}, sample.Extras{Degrees: true}},
		{setting.Options{Aggregate: "sum"}, sample.Extras{}},
		{setting.Options{Aggregate: "max"}, sample.Extras{}},
		{setting.Options{EdgeWeight: true}, sample.Extras{EdgeWeights: true, WeightSums: true}},
	} {
		s := &Spec{Architecture: sage{}, Dims: []int{6, 8, 3}, Options: c.options, LayerWise: true}
		if got := s.Extras(); got != c.want {
			t.Errorf("sage %s reads %+v, want %+v", c.options.String(), got, c.want)
		}
	}
}
