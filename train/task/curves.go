package task

import (
	"math"

	"gdb/internal/mem"
)

// Curves say how well the probabilities of classes order nodes, and how far they can be believed.
// With two classes they are about the second, and with more about each class against the rest.
type Curves struct {
	// Class is the class of Precision and Reliability where there are two; "" for all.
	Class string `json:"class,omitempty"`
	// Precision is the precision at the recalls 0, 0.02 … 1: at the highest threshold that has at
	// least this recall, as the mean over the classes that some nodes have and others do not.
	Precision []float64 `json:"precision"`
	// AveragePrecision is the area under the curve of precision over recall, as such a mean.
	AveragePrecision float64 `json:"average_precision"`
	// Reliability has the predictions by their probability, in ten parts of equal width. A
	// prediction is the class with the largest probability; with two classes it is the probability
	// of the second, and with several labels a node, the probability of each label.
	Reliability []Reliability `json:"reliability"`
	// ECE is the expected calibration error: the mean difference of probability and share right.
	ECE float64 `json:"ece"`
	// Calibrated is the same of the probabilities by the run's temperature; nil if it has none.
	Calibrated *Calibrated `json:"calibrated,omitempty"`
}

// Calibrated says how far probabilities by a temperature can be believed.
type Calibrated struct {
	Temperature float64       `json:"temperature"`
	Reliability []Reliability `json:"reliability"`
	ECE         float64       `json:"ece"`
}

// Reliability is what came of the predictions whose probabilities are close to each other.
type Reliability struct {
	Count       uint64  `json:"count"`
	Probability float64 `json:"probability"` // the mean; 0 for no predictions
	Right       float64 `json:"right"`       // the share that is right
}

const (
	// CurveClassesMost is the largest number of classes of which curves are counted.
	CurveClassesMost = 256
	recallSteps      = 50
	reliabilityParts = 10
	sumUnit          = 1 << 32 // so that 2^32 probabilities can be added
	// oddsBins are bins of odds, eight to an octave, from 2^-oddsOctaves to 2^oddsOctaves.
	oddsOctaves = 16
	oddsBins    = 2 * oddsOctaves * 8
	oddsShift   = 23 - 3 // leaves the exponent of a float32 and three bits of its fraction
	oddsFirst   = (127 - oddsOctaves) << 3
)

// curveTally counts predictions for curves, in bounded memory: precision is computed at the edges
// of bins of the odds.
type curveTally struct {
	classes  int
	of, not  []uint64 // (classes, oddsBins): nodes of the class, and others
	odds     []float64
	twoClass bool
	plain    reliabilityTally
	// scaled counts the probabilities of task by its temperature, if it has one.
	task   *Classes
	scaled reliabilityTally
	out    []float32
}

// reliabilityTally counts predictions by their probability.
type reliabilityTally struct {
	counts, rights [reliabilityParts]uint64
	sums           [reliabilityParts]uint64 // of probabilities, in units of 1/sumUnit
}

// CurveBytes returns the memory that curves of a number of classes take.
func CurveBytes(classes int) int64 {
	if classes > CurveClassesMost {
		return 0
	}
	return mem.HeapCost(2 * 8 * oddsBins * int64(classes))
}

// WillDraw makes the tally count for curves, if there are at most CurveClassesMost classes.
func (t *ClassTally) WillDraw() {
	n := t.task.Outputs()
	if n > CurveClassesMost {
		return
	}
	t.curves = &curveTally{task: t.task, classes: n, of: make([]uint64, n*oddsBins),
		not: make([]uint64, n*oddsBins), odds: make([]float64, n),
		twoClass: n == 2 && !t.task.Multi}
}

// oddsBin returns the bin of odds, which are at least 0 and may be infinite.
func oddsBin(odds float64) int {
	return min(max(int(math.Float32bits(float32(odds))>>oddsShift)-oddsFirst, 0), oddsBins-1)
}

// count counts the odds of a class.
func (c *curveTally) count(class int, odds float64, is bool) {
	at := class*oddsBins + oddsBin(odds)
	if is {
		c.of[at]++
		return
	}
	c.not[at]++
}

