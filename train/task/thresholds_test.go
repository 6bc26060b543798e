package task

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestThresholdBins(t *testing.T) {
	for j := range thresholdCount {
		at := threshold(j)
		below, above := math.Nextafter32(at, -99), math.Nextafter32(at, 99)
		if j > 0 && !(threshold(j-1) < below) || thresholdBin(at) != j ||
			thresholdBin(below) != j || thresholdBin(above) != j+1 {
			t.Errorf("threshold %d, %v: bins %d, %d, %d", j, at, thresholdBin(below),
				thresholdBin(at), thresholdBin(above))
		}
	}
	if threshold(thresholdHalf) != 0 || thresholdBin(-1e30) != 0 ||
		thresholdBin(1e30) != thresholdBins-1 {
		t.Error("the ends, or the middle, are elsewhere")
	}
}

// TestThresholds compares with F1 at every threshold, counted one by one.
func TestThresholds(t *testing.T) {
	const labels = 6
	r := rand.New(rand.NewPCG(5, 6))
	tally := &ClassTally{Counts: newCounts(labels), task: &Classes{Names: make([]string, labels),
		Multi: true}}
	tally.WillChoose()
	var logits, truths [][]float32
	for range 300 {
		y, has := make([]float32, labels), make([]float32, labels)
		for k := range y {
			rare := []int{2, 3, 8, 20, 300, 1000}[k]
			if r.IntN(rare) == 0 {
				has[k] = 1
			}
			y[k] = float32(r.NormFloat64()*2) + 2*has[k] - float32(k)
		}
		logits, truths = append(logits, y), append(truths, has)
		tally.multi(y, has, nil)
		tally.choice.add(y, has)
	}
	chosen := tally.Chosen()
	f1 := func(k int, at float32) (f float64, with uint64) {
		var o outcomes
		for i, y := range logits {
			switch yes, has := y[k] > at, truths[i][k] > 0; {
			case yes && has:
				o.hit++
			case yes:
				o.wrong++
			case has:
				o.missed++
			}
		}
		f, _ = F1(o.hit, o.wrong, o.missed)
		return f, o.hit + o.missed
	}
	for k, at := range chosen {
		got, with := f1(k, at)
		if counted, _ := F1(tally.hit[k], tally.wrong[k], tally.missed[k]); counted != got {
			t.Errorf("label %d: F1 %v is counted, %v by nodes", k, counted, got)
		}
		if with < thresholdNodesLeast {
			if at != 0 {
				t.Errorf("label %d of %d nodes has threshold %v", k, with, at)
			}
			continue
		}
		for j := range thresholdCount {
			f, _ := f1(k, threshold(j))
			if f > got || f == got && math.Abs(float64(threshold(j))) < math.Abs(float64(at)) {
				t.Errorf("label %d: F1 %v at %v, but %v at %v", k, got, at, f, threshold(j))
			}
		}
	}
	if got, err := tally.Metric(MacroF1); err != nil || got < 0.3 {
		t.Errorf("macro-F1 %v, %v", got, err)
	}
}
