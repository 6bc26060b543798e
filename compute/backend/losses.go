package backend

import "gdb/compute/kernel"

// Loss is what a step's loss was: its mean over Rows rows with labels, and how their predictions
// compare with these over all classes. A step without labels has no rows, and no loss.
type Loss struct {
	Mean               float64
	Rows               int
	Hit, Wrong, Missed uint64
	// Unknown is how many rows the unknown labels would fill, of rows of several labels.
	Unknown float64
	// Squared and Absolute are summed over the errors of predicted numbers.
	Squared, Absolute float64
}

// ErrorLoss is what an error of a predicted number costs: see the kernels.
type ErrorLoss = kernel.ErrorLoss

// The losses of an error: its square, its size, and the square only of small ones.
const (
	SquaredError  = kernel.SquaredError
	AbsoluteError = kernel.AbsoluteError
	HuberError    = kernel.HuberError
)

// Losses are given to Backend.Losses, and their gradient is written to Out; In are outputs, targets
// and weights. Every backend has a kernel of them.
var (
	crossEntropyOp = &Op{Name: "cross-entropy", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && max(len(o.Labels), o.In[1].Rows) == o.In[0].Rows &&
			(o.In[2].Len() == 0 || o.In[2].Len() == o.In[0].Cols)
	}}
	binaryCrossEntropyOp = &Op{Name: "binary-cross-entropy", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.In[1].Len() == o.In[0].Len() &&
			(o.In[2].Len() == 0 || o.In[2].Len() == o.In[0].Cols)
	}}
	regressionOp = &Op{Name: "regression", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.In[1].Len() == o.In[0].Len()
	}}
)

// SoftmaxCrossEntropy computes the mean loss of the rows whose label is not negative; a prediction
// is the largest logit. grad becomes its gradient. If weights has values, rows count as
// the weight of their label says: the mean is by the sum of their weights.
func SoftmaxCrossEntropy(be Backend, grad, logits, weights Tensor, labels []int32) {
	be.Run(crossEntropyOp, &Operands{Out: grad, In: [4]Tensor{logits, {}, weights}, Labels: labels})
}

// SoftmaxCrossEntropyOn is SoftmaxCrossEntropy of labels that a device has already, as int32; all
// are below the number of classes.
func SoftmaxCrossEntropyOn(be Backend, grad, logits, weights, labels Tensor) {
	be.Run(crossEntropyOp, &Operands{Out: grad, In: [4]Tensor{logits, labels, weights}})
}

// SigmoidBCE computes the mean loss over all values, and its gradient; what is predicted are all
// classes of positive logits. Values whose target is NaN are left out, on the CPU: a device is
// given none. If positive has values, targets of 1 count as the weight of their column says.
func SigmoidBCE(be Backend, grad, logits, targets, positive Tensor) {
	be.Run(binaryCrossEntropyOp, &Operands{Out: grad, In: [4]Tensor{logits, targets, positive}})
}

// Regression computes the mean loss of the errors of outputs, and its gradient; targets that are
// NaN count for nothing.
func Regression(be Backend, kind ErrorLoss, grad, outputs, targets Tensor) {
	be.Run(regressionOp, &Operands{Out: grad, In: [4]Tensor{outputs, targets}, Error: kind})
}

// Moments is the state of Adam and AdamW, of the parameters' shape.
type Moments struct{ M, V Tensor }

// AdamStep are the settings of one step of Adam, the Step-th from 1 on. Decoupled is AdamW: the
// decay shrinks the weights and is not part of the gradient.
type AdamStep = kernel.AdamStep

var (
	adamOp = &Op{Name: "adam", Fits: func(o *Operands) bool { return o.Out.Len() == o.In[0].Len() }}
	sgdOp  = &Op{Name: "sgd", Fits: adamOp.Fits}
	// adagradOp has the sums of squares beside the gradient.
	adagradOp = &Op{Name: "adagrad", Fits: func(o *Operands) bool {
		return o.Out.Len() == o.In[0].Len() && o.Out.Len() == o.Extra[0].Len()
	}}
)

// Adam takes one step of the weights w by their gradients g.
func Adam(be Backend, w, g Tensor, m Moments, s AdamStep) {
	be.Run(adamOp, &Operands{Out: w, In: [4]Tensor{g}, Extra: [2]Tensor{m.M, m.V}, Step: s})
}

// SGD takes one step of the weights w by their gradients g.
func SGD(be Backend, w, g Tensor, rate, weightDecay float32) {
	be.Run(sgdOp, &Operands{Out: w, In: [4]Tensor{g},
		Step: AdamStep{Rate: rate, WeightDecay: weightDecay}})
}

// Adagrad takes one step of the weights w by their gradients g, with Rate, Eps and WeightDecay of
// s. sums are the squares of all gradients so far.
func Adagrad(be Backend, w, g, sums Tensor, s AdamStep) {
	be.Run(adagradOp, &Operands{Out: w, In: [4]Tensor{g}, Extra: [2]Tensor{sums}, Step: s})
}
