package task

import (
	"fmt"
)

// Counts counts the outcomes of predictions by class; all metrics but roc-auc and pr-auc follow
// from them. It takes 24 bytes for each class, and 8 for each pair of up to 100 classes.
type Counts struct {
	Nodes  uint64   // labeled nodes seen
	right  uint64   // nodes whose prediction is wholly right
	hit    []uint64 // predicted and true, by class
	wrong  []uint64 // predicted, not true
	missed []uint64 // true, not predicted
	// pairs counts predictions by true class and predicted class, row by row; nil for multi-labels
	// and for more than ConfusionMost classes.
	pairs []uint64
	// rocAUC and prAUC are computed from scores, only if one is the metric of the run.
	rocAUC, prAUC float64
}

// ConfusionMost is the largest number of classes whose confusion is counted.
const ConfusionMost = 100

func newCounts(classes int) *Counts {
	c := &Counts{hit: make([]uint64, classes), wrong: make([]uint64, classes),
		missed: make([]uint64, classes)}
	if classes <= ConfusionMost {
		c.pairs = make([]uint64, classes*classes)
	}
	return c
}

// Confusion returns how many nodes of each class (rows) were predicted as each class (columns); nil
// for multi-labels, and for more than ConfusionMost classes.
func (c *Counts) Confusion() [][]uint64 {
	if c.pairs == nil {
		return nil
	}
	n := len(c.hit)
	out := make([][]uint64, n)
	for k := range out {
		out[k] = c.pairs[k*n : (k+1)*n]
	}
	return out
}

// ClassScore says how well a class is predicted. A score is 0 where it is not defined.
type ClassScore struct {
	Class     string  `json:"class"`
	Nodes     uint64  `json:"nodes"` // that have the class
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	// Threshold is, for multi-labels and for two classes with a precision to reach, the probability
	// above which the label is predicted.
	Threshold float64 `json:"threshold,omitempty"`
}

// Scores returns the scores of each class.
func (c *Counts) Scores(names []string) []ClassScore {
	out := make([]ClassScore, len(c.hit))
	for k := range out {
		hit, said, of := float64(c.hit[k]), c.hit[k]+c.wrong[k], c.hit[k]+c.missed[k]
		out[k] = ClassScore{Class: names[k], Nodes: of, Precision: hit / float64(max(said, 1)),
			Recall: hit / float64(max(of, 1))}
		out[k].F1, _ = F1(c.hit[k], c.wrong[k], c.missed[k])
	}
	return out
}

// oneSidedShare is the share of predictions that one class has when a model has learned nothing.
const oneSidedShare = 0.97

// Labeled returns how many labeled nodes were counted.
func (c *Counts) Labeled() uint64 { return c.Nodes }

// ClassMetrics holds the metrics of classes. Micro-F1 sums the counts of all classes, macro-F1
// averages the classes. With one class a node micro-F1 equals accuracy; for multi-labels accuracy
// counts nodes whose labels are all right.
type ClassMetrics struct {
	Accuracy float64 `json:"accuracy"`
	MicroF1  float64 `json:"micro_f1"`
	MacroF1  float64 `json:"macro_f1"`
	// Classes and Confusion are by class. Confusion is left out for multi-labels, and for more than
	// ConfusionMost classes.
	Classes   []ClassScore `json:"classes"`
	Confusion [][]uint64   `json:"confusion,omitempty"`
	// Curves are left out where a tally was not asked for them.
	Curves *Curves `json:"curves,omitempty"`
}

// OneSided returns a sentence if almost all predictions are of one class though the nodes
// are not; else "".
func (c *Counts) OneSided(names []string) string {
	for k := range c.hit {
		said, of := c.hit[k]+c.wrong[k], c.hit[k]+c.missed[k]
		total := float64(c.Nodes)
		if float64(said) >= oneSidedShare*total && float64(of) < float64(said) && c.pairs != nil {
			return fmt.Sprintf("the model says %q of %.0f%% of the nodes; %.0f%% are", names[k],
				100*float64(said)/total, 100*float64(of)/total)
		}
	}
	return ""
}

// class counts a node with one class. A node without a label has -1 and is not counted.
func (c *Counts) class(predicted, label int32) {
	if label < 0 {
		return
	}
	c.Nodes++
	if c.pairs != nil {
		c.pairs[int(label)*len(c.hit)+int(predicted)]++
	}
	if predicted == label {
		c.right++
		c.hit[label]++
		return
	}
	c.wrong[predicted]++
	c.missed[label]++
}

// two makes the counts of two classes those of the second one's outcomes.
func (c *Counts) two(o outcomes) {
	right := c.Nodes - o.hit - o.wrong - o.missed
	c.right, c.hit = o.hit+right, []uint64{right, o.hit}
	c.wrong, c.missed = []uint64{o.missed, o.wrong}, []uint64{o.wrong, o.missed}
	c.pairs = []uint64{right, o.wrong, o.missed, o.hit}
}

// multi counts a node of multi-labels. A class is predicted if its logit is above its threshold, or
// above 0 if there are no thresholds. A label that is unknown, NaN, is not counted.
func (c *Counts) multi(logits, truth, thresholds []float32) {
	c.Nodes++
	c.pairs = nil
	right := true
	for k, t := range truth {
		switch yes := logits[k] > thresholdAt(thresholds, k); {
		case t != t:
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

// Metric returns a metric by name; ErrNothing if no node was counted.
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
	case PRAUC:
		return c.prAUC, nil
	}
	return 0, fmt.Errorf("unknown metric %q", name)
}

// macroF1 returns the mean F1 of the classes that were predicted or true at least once.
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

// F1 returns the harmonic mean of precision and recall; ok is false where neither is defined.
func F1(hit, wrong, missed uint64) (f float64, ok bool) {
	if hit+wrong+missed == 0 {
		return 0, false
	}
	return 2 * float64(hit) / float64(2*hit+wrong+missed), true
}
