package task

import (
	"math"

	"gdb/internal/mem"
)

// Thresholds of multi-labels are chosen from logits that are 1/thresholdsPerUnit apart, up to
// thresholdSpan from 0, which is a probability of one half: 0.0003 to 0.9997.
const (
	thresholdsPerUnit = 16
	thresholdSpan     = 8
	thresholdCount    = 2*thresholdSpan*thresholdsPerUnit + 1
	thresholdHalf     = thresholdCount / 2
	// thresholdBins is how many bins the thresholds divide logits into.
	thresholdBins = thresholdCount + 1
	// thresholdLabelsMost bounds the memory for counting: 8.5 MB. With more labels all
	// thresholds are one half.
	thresholdLabelsMost = 4096
	// thresholdNodesLeast is how many nodes must have a label for its threshold to be chosen: with
	// fewer the best one is chance.
	thresholdNodesLeast = 3
)

// ThresholdBytes returns the memory that choosing the thresholds of a number of labels takes.
func ThresholdBytes(labels int) int64 {
	if labels > thresholdLabelsMost {
		return 0
	}
	return mem.HeapCost(2 * 4 * thresholdBins * int64(labels))
}

// threshold returns the j-th of the thresholds to choose from, which ascend.
func threshold(j int) float32 {
	return float32(j-thresholdHalf) / thresholdsPerUnit
}

// thresholdBin returns how many of the thresholds a logit is above.
func thresholdBin(logit float32) int {
	k := int(max(0, min(thresholdCount, (logit+thresholdSpan)*thresholdsPerUnit)))
	for k < thresholdCount && logit > threshold(k) {
		k++
	}
	for k > 0 && !(logit > threshold(k-1)) {
		k--
	}
	return k
}

// choice counts nodes for each label by the bins of their logits, to choose thresholds from.
type choice struct {
	with, without []uint32 // (labels, thresholdBins): nodes that have the label, or not
}

func newChoice(labels int) *choice {
	return &choice{with: make([]uint32, labels*thresholdBins),
		without: make([]uint32, labels*thresholdBins)}
}

// add counts one node for the labels that are known of it.
func (c *choice) add(logits, truth []float32) {
	for k, v := range logits {
		at := k*thresholdBins + thresholdBin(v)
		switch t := truth[k]; {
		case t > 0:
			c.with[at]++
		case t == t:
			c.without[at]++
		}
	}
}

// outcomes counts the predictions of one label when it is predicted for all nodes
// above a threshold.
type outcomes struct{ hit, wrong, missed uint64 }

// worth returns what a threshold is chosen by: F1 or, if least is not 0, recall where precision is
// at least that. Where it is less, the worth is below all of these, and higher with precision.
func (o outcomes) worth(least float64) float64 {
	f, _ := F1(o.hit, o.wrong, o.missed)
	if least == 0 {
		return f
	}
	precision := float64(o.hit) / float64(max(1, o.hit+o.wrong))
	if precision < least {
		return precision
	}
	return 1 + float64(o.hit)/float64(max(1, o.hit+o.missed))
}

// best returns the threshold of a label with the highest worth, and the outcomes at it. Of equal
// ones it takes the one closest to one half.
func (c *choice) best(label int, least float64) (at int, o outcomes) {
	with := c.with[label*thresholdBins : (label+1)*thresholdBins]
	without := c.without[label*thresholdBins : (label+1)*thresholdBins]
	total := uint64(0)
	for _, n := range with {
		total += uint64(n)
	}
	above, most := outcomes{missed: total}, -1.0
	for j := thresholdCount - 1; j >= 0; j-- {
		above.hit, above.missed = above.hit+uint64(with[j+1]), above.missed-uint64(with[j+1])
		above.wrong += uint64(without[j+1])
		f := above.worth(least)
		better := f > most || f == most && distance(j) < distance(at)
		if total < thresholdNodesLeast {
			better = j == thresholdHalf
		}
		if better {
			at, o, most = j, above, f
		}
	}
	return at, o
}

// distance returns how far a threshold is from one half.
func distance(j int) int { return max(j-thresholdHalf, thresholdHalf-j) }

// WillChoose makes the tally count for Chosen from now on, if nodes can have several labels and
// there are not too many labels, or if there are two classes and a precision to reach, least.
func (t *ClassTally) WillChoose(least float64) {
	t.least = least
	switch {
	case t.task.Multi && t.task.Outputs() <= thresholdLabelsMost:
		t.choice = newChoice(t.task.Outputs())
	case !t.task.Multi && least > 0:
		t.choice = newChoice(1)
	}
}

// Chooses reports whether the tally counts for Chosen.
func (t *ClassTally) Chooses() bool { return t.choice != nil }

// Chosen returns for each label the threshold, a logit, at which its F1 over the counted nodes is
// highest, or its recall at a precision. From then on the tally's F1 are those at these thresholds,
// and of multi-labels its accuracy has no meaning. Of two classes the thresholds are of the
// log-odds of each.
func (t *ClassTally) Chosen() []float32 {
	chosen := make([]float32, t.task.Outputs())
	if !t.task.Multi {
		at, o := t.choice.best(0, t.least)
		chosen[0], chosen[1] = -threshold(at), threshold(at)
		t.two(o)
		return chosen
	}
	for k := range chosen {
		at, o := t.choice.best(k, t.least)
		chosen[k] = threshold(at)
		t.hit[k], t.wrong[k], t.missed[k] = o.hit, o.wrong, o.missed
	}
	t.right = 0
	return chosen
}

// probabilityOf returns the sigmoid of a logit.
func probabilityOf(logit float32) float64 { return 1 / (1 + math.Exp(-float64(logit))) }
