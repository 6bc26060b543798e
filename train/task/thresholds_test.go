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
	tally.WillChoose(0)
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

// TestThresholdAtPrecision compares with recall and precision at every threshold.
func TestThresholdAtPrecision(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	task := &Classes{Names: []string{"no", "yes"}}
	tally := &ClassTally{Counts: newCounts(2), task: task}
	tally.WillChoose(0.6)
	var odds []float32
	var labels []int32
	for range 400 {
		label := int32(r.IntN(5) / 4)
		odds = append(odds, float32(r.NormFloat64())+float32(label)-1)
		labels = append(labels, label)
		tally.class(0, label)
		tally.choice.add(odds[len(odds)-1:], []float32{float32(label)})
	}
	count := func(at float32) (o outcomes) {
		for i, v := range odds {
			switch yes := task.predicted([]float32{0, v}) == 1; {
			case yes != (v > at):
				t.Fatalf("log-odds %v at %v: %v", v, at, yes)
			case yes && labels[i] == 1:
				o.hit++
			case yes:
				o.wrong++
			case labels[i] == 1:
				o.missed++
			}
		}
		return o
	}
	chosen, most := tally.Chosen(), 0.0
	for j := range thresholdCount {
		task.Thresholds = []float32{-threshold(j), threshold(j)}
		o := count(threshold(j))
		if precision := float64(o.hit) / float64(o.hit+o.wrong); precision >= 0.6 {
			most = max(most, float64(o.hit)/float64(o.hit+o.missed))
		}
	}
	task.Thresholds = chosen
	o, s := count(chosen[1]), tally.Scores(task.Names)
	if s[1].Recall != most || most == 0 || s[1].Precision < 0.6 ||
		s[1].Recall != float64(o.hit)/float64(o.hit+o.missed) || s[0].Nodes+s[1].Nodes != 400 {
		t.Errorf("recall %v at precision %v, want %v; %+v", s[1].Recall, s[1].Precision, most, o)
	}
}