// predict counts a prediction by its probability.
func (r *reliabilityTally) predict(probability float64, right bool) {
	part := min(int(probability*reliabilityParts), reliabilityParts-1)
	r.counts[part]++
	r.sums[part] += uint64(probability * sumUnit)
	if right {
		r.rights[part]++
	}
}

// result returns the parts, and the expected calibration error.
func (r *reliabilityTally) result() (parts []Reliability, ece float64) {
	all := 0.0
	for i, count := range r.counts {
		part := Reliability{Count: count}
		if n := float64(count); n > 0 {
			part.Probability, part.Right = float64(r.sums[i])/sumUnit/n, float64(r.rights[i])/n
			ece += n * math.Abs(part.Probability-part.Right)
			all += n
		}
		parts = append(parts, part)
	}
	return parts, ece / all
}

// calibrated returns the probabilities of outputs by the temperature; nil if there is none.
func (c *curveTally) calibrated(logits []float32) []float32 {
	if c.task.Temperature == 0 {
		return nil
	}
	c.out = mem.Resized(c.out, len(logits))
	c.task.probabilities(c.out, logits)
	return c.out
}

// class counts a node with one class.
func (c *curveTally) class(logits []float32, label int32) {
	top := argmax(logits)
	sum := 0.0
	for k, v := range logits {
		c.odds[k] = math.Exp(float64(v) - float64(logits[top]))
		sum += c.odds[k]
	}
	for k, v := range c.odds {
		c.count(k, v/(sum-v), int32(k) == label) // what cancels is past the last bin
	}
	which := top
	if c.twoClass {
		which = 1
	}
	c.plain.predict(c.odds[which]/sum, label == which)
	if p := c.calibrated(logits); p != nil {
		c.scaled.predict(float64(p[which]), label == which)
	}
}

// multi counts a node with several labels; a label that is unknown has NaN.
func (c *curveTally) multi(logits, truth []float32) {
	scaled := c.calibrated(logits)
	for k, v := range logits {
		if truth[k] != truth[k] {
			continue
		}
		odds := math.Exp(float64(v))
		c.count(k, odds, truth[k] > 0)
		c.plain.predict(1/(1+math.Exp(-float64(v))), truth[k] > 0)
		if scaled != nil {
			c.scaled.predict(float64(scaled[k]), truth[k] > 0)
		}
	}
}

// result returns the curves; nil if no class has nodes in it and others outside.
func (c *curveTally) result(names []string) *Curves {
	out := &Curves{Precision: make([]float64, recallSteps+1)}
	first, counted := 0, 0.0
	if c.twoClass {
		first, out.Class = 1, names[1]
	}
	for k := first; k < c.classes; k++ {
		if area, ok := c.addPrecision(out.Precision, k); ok {
			out.AveragePrecision += area
			counted++
		}
	}
	if counted == 0 {
		return nil
	}
	for i := range out.Precision {
		out.Precision[i] /= counted
	}
	out.AveragePrecision /= counted
	out.Reliability, out.ECE = c.plain.result()
	if c.task.Temperature > 0 {
		out.Calibrated = &Calibrated{Temperature: c.task.Temperature}
		out.Calibrated.Reliability, out.Calibrated.ECE = c.scaled.result()
	}
	return out
}

// addPrecision adds the precision of a class at each recall, from the highest odds on, and returns
// the area under its curve; false for a class that all nodes have, or none.
func (c *curveTally) addPrecision(to []float64, class int) (area float64, ok bool) {
	of, not := c.of[class*oddsBins:][:oddsBins], c.not[class*oddsBins:][:oddsBins]
	all, others := uint64(0), uint64(0)
	for i := range of {
		all, others = all+of[i], others+not[i]
	}
	if all == 0 || others == 0 {
		return 0, false
	}
	hit, wrong, next := uint64(0), uint64(0), 0
	for i := oddsBins - 1; i >= 0; i-- {
		hit, wrong = hit+of[i], wrong+not[i]
		if of[i] == 0 {
			continue
		}
		precision := float64(hit) / float64(hit+wrong)
		area += float64(of[i]) / float64(all) * precision
		for ; next < len(to) && uint64(next)*all <= hit*recallSteps; next++ {
			to[next] += precision
		}
	}
	return area, true
}
