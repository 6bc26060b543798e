package backend

import "gdb/compute/kernel"

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
