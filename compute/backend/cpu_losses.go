package backend

import "gdb/compute/kernel"

// cpuLosses are losses, and what optimizers do.
var cpuLosses = map[string]cpuKernel{
	"cross-entropy": func(c *cpu, o *Operands) {
		y := o.In[0]
		var mean float64
		var right, rows int
		if w := o.In[2]; w.Len() > 0 {
			mean, right, rows = kernel.WeightedCrossEntropy(c.pool, c.values(o.Out), c.values(y),
				c.values(w), o.Labels, y.Cols)
		} else {
			mean, right, rows = kernel.SoftmaxCrossEntropy(c.pool, c.values(o.Out), c.values(y),
				o.Labels, y.Rows, y.Cols)
		}
		wrong := uint64(rows - right)
		c.losses = append(c.losses, Loss{Mean: mean, Rows: rows, Hit: uint64(right), Wrong: wrong,
			Missed: wrong})
	},
	"binary-cross-entropy": func(c *cpu, o *Operands) {
		logits, truth := c.values(o.In[0]), c.values(o.In[1])
		rows, cols := o.In[0].Rows, o.In[0].Cols
		loss := Loss{Rows: rows}
		loss.countLabels(logits, truth, cols)
		if w := o.In[2]; w.Len() > 0 {
			loss.Mean = kernel.WeightedBCE(c.pool, c.values(o.Out), logits, truth, c.values(w),
				rows)
		} else {
			loss.Mean = kernel.SigmoidBCE(c.pool, c.values(o.Out), logits, truth, rows, cols)
		}
		c.losses = append(c.losses, loss)
	},
	"regression": func(c *cpu, o *Operands) {
		e := kernel.Regression(c.pool, o.Error, c.values(o.Out), c.values(o.In[0]),
			c.values(o.In[1]))
		c.losses = append(c.losses, Loss{Mean: e.Loss / float64(max(1, e.Counted)),
			Rows: e.Counted, Squared: e.Squared, Absolute: e.Absolute})
	},
	"adam": func(c *cpu, o *Operands) {
		kernel.Adam(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.Extra[0]),
			c.values(o.Extra[1]), o.Step)
	},
	"sgd": func(c *cpu, o *Operands) {
		kernel.SGD(c.pool, c.values(o.Out), c.values(o.In[0]), o.Step.Rate, o.Step.WeightDecay)
	},
	"adagrad": func(c *cpu, o *Operands) {
		kernel.Adagrad(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.Extra[0]),
			kernel.AdamStep{Rate: o.Step.Rate, Eps: o.Step.Eps, WeightDecay: o.Step.WeightDecay})
	},
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
