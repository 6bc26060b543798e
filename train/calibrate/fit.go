// Package calibrate makes the probabilities of a run's classes say how often they are right. One
// number, the temperature, divides all outputs (Guo, Pleiss, Sun and Weinberger, "On Calibration of
// Modern Neural Networks", section 4.2). It is fitted on labeled nodes that the run was not trained
// on, and kept in the run; which class is predicted does not change.
package calibrate

import (
	"context"
	"errors"
	"math"

	"gdb/sample"
	"gdb/train/exact"

	"github.com/RoaringBitmap/roaring/v2"
)

// Outputs are what a run computed of nodes, and their labels.
type Outputs struct {
	Rows   *exact.Table    // a row of outputs for each node
	Nodes  *roaring.Bitmap // in their order
	Labels *sample.Labels  // classes, or several labels a node
}

const (
	// inverseLeast and inverseMost bound the factor that outputs are multiplied by.
	inverseLeast, inverseMost = 1.0 / 64, 64
	// precise is the relative change of the factor at which the search ends, and roundsMost bounds
	// its passes over the outputs.
	precise, roundsMost = 1e-6, 60
	// rowsOnce is how many rows are read at a time.
	rowsOnce = 1024
)

// errNoMinimum says that no temperature is best.
var errNoMinimum = errors.New("the probabilities have no best temperature: either all " +
	"predictions are right, so that the more certain the better, or they are no better than " +
	"chance; val needs more nodes, or the run more epochs")

// sums are sums over labeled nodes, of outputs times a factor b.
type sums struct {
	loss   float64 // -log of the probability of what is true
	slope  float64 // derivative of loss by b
	curve  float64 // second derivative, never negative
	labels float64 // the number of labels that are known
}

// Fit returns the temperature with the least mean loss, and the losses without and with it: of one
// class a node the cross-entropy, of several labels that of each label. The loss is convex in the
// inverse temperature, and its minimum is found by steps of Newton; a step that leaves the interval
// with the minimum halves it instead.
func Fit(ctx context.Context, o *Outputs) (temperature, before, after float64, err error) {
	return least(func(b float64) (sums, error) { return o.at(ctx, b) })
}

// least returns the temperature with the least loss, and the mean losses without and with it.
func least(at func(b float64) (sums, error)) (temperature, before, after float64, err error) {
	b, lo, hi := 1.0, inverseLeast, float64(inverseMost)
	for round := range roundsMost {
		s, err := at(b)
		if err != nil {
			return 0, 0, 0, err
		}
		after = s.loss / s.labels
		if round == 0 {
			before = after
		}
		if s.slope < 0 {
			lo = b
		} else {
			hi = b
		}
		next := b - s.slope/s.curve
		if !(next > lo && next < hi) {
			next = math.Sqrt(lo * hi)
		}
		if math.Abs(next-b) <= precise*b {
			if b < inverseLeast*1.01 || b > inverseMost/1.01 {
				break
			}
			return 1 / b, before, after, nil
		}
		b = next
	}
	return 0, 0, 0, errNoMinimum
}

// at returns the sums with a factor, from one pass over the outputs.
func (o *Outputs) at(ctx context.Context, b float64) (s sums, err error) {
	width := o.Rows.Width()
	rows := make([]float32, rowsOnce*width)
	classes, bits := make([]int32, rowsOnce), []float32(nil)
	if o.Labels.Multi() {
		bits = make([]float32, rowsOnce*width)
	}
	nodes, places := make([]sample.NodeID, rowsOnce), make([]sample.NodeID, rowsOnce)
	numbers := make([]uint32, rowsOnce)
	it, first := o.Nodes.ManyIterator(), 0
	for {
		n := it.NextMany(numbers)
		if n == 0 {
			break
		}
		for i, v := range numbers[:n] {
			nodes[i], places[i] = sample.NodeID(v), sample.NodeID(first+i)
		}
		first += n
		if err := o.Rows.Read(ctx, places[:n], rows[:n*width]); err != nil {
			return s, err
		}
		if bits != nil {
			if err := o.Labels.Bits(ctx, nodes[:n], bits[:n*width]); err != nil {
				return s, err
			}
			for i, v := range rows[:n*width] {
				s.label(float64(v), bits[i], b)
			}
			continue
		}
		if err := o.Labels.Of(ctx, nodes[:n], classes[:n]); err != nil {
			return s, err
		}
		for i, label := range classes[:n] {
			if label >= 0 {
				s.class(rows[i*width:(i+1)*width], int(label), b)
			}
		}
	}
	if s.labels == 0 {
		return s, errors.New("no labeled node to fit a temperature on")
	}
	return s, nil
}

// class adds a node of one class: with p the softmax of b times the outputs z, the derivative of
// -log p of the class by b is the mean of z by p less z of the class, and the second one is the
// variance of z by p.
func (s *sums) class(z []float32, class int, b float64) {
	top := float64(z[0])
	for _, v := range z {
		top = max(top, float64(v))
	}
	sum, mean, square := 0.0, 0.0, 0.0
	for _, v := range z { // about the largest, so that nothing cancels
		d := float64(v) - top
		e := math.Exp(b * d)
		sum, mean, square = sum+e, mean+e*d, square+e*d*d
	}
	mean, square = mean/sum, square/sum
	own := float64(z[class]) - top
	s.loss += math.Log(sum) - b*own
	s.slope += mean - own
	s.curve += square - mean*mean
	s.labels++
}

// label adds one of several labels of a node, whose probability is the sigmoid of b times z; truth
// is NaN where it is not known.
func (s *sums) label(z float64, truth float32, b float64) {
	if truth != truth {
		return
	}
	p := 1 / (1 + math.Exp(-b*z))
	y := 0.0
	if truth > 0 {
		y = 1
	}
	s.loss += math.Max(b*z, 0) - b*z*y + math.Log1p(math.Exp(-math.Abs(b*z)))
	s.slope += (p - y) * z
	s.curve += p * (1 - p) * z * z
	s.labels++
}
