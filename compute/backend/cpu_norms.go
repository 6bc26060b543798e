package backend

import "gdb/compute/kernel"

const (
	// NormEps is added to variances, so that rows of equal values are not divided by zero.
	NormEps = 1e-5
	// NormShare is how much of a batch's statistics those of all batches take over, as other
	// libraries have it.
	NormShare = 0.1
)

// cpuNorms have gamma and beta behind x, and what their gradients need as more results.
var cpuNorms = map[string]cpuKernel{
	"layer-norm": func(c *cpu, o *Operands) {
		x := o.In[0]
		kernel.LayerNorm(c.pool, c.values(o.Out), c.values(x),
			kernel.Norm{Gamma: c.values(o.In[1]), Beta: c.values(o.In[2]),
				Stats: c.values(o.Extra[0]), Rows: x.Rows, Cols: x.Cols, Eps: NormEps})
	},
	"layer-norm-grad": func(c *cpu, o *Operands) {
		dy, x := o.In[0], o.In[1]
		kernel.LayerNormGrad(c.pool, c.values(o.Out), c.values(dy), c.values(x),
			kernel.Norm{DGamma: c.values(o.Extra[0]), DBeta: c.values(o.Extra[1]),
				Gamma: c.values(o.In[2]), Stats: c.values(o.In[3]), Rows: x.Rows, Cols: x.Cols})
	},
	"batch-norm": func(c *cpu, o *Operands) {
		x := o.In[0]
		kernel.BatchNorm(c.pool, c.values(o.Out), c.values(x),
			kernel.Norm{Gamma: c.values(o.In[1]), Beta: c.values(o.In[2]),
				Stats: c.values(o.Extra[0]), Rows: x.Rows, Cols: x.Cols, Eps: NormEps})
		TrackNorm(c.values(o.In[3]), c.values(o.Extra[0]), x.Rows)
	},
	"batch-norm-grad": func(c *cpu, o *Operands) {
		dy, x := o.In[0], o.In[1]
		kernel.BatchNormGrad(c.pool, c.values(o.Out), c.values(dy), c.values(x),
			kernel.Norm{DGamma: c.values(o.Extra[0]), DBeta: c.values(o.Extra[1]),
				Gamma: c.values(o.In[2]), Stats: c.values(o.In[3]), Rows: x.Rows, Cols: x.Cols})
	},
	"norm-apply": func(c *cpu, o *Operands) {
		x, r := o.In[0], c.values(o.In[3])
		kernel.NormApply(c.pool, c.values(o.Out), c.values(x), r[:x.Cols], r[x.Cols:],
			kernel.Norm{Gamma: c.values(o.In[1]), Beta: c.values(o.In[2]), Rows: x.Rows,
				Cols: x.Cols, Eps: NormEps})
	},
}

// TrackNorm moves running statistics, the means and variances of columns, towards a batch of `rows`
// rows; stats holds the means and 1/√variances of the batch. The variance of all rows is estimated
// as n/(n-1) times that of a batch of n rows. A batch of fewer than two rows changes nothing.
func TrackNorm(running, stats []float32, rows int) {
	if rows < 2 {
		return
	}
	n := len(stats) / 2
	for j := range n {
		variance := 1/(stats[n+j]*stats[n+j]) - NormEps
		variance *= float32(rows) / float32(rows-1)
		running[j] += NormShare * (stats[j] - running[j])
		running[n+j] += NormShare * (max(0, variance) - running[n+j])
	}
}
