package decoder

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gdb/compute/kernel"
)

// Excluded replaces the score of a negative that is not to count.
const Excluded = -1e30

// The losses.
const (
	// Softmax is the cross-entropy of the edge among itself and its negatives (Joulin, Grave,
	// Bojanowski, Nickel and Mikolov, "Fast Linear Model for Knowledge Graph Embeddings"; with all
	// entities as negatives Lacroix, Usunier and Obozinski, "Canonical Tensor Decomposition for
	// Knowledge Base Completion", section 2).
	Softmax = "softmax"
	// Logistic is softplus(-score) of the edge and the mean of softplus(score) of the negatives
	// (Trouillon and others, "Complex Embeddings for Simple Link Prediction", section 4).
	Logistic = "logistic"
	// Margin is the mean of max(0, Margin - score + negative) (Bordes and others, "Translating
	// Embeddings for Modeling Multi-relational Data", equation 1).
	Margin = "margin"
	// Adversarial is softplus(-Margin-score) of the edge and the sum of softplus(Margin+score) of
	// the negatives, each weighted by its share in a softmax of Temperature times the scores, which
	// has no gradient (Sun and others, "RotatE", equations 4 and 5).
	Adversarial = "adversarial"
)

// LossNames lists the losses.
func LossNames() []string { return []string{Softmax, Logistic, Margin, Adversarial} }

// Loss is a loss with its constants.
type Loss struct {
	Name        string
	Margin      float32
	Temperature float32 // of the loss adversarial
}

// Validate returns an error for an unknown loss or, if all is set, for one that cannot take all
// entities as negatives.
func (l *Loss) Validate(all bool) error {
	if !slices.Contains(LossNames(), l.Name) {
		return fmt.Errorf("unknown loss %q: known are %s", l.Name, strings.Join(LossNames(), ", "))
	}
	if all && l.Name != Softmax && l.Name != Logistic {
		return fmt.Errorf("loss %s compares edges with drawn negatives: give their number, or "+
			"loss softmax or logistic with all", l.Name)
	}
	return nil
}

// Row returns the loss of an edge with the score pos beside negatives with the given scores, times
// weight, and the loss's gradient with respect to pos. It writes the gradient with respect to the
// negatives to g, which may be the same slice as negatives.
func (l *Loss) Row(g, negatives []float32, pos, weight float32) (loss float64, gPos float32) {
	g = g[:len(negatives)]
	switch l.Name {
	case Softmax:
		return softmaxRow(g, negatives, pos, weight)
	case Logistic:
		loss, gPos = softplus(-pos)
		loss *= float64(weight)
		return loss + logisticRow(g, negatives, weight/float32(len(g))), -weight * gPos
	case Margin:
		return l.marginRow(g, negatives, pos, weight)
	}
	return l.adversarialRow(g, negatives, pos, weight)
}

// Rows applies Row to consecutive rows of width values: the score of an edge, followed by the
// scores of its negatives. Gradients replace the scores. It returns the sum of the losses.
func (l *Loss) Rows(scores []float32, width int, weight float32) (loss float64) {
	switch {
	case l.Name == Softmax:
		return softmaxRows(scores, width, weight)
	case l.Name == Logistic && width > 1:
		return logisticRows(scores, width, weight)
	}
	for ; len(scores) >= width; scores = scores[width:] {
		value, grad := l.Row(scores[1:width], scores[1:width], scores[0], weight)
		scores[0] = grad
		loss += value
	}
	return loss
}

// softmaxRows computes all exponentials in one call, and one logarithm of the product of many sums
// instead of one each. A sum is between 1 and width.
func softmaxRows(scores []float32, width int, weight float32) (loss float64) {
	for at := 0; at < len(scores); at += width {
		row := scores[at : at+width]
		largest := row[0]
		for _, v := range row[1:] {
			largest = max(largest, v)
		}
		for i := range row {
			row[i] -= largest
		}
		loss -= float64(row[0])
	}
	kernel.ExpSum(scores, scores, 0)
	product := 1.0
	for at := 0; at < len(scores); at += width {
		row, sum := scores[at:at+width], float32(0)
		for _, v := range row {
			sum += v
		}
		if product *= float64(sum); product > 1e200 {
			loss += math.Log(product)
			product = 1
		}
		factor, others := weight/sum, float32(0)
		for i, v := range row[1:] {
			row[1+i] = v * factor
			others += v * factor
		}
		row[0] = -others
	}
	return float64(weight) * (loss + math.Log(product))
}

