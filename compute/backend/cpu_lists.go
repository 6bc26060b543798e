package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// cpuPulls reduce the rows of lists. Rows, and results that are not gradients, may be of bfloat16.
var cpuPulls = map[string]cpuKernel{
	"pull-mean": func(c *cpu, o *Operands) { c.pull(o, true) },
	"pull-sum":  func(c *cpu, o *Operands) { c.pull(o, false) },
	"pull-mean-dropped": func(c *cpu, o *Operands) {
		x, d := o.In[0], o.Drop
		switch {
		case o.Lists.Cut:
			c.pullCut(o)
		case !x.Half:
			kernel.SegmentMeanDropout(c.pool, c.values(o.Out), c.values(x), c.entries(o, x.Cols), d)
		case o.Out.Half:
			bf16.SegmentMeanDropout(c.pool, c.numbers(o.Out), c.numbers(x), c.entries(o, x.Cols), d)
		default:
			bf16.SegmentMeanDropout(c.pool, c.values(o.Out), c.numbers(x), c.entries(o, x.Cols), d)
		}
	},
	"pull-max": func(c *cpu, o *Operands) {
		x, rows := o.In[0], c.words(o.Extra[0])
		switch {
		case !x.Half:
			kernel.SegmentMax(c.pool, c.values(o.Out), c.values(x), rows, c.entries(o, x.Cols))
		case o.Out.Half:
			bf16.SegmentMax(c.pool, c.numbers(o.Out), c.numbers(x), rows, c.entries(o, x.Cols))
		default:
			bf16.SegmentMax(c.pool, c.values(o.Out), c.numbers(x), rows, c.entries(o, x.Cols))
		}
	},
	"push-mean": func(c *cpu, o *Operands) {
		t, dout := c.back(o), o.In[0]
		if dout.Half {
			bf16.SegmentMeanGrad(c.pool, c.values(o.Out), c.numbers(dout), t, dout.Cols, o.Fresh)
			return
		}
		t.MeanGrad(c.pool, c.values(o.Out), c.values(dout), dout.Cols, o.Fresh)
	},
	"push-sum": pushSumCPU,
	"spread": func(c *cpu, o *Operands) {
		kernel.SpreadRows(c.pool, c.values(o.Out), c.values(o.In[0]), c.entries(o, o.Out.Cols))
	},
	"push-max": func(c *cpu, o *Operands) {
		kernel.SegmentMaxGrad(c.pool, c.values(o.Out), c.values(o.In[0]), c.words(o.In[1]),
			c.back(o), o.rowGrad(o.Out.Cols))
	},
	"pull-weighted": func(c *cpu, o *Operands) {
		x, w, d := o.In[0], c.values(o.In[1]), o.HeadCols(o.Out)
		switch {
		case !x.Half:
			kernel.EdgeSum(c.pool, c.values(o.Out), c.values(x), w, c.entries(o, d), o.Acc)
		case o.Out.Half:
			bf16.WeightedHeads(c.pool, c.numbers(o.Out), c.numbers(x), w, c.entries(o, d), o.Acc)
		default:
			bf16.WeightedHeads(c.pool, c.values(o.Out), c.numbers(x), w, c.entries(o, d), o.Acc)
		}
	},
	"push-weighted": func(c *cpu, o *Operands) {
		t, dout, w := c.back(o), o.In[0], c.values(o.In[1])
		d := o.HeadCols(dout)
		switch {
		case dout.Half:
			bf16.WeightedHeadsGrad(c.pool, c.values(o.Out), c.numbers(dout), w, t, o.rowGrad(d))
		case o.Shared:
			t.EdgeSumSharedGrad(c.pool, c.values(o.Out), c.values(dout), w, o.rowGrad(d))
		default:
			t.EdgeSumGrad(c.pool, c.values(o.Out), c.values(dout), w, o.rowGrad(d))
		}
	},
	"entry-dot": entryDotCPU,
	"dots":      entryDotCPU,
}

// pushSumCPU adds rows of lists to those that lists name.
func pushSumCPU(c *cpu, o *Operands) {
	t, dout := c.back(o), o.In[0]
	if !dout.Half {
		t.ScaledGrad(c.pool, c.values(o.Out), c.values(dout), nil, dout.Cols, o.Fresh)
		return
	}
	ones := c.pool.TakeFloats(dout.Rows)
	for i := range ones {
		ones[i] = 1
	}
	bf16.SegmentScaledGrad(c.pool, c.values(o.Out), c.numbers(dout), ones, t,
		o.rowGrad(dout.Cols))
	c.pool.GiveFloats(ones)
}

// entryDotCPU multiplies what lists and rows have for each entry.
func entryDotCPU(c *cpu, o *Operands) {
	g, x := o.In[0], o.In[1]
	if x.Half {
		bf16.EdgeDot(c.pool, c.values(o.Out), c.numbers(g), c.numbers(x),
			c.entries(o, o.HeadCols(g)))
		return
	}
	kernel.EdgeDot(c.pool, c.values(o.Out), c.values(g), c.values(x), c.entries(o,
		o.HeadCols(g)))
}

