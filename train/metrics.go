package train

import (
	"errors"
	"fmt"
)

// Names of the metrics.
const (
	metricAccuracy = "accuracy"
	metricMicroF1  = "micro-f1"
	metricMacroF1  = "macro-f1"
	metricROCAUC   = "roc-auc"
)

// errNothing is the error of a metric over no labeled node: never a number.
var errNothing = errors.New("no labeled node to compute a metric over")

// counts are the outcomes of predictions, by class; all metrics but roc-auc follow from them.
// Memory: 24 bytes per class.
type counts struct {
	nodes  uint64   // labeled nodes seen
	right  uint64   // nodes whose prediction is wholly right
	hit    []uint64 // predicted and true, by class
	wrong  []uint64 // predicted, not true
	missed []uint64 // true, not predicted
	rocAUC float64  // computed from scores, only if it is the metric of the run
}

func newCounts(classes int) *counts {
	return &counts{hit: make([]uint64, classes), wrong: make([]uint64, classes),
		missed: make([]uint64, classes)}
}

// class counts one node of a class; label -1 is none and not counted.
func (c *counts) class(predicted, label int32) {
	if label < 0 {
		return
	}
	c.nodes++
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
func (c *counts) multi(logits, truth []float32) {
	c.nodes++
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

// metric computes a metric by name.
func (c *counts) metric(name string) (float64, error) {
	if c.nodes == 0 {
		return 0, errNothing
	}
	switch name {
	case metricAccuracy:
		return float64(c.right) / float64(c.nodes), nil
	case metricMicroF1:
		var hit, wrong, missed uint64
		for k := range c.hit {
			hit, wrong, missed = hit+c.hit[k], wrong+c.wrong[k], missed+c.missed[k]
		}
		f, ok := f1(hit, wrong, missed)
		if !ok {
			return 0, fmt.Errorf("%w: no label is set and none predicted", errNothing)
		}
		return f, nil
	case metricMacroF1:
		return c.macroF1()
	case metricROCAUC:
		return c.rocAUC, nil
	}
	return 0, fmt.Errorf("unknown metric %q", name)
}

// macroF1 is the mean over the classes that were predicted or true at least once.
func (c *counts) macroF1() (float64, error) {
	sum, n := 0.0, 0
	for k := range c.hit {
		if f, ok := f1(c.hit[k], c.wrong[k], c.missed[k]); ok {
			sum, n = sum+f, n+1
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%w: no label is set and none predicted", errNothing)
	}
	return sum / float64(n), nil
}

func f1(hit, wrong, missed uint64) (f float64, ok bool) {
	if hit+wrong+missed == 0 {
		return 0, false
	}
	return 2 * float64(hit) / float64(2*hit+wrong+missed), true
}