// logisticRows computes all exponentials in one call, and one logarithm of the product of many
// factors, each between 1 and 2. Edges and negatives have products of their own, since
// negatives weigh less.
func logisticRows(scores []float32, width int, weight float32) (loss float64) {
	exps := make([]float32, len(scores))
	for i, v := range scores {
		exps[i] = -max(v, -v)
	}
	kernel.ExpSum(exps, exps, 0)
	share := weight / float32(width-1)
	own, others := logarithms{product: 1}, logarithms{product: 1}
	for at := 0; at < len(scores); at += width {
		row, e := scores[at:at+width], exps[at:at+width]
		row[0] = -weight * own.softplus(-row[0], e[0])
		for i, v := range row[1:] {
			row[1+i] = share * others.softplus(v, e[1+i])
		}
	}
	return float64(weight)*own.total() + float64(share)*others.total()
}

// logarithms adds up logarithms: those in sum, and the logarithm of product, which was
// not taken yet.
type logarithms struct{ sum, product float64 }

// softplus adds log(1+exp(x)), and returns its gradient; e is exp(-|x|).
func (l *logarithms) softplus(x, e float32) float32 {
	if l.product *= 1 + float64(e); l.product > 1e300 {
		l.sum, l.product = l.total(), 1
	}
	l.sum += float64(max(x, 0))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

func (l *logarithms) total() float64 { return l.sum + math.Log(l.product) }

// softplus returns log(1+exp(x)) and its gradient.
func softplus(x float32) (value float64, grad float32) {
	e := math.Exp(-math.Abs(float64(x)))
	value, p := max(float64(x), 0)+math.Log1p(e), 1/(1+e)
	if x < 0 {
		p = e / (1 + e)
	}
	return value, float32(p)
}

func softmaxRow(g, negatives []float32, pos, weight float32) (float64, float32) {
	largest := pos
	if len(negatives) > 0 {
		largest = max(pos, kernel.RowMax(negatives))
	}
	own := float32(math.Exp(float64(pos - largest)))
	sum := own + kernel.ExpSum(g, negatives, largest)
	kernel.ScaleRow(g, weight/sum)
	return float64(weight) * (math.Log(float64(sum)) - float64(pos-largest)),
		weight * (own/sum - 1)
}

// logisticRow writes the gradients of softplus times weight to g, and returns the sum of softplus
// times weight. It takes one logarithm for up to 64 factors, each between 1 and 2.
func logisticRow(g, x []float32, weight float32) (loss float64) {
	var exps [64]float32
	for lo := 0; lo < len(x); lo += len(exps) {
		hi := min(lo+len(exps), len(x))
		e := exps[:hi-lo]
		for i, v := range x[lo:hi] {
			e[i] = -max(v, -v)
		}
		kernel.ExpSum(e, e, 0)
		product := 1.0
		for i, v := range x[lo:hi] {
			share := 1 / (1 + e[i])
			if v < 0 {
				share = e[i] * share
			}
			product *= 1 + float64(e[i])
			loss += float64(max(v, 0))
			g[lo+i] = share * weight
		}
		loss += math.Log(product)
	}
	return loss * float64(weight)
}

func (l *Loss) marginRow(g, negatives []float32, pos, weight float32) (loss float64, gPos float32) {
	share := weight / float32(len(negatives))
	for j, v := range negatives {
		over := l.Margin - pos + v
		if over <= 0 {
			g[j] = 0
			continue
		}
		loss += float64(over)
		g[j] = share
		gPos -= share
	}
	return loss * float64(share), gPos
}

func (l *Loss) adversarialRow(g, negatives []float32, pos, weight float32) (float64, float32) {
	loss, gPos := softplus(-l.Margin - pos)
	for j, v := range negatives {
		g[j] = max(Excluded, l.Temperature*v)
	}
	sum := kernel.ExpSum(g, g, kernel.RowMax(g))
	for j, v := range negatives {
		value, p := softplus(l.Margin + v)
		share := g[j] / sum
		loss += float64(share) * value
		g[j] = weight * share * p
	}
	return float64(weight) * loss, -weight * gPos
}

// All returns the loss of a query whose true ends are among all candidates with the given scores,
// times weight, and writes its gradient to g, which may be the same slice as scores. Softmax is
// summed over the true ends, so several edges of one query cost no more than one. Logistic is the
// mean over all candidates of the cross-entropy of each (Dettmers, Minervini, Stenetorp and Riedel,
// "Convolutional 2D Knowledge Graph Embeddings", section 5.1), times the number of true ends.
func (l *Loss) All(g, scores []float32, truth []uint32, weight float32) (loss float64) {
	g = g[:len(scores)]
	count := float32(len(truth))
	for _, t := range truth {
		loss -= float64(scores[t])
	}
	if l.Name == Logistic {
		share := weight * count / float32(len(scores))
		loss = loss*float64(share) + logisticRow(g, scores, share)
		for _, t := range truth {
			g[t] -= share
		}
		return loss
	}
	largest := kernel.RowMax(scores)
	sum := kernel.ExpSum(g, scores, largest)
	kernel.ScaleRow(g, weight*count/sum)
	for _, t := range truth {
		g[t] -= weight
	}
	return float64(weight) * (loss + float64(count)*(math.Log(float64(sum))+float64(largest)))
}