// pull sums rows of lists, or takes their mean.
func (c *cpu) pull(o *Operands, mean bool) {
	l, x := &c.lists[o.Lists.ID], o.In[0]
	switch {
	case o.Lists.Cut:
		c.pullCut(o)
	case x.Half && o.Out.Half:
		bf16.SegmentReduce(c.pool, c.numbers(o.Out), c.numbers(x), c.entries(o, x.Cols), mean)
	case x.Half:
		bf16.SegmentReduce(c.pool, c.values(o.Out), c.numbers(x), c.entries(o, x.Cols), mean)
	case mean:
		kernel.SegmentMean(c.pool, c.values(o.Out), c.values(x), l.Off, l.Idx, x.Cols)
	default:
		kernel.SegmentSum(c.pool, c.values(o.Out), c.values(x), l.Off, l.Idx, x.Cols)
	}
}

// pullCut takes the mean of rows of lists that a table has in pieces.
func (c *cpu) pullCut(o *Operands) {
	kernel.SegmentMeanCut(c.pool, c.values(o.Out), c.values(o.In[0]), c.entries(o, o.Out.Cols),
		c.lists[o.Lists.ID].Cut, o.Drop)
}

// rowGrad returns how a kernel adds gradients to rows; cols is the columns of a head.
func (o *Operands) rowGrad(cols int) kernel.RowGrad {
	return kernel.RowGrad{Heads: o.Heads, Cols: cols, Shared: o.Shared, Fresh: o.Fresh}
}

// entries returns the lists of operands as kernels take them; cols is the columns of a head.
func (c *cpu) entries(o *Operands, cols int) kernel.Lists {
	l := &c.lists[o.Lists.ID]
	return kernel.Lists{Off: l.Off, Idx: l.Idx, At: l.At, Heads: o.Heads, Cols: cols,
		Shared: o.Shared}
}

// back returns the transposed lists of operands, made when a gradient first asks for them.
func (c *cpu) back(o *Operands) *kernel.Transposed {
	l, rows := &c.lists[o.Lists.ID], o.Lists.Rows
	if l.transposed != nil {
		return l.transposed
	}
	if l.back == nil { // there is not a row that an entry could name
		l.back = make([]float32, SegmentFloats(rows, o.Lists.Entries, o.Lists.Lists, l.Entries))
	}
	var t kernel.Transposed
	if l.Entries {
		t = kernel.TransposedEntriesIn(l.back, rows, o.Lists.Entries, o.Lists.Lists)
		t.BuildEntries(l.Off, l.Idx, rows)
	} else {
		t = kernel.TransposedIn(l.back, rows, o.Lists.Entries, o.Lists.Lists)
		t.Build(l.Off, l.Idx, rows)
	}
	l.transposed = &t
	return l.transposed
}

// cpuEntries make weights of the entries of lists, and their gradients.
var cpuEntries = map[string]cpuKernel{
	"scores": func(c *cpu, o *Operands) {
		l, src := &c.lists[o.Lists.ID], o.In[0]
		kernel.EdgeScores(c.pool, c.values(o.Out), c.values(src), c.values(o.In[1]),
			kernel.Lists{Off: l.Off, Idx: l.Idx, Heads: src.Cols}, o.Scalar)
	},
	"scores-grad": func(c *cpu, o *Operands) {
		kernel.EdgeScoresGrad(c.pool, c.values(o.Out), c.values(o.In[1]), o.Scalar)
	},
	"entries-to-lists": func(c *cpu, o *Operands) {
		x := o.In[0]
		kernel.EdgeToDst(c.pool, c.values(o.Out), c.values(x), c.lists[o.Lists.ID].Off, x.Cols)
	},
	"entries-to-rows": func(c *cpu, o *Operands) {
		x := o.In[0]
		c.back(o).EdgeToSrc(c.pool, c.values(o.Out), c.values(x), x.Cols, o.Fresh)
	},
	"scores2": func(c *cpu, o *Operands) {
		dst := o.In[1]
		kernel.EdgeScores2(c.pool, c.values(o.Out), c.entries(o, o.HeadCols(dst)),
			kernel.Scores2{Src: c.values(o.In[0]),
				Dst: c.values(dst), Att: c.values(o.In[2]), Slope: o.Scalar})
	},
	"scores2-to-lists": func(c *cpu, o *Operands) {
		dst := o.In[2]
		kernel.EdgeScores2Grad(c.pool, c.values(o.Out), c.values(o.Extra[0]), c.values(o.In[0]),
			c.entries(o, o.HeadCols(dst)),
			kernel.Scores2{Src: c.values(o.In[1]), Dst: c.values(dst), Att: c.values(o.In[3]),
				Slope: o.Scalar})
	},
	"scores2-to-rows": func(c *cpu, o *Operands) {
		dst := o.In[2]
		c.back(o).EdgeScores2SrcGrad(c.pool, c.values(o.Out), c.values(o.In[0]),
			kernel.Scores2{Src: c.values(o.In[1]), Dst: c.values(dst), Att: c.values(o.In[3]),
				Slope: o.Scalar}, o.rowGrad(o.HeadCols(dst)))
	},
	"product": func(c *cpu, o *Operands) {
		l := &c.lists[o.Lists.ID]
		kernel.EdgeProduct(c.pool, c.values(o.Out), c.values(o.In[0]), c.values(o.In[1]), l.Off,
			l.Idx)
	},
	"softmax": func(c *cpu, o *Operands) {
		kernel.EdgeSoftmax(c.pool, c.values(o.Out), c.lists[o.Lists.ID].Off, o.Out.Cols)
	},
	"softmax-grad": func(c *cpu, o *Operands) {
		kernel.EdgeSoftmaxGrad(c.pool, c.values(o.Out), c.values(o.In[1]), c.lists[o.Lists.ID].Off,
			o.Out.Cols)
	},
}
