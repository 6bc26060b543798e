package backend

import "gdb/compute/kernel"

// SoftmaxCrossEntropy is the loss of class labels.
func (c *cpu) SoftmaxCrossEntropy(grad, logits Tensor, labels []int32) {
	if !c.ready(grad.Len() == logits.Len() && len(labels) == logits.Rows, "SoftmaxCrossEntropy",
		logits) {
		return
	}
	mean, right, rows := kernel.SoftmaxCrossEntropy(c.pool, c.values(grad), c.values(logits),
		labels, logits.Rows, logits.Cols)
	c.addClassLoss(mean, right, rows)
}

// WeightedCrossEntropy is the loss of class labels with weights.
func (c *cpu) WeightedCrossEntropy(grad, logits, weights Tensor, labels []int32) {
	if !c.ready(grad.Len() == logits.Len() && len(labels) == logits.Rows &&
		weights.Len() == logits.Cols, "WeightedCrossEntropy", logits, weights) {
		return
	}
	mean, right, rows := kernel.WeightedCrossEntropy(c.pool, c.values(grad), c.values(logits),
		c.values(weights), labels, logits.Rows, logits.Cols)
	c.addClassLoss(mean, right, rows)
}

// addClassLoss notes a loss of rows of one class, of which some are predicted right.
func (c *cpu) addClassLoss(mean float64, right, rows int) {
	wrong := uint64(rows - right)
	c.losses = append(c.losses, Loss{Mean: mean, Rows: rows, Hit: uint64(right), Wrong: wrong,
		Missed: wrong})
}

// SigmoidBCE is the loss of multi-labels.
func (c *cpu) SigmoidBCE(grad, logits, targets Tensor) {
	if !c.ready(grad.Len() == logits.Len() && targets.Len() == logits.Len(), "SigmoidBCE", logits,
		targets) {
		return
	}
	o, y, truth := Loss{Rows: logits.Rows}, c.values(logits), c.values(targets)
	o.countLabels(y, truth, logits.Cols)
	o.Mean = kernel.SigmoidBCE(c.pool, c.values(grad), y, truth, logits.Rows, logits.Cols)
	c.losses = append(c.losses, o)
}

// WeightedBCE is the loss of multi-labels with weights of those that are set.
func (c *cpu) WeightedBCE(grad, logits, targets, positive Tensor) {
	if !c.ready(grad.Len() == logits.Len() && targets.Len() == logits.Len() &&
		positive.Len() == logits.Cols, "WeightedBCE", logits, targets, positive) {
		return
	}
	o, y, truth := Loss{Rows: logits.Rows}, c.values(logits), c.values(targets)
	o.countLabels(y, truth, logits.Cols)
	o.Mean = kernel.WeightedBCE(c.pool, c.values(grad), y, truth, c.values(positive), logits.Rows,
		logits.Cols)
	c.losses = append(c.losses, o)
}

// countLabels compares the labels of positive logits with those that are set; what is unknown, NaN,
// counts as Unknown alone.
func (o *Loss) countLabels(logits, truth []float32, cols int) {
	unknown := 0
	for i, v := range logits {
		switch t := truth[i]; {
		case t != t:
			unknown++
		case v > 0 && t > 0:
			o.Hit++
		case v > 0:
			o.Wrong++
		case t > 0:
			o.Missed++
		}
	}
	if unknown > 0 {
		o.Unknown = float64(unknown) / float64(cols)
	}
}

// Regression is the loss of numbers.
func (c *cpu) Regression(kind ErrorLoss, grad, outputs, targets Tensor) {
	if !c.ready(grad.Len() == outputs.Len() && targets.Len() == outputs.Len(), "Regression",
		outputs, targets) {
		return
	}
	e := kernel.Regression(c.pool, kind, c.values(grad), c.values(outputs), c.values(targets))
	c.losses = append(c.losses, Loss{Mean: e.Loss / float64(max(1, e.Counted)), Rows: e.Counted,
		Squared: e.Squared, Absolute: e.Absolute})
}
