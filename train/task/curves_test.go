package task

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"gdb/internal/rng"
)

// scored is the score of a node for a class.
type scored struct {
	score float64
	is    bool
}

// plainPrecision is the twin of addPrecision: it sorts all scores.
func plainPrecision(all []scored) (at []float64, area float64) {
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	of := 0
	for _, s := range all {
		if s.is {
			of++
		}
	}
	hit := 0
	for i, s := range all {
		if !s.is {
			continue
		}
		hit++
		precision := float64(hit) / float64(i+1)
		area += precision / float64(of)
		for len(at) <= recallSteps && float64(len(at))*float64(of) <= float64(hit)*recallSteps {
			at = append(at, precision)
		}
	}
	return at, area
}

// TestCurvesAreThoseOfSortedScores: the bins of a tally give the precisions of all scores, sorted.
func TestCurvesAreThoseOfSortedScores(t *testing.T) {
	const classes, nodes = 3, 4000
	draw := rng.NewStream(3)
	tally := &ClassTally{task: &Classes{Names: []string{"a", "b", "c"}}}
	tally.WillDraw()
	all := make([][]scored, classes)
	for range nodes {
		logits, label := make([]float32, classes), int32(draw.Below(classes))
		for k := range logits {
			logits[k] = float32(6*draw.Float64() - 3)
		}
		logits[label] += 1.5
		tally.curves.class(logits, label)
		p := make([]float32, classes)
		tally.task.probabilities(p, logits)
		for k := range p {
			all[k] = append(all[k], scored{float64(p[k]), int32(k) == label})
		}
	}
	got := tally.curves.result(tally.task.Names)
	want, area := make([]float64, recallSteps+1), 0.0
	for k := range all {
		at, one := plainPrecision(all[k])
		area += one / classes
		for i, v := range at {
			want[i] += v / classes
		}
	}
	if math.Abs(got.AveragePrecision-area) > 0.01 {
		t.Errorf("average precision %g, want %g", got.AveragePrecision, area)
	}
	for i, v := range got.Precision {
		// The first node alone decides precision at recall 0; a bin has several.
		if i > 0 && math.Abs(v-want[i]) > 0.02 {
			t.Errorf("precision %g at recall %g, want %g", v, float64(i)/recallSteps, want[i])
		}
	}
	if got.Precision[25] < got.Precision[50] || got.Class != "" {
		t.Errorf("the curve is %v of %q", got.Precision, got.Class)
	}
}

// TestReliability: predictions that come true as often as they say have no error, and others the
// difference; with two classes it is the second's probability that counts.
func TestReliability(t *testing.T) {
	logit := func(p float64) float32 { return float32(math.Log(p / (1 - p))) }
	tally := &ClassTally{task: &Classes{Names: []string{"no", "yes"}}}
	tally.WillDraw()
	for i := range 100 {
		label := int32(0)
		if i%4 == 0 {
			label = 1
		}
		tally.curves.class([]float32{0, logit(0.25)}, label) // a quarter, as it says
		label = 0
		if i%2 == 0 {
			label = 1
		}
		tally.curves.class([]float32{-logit(0.75), 0}, label) // a half, not three quarters
	}
	got := tally.curves.result(tally.task.Names)
	low, high := got.Reliability[2], got.Reliability[7]
	if got.Class != "yes" || low.Count != 100 || high.Count != 100 ||
		math.Abs(low.Probability-0.25) > 1e-6 || math.Abs(low.Right-0.25) > 1e-6 ||
		math.Abs(high.Probability-0.75) > 1e-6 || math.Abs(high.Right-0.5) > 1e-6 ||
		math.Abs(got.ECE-0.125) > 1e-6 {
		t.Errorf("%+v", got)
	}
	// At the higher odds 50 of 100 are right, at both 75 of 200.
	if got.Precision[0] != 0.5 || got.Precision[33] != 0.5 || got.Precision[34] != 0.375 ||
		math.Abs(got.AveragePrecision-(50*0.5+25*0.375)/75) > 1e-9 {
		t.Errorf("precision %v, area %g", got.Precision, got.AveragePrecision)
	}
}

// TestCurvesOfLabels: labels that are unknown do not count, and logits past all bins are in the
// last ones.
func TestCurvesOfLabels(t *testing.T) {
	unknown := float32(math.NaN())
	tally := &ClassTally{task: &Classes{Names: []string{"a", "b"}, Multi: true}}
	tally.WillDraw()
	tally.curves.multi([]float32{90, -900}, []float32{1, 0})
	tally.curves.multi([]float32{-90, 900}, []float32{0, unknown})
	got := tally.curves.result(tally.task.Names)
	if got.AveragePrecision != 1 || got.ECE > 1e-9 || got.Reliability[0].Count != 2 ||
		got.Reliability[9].Count != 1 || got.Class != "" {
		t.Errorf("%+v", got)
	}
	none := &ClassTally{task: &Classes{Names: make([]string, CurveClassesMost+1)}}
	if none.WillDraw(); none.curves != nil || CurveBytes(CurveClassesMost+1) != 0 {
		t.Error("curves of too many classes are counted")
	}
	some := &ClassTally{task: &Classes{Names: []string{"a", "b", "c"}}}
	some.WillDraw()
	some.curves.class([]float32{1, 2, 3}, 0)
	some.curves.class([]float32{3, 2, 1}, 0)
	if got := some.curves.result(some.task.Names); got != nil {
		t.Errorf("curves of nodes of one class: %+v", got)
	}
}
