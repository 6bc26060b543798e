package task

import (
	"fmt"
)

// Counts are the outcomes of predictions, by class; all metrics but roc-auc follow from them.
// Memory: 24 bytes per class.
type Counts struct {
	Nodes  uint64   // labeled nodes seen
	right  uint64   // nodes whose prediction is wholly right
	hit    []uint64 // predicted and true, by class
	wrong  []uint64 // predicted, not true
	missed []uint64 // true, not predicted
	rocAUC float64  // computed from scores, only if it is the metric of the run
}

func newCounts(classes int) *Counts {
	return &Counts{hit: make([]uint64, classes), wrong: make([]uint64, classes),
		missed: make([]uint64, classes)}
}

// class counts one node of a class; label -1 is none and not counted.
func (c *Counts) class(predicted, label int32) {
	if label < 0 {
		return
	}
	c.Nodes++
	if predicted == label {
		c.right++
		c.hit[label]++
		return
	}
	c.wrong[predicted]++
	c.missed[label]++
}

// multi counts one node of multi-labels: a class is predicted if its logit is positive, which is a
// probability over one half.
func (c *Counts) multi(logits, truth []float32) {
	c.Nodes++
	right := true
	for k, t := range truth {
		switch yes := logits[k] > 0; {
		case yes && t > 0:
			c.hit[k]++
		case yes:
			c.wrong[k]++
			right = false
		case t > 0:
			c.missed[k]++
			right = false
		}
	}
	if right {
		c.right++
	}
}

// Metric computes a metric by name.
func (c *Counts) Metric(name string) (float64, error) {
	if c.Nodes == 0 {
		return 0, ErrNothing
	}
	switch name {
	case Accuracy:
		return float64(c.right) / float64(c.Nodes), nil
	case MicroF1:
		var hit, wrong, missed uint64
		for k := range c.hit {
			hit, wrong, missed = hit+c.hit[k], wrong+c.wrong[k], missed+c.missed[k]
		}
		f, ok := F1(hit, wrong, missed)
		if !ok {
			return 0, fmt.Errorf("%w: no label is set and none predicted", ErrNothing)
		}
		return f, nil
	case MacroF1:
		return c.macroF1()
	case ROCAUC:
		return c.rocAUC, nil
	}
	return 0, fmt.Errorf("unknown metric %q", name)
}

// macroF1 is the mean over the classes that were predicted or true at least once.
func (c *Counts) macroF1() (float64, error) {
	sum, n := 0.0, 0
	for k := range c.hit {
		if f, ok := F1(c.hit[k], c.wrong[k], c.missed[k]); ok {
			sum, n = sum+f, n+1
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: no label is set and none predicted", ErrNothing)
	}
	return sum / float64(n), nil
}

// F1 is the harmonic mean of precision and recall; ok is false where neither is defined.
func F1(hit, wrong, missed uint64) (f float64, ok bool) {
	if hit+wrong+missed == 0 {
		return 0, false
	}
	return 2 * float64(hit) / float64(2*hit+wrong+missed), true
}
