package backend

import (
	"math"

	"gdb/compute/decoder"
	"gdb/compute/kernel"
	"gdb/internal/rng"
)

// linkRowsOnce is for how many rows a worker does an operation of links at a time, and
// linkFormsOnce for how many relations.
const linkRowsOnce, linkFormsOnce = 32, 8

// linkColsMany is from how many scores of a query on its loss is work for a worker alone.
const linkColsMany = 4096

// cpuLinks are operations of link prediction.
var cpuLinks = map[string]cpuKernel{
	"link-forms":        formsCPU,
	"link-forms-grad":   formsGradCPU,
	"link-queries":      queriesCPU,
	"link-queries-grad": queriesGradCPU,
	"link-answers":      answersCPU,
	"link-answers-grad": answersGradCPU,
	"link-scores": func(c *cpu, o *Operands) {
		c.shares(o.Link, o.Out, o.In[1], func(at share) {
			c.matrices.Scores(at.of(o.Out), at.of(o.In[0]), at.negatives(o.In[1]), at.count,
				o.Out.Cols)
		})
	},
	"link-scores-grad": func(c *cpu, o *Operands) {
		g, scores, queries, negatives := o.In[0], o.In[1], o.In[2], o.In[3]
		c.shares(o.Link, g, negatives, func(at share) {
			c.matrices.Grad(at.of(o.Out), at.negatives(o.Extra[0]), at.of(g), at.of(scores),
				at.of(queries), at.negatives(negatives), at.count, g.Cols)
		})
	},
	"link-exclude": func(c *cpu, o *Operands) {
		scores := c.values(o.Out)
		for _, at := range c.words(o.In[0]) {
			scores[at] = decoder.Excluded
		}
	},
	"link-loss": linkLossCPU,
	"link-loss-all": func(c *cpu, o *Operands) {
		g, scores, answers := c.values(o.Out), c.values(o.In[0]), &c.lists[o.Lists.ID].Lists
		c.linkLosses(o, func(i int) float64 {
			cols := o.In[0].Cols
			return o.Link.Loss.All(row(g, i, cols), row(scores, i, cols),
				answers.Idx[answers.Off[i]:answers.Off[i+1]], o.Scalar)
		})
	},
	"link-ranks":      linkRanksCPU,
	"link-regularize": regularizeCPU,
	"adagrad-rows": func(c *cpu, o *Operands) {
		r := c.rowsOf(o)
		r.AdagradOnce(c.pool, c.values(o.Out), c.values(o.Extra[0]), o.Step.Rate, o.Step.Eps)
	},
	"adam-rows": func(c *cpu, o *Operands) {
		r := c.rowsOf(o)
		r.Adam(c.pool, c.values(o.Out), c.values(o.Extra[0]), c.values(o.Extra[1]), o.Step)
	},
}

// rowsOf returns the rows that an optimizer changes.
func (c *cpu) rowsOf(o *Operands) kernel.Rows {
	return kernel.Rows{Cols: o.Out.Cols, At: c.words(o.In[1]), X: c.values(o.In[0]),
		Stride: o.Out.Cols}
}

// each calls fn for n rows, on the workers of the pool.
func (c *cpu) each(n, once int, fn func(i int)) {
	c.pool.Span(n, once, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			fn(i)
		}
	})
}

// share is queries that share a block of negatives: count of them from first on.
type share struct {
	c                   *cpu
	first, count, block int
	width               int // rows of a block
}

// shares calls fn with each share of as many queries as scores has rows.
func (c *cpu) shares(l *Links, scores, negatives Tensor, fn func(at share)) {
	c.matrices.Pool, c.matrices.Measure, c.matrices.D = c.pool, l.Decoder.Measure(), negatives.Cols
	for first := 0; first < scores.Rows && scores.Cols > 0; first += l.Chunk {
		fn(share{c, first, min(l.Chunk, scores.Rows-first), first / l.Chunk, scores.Cols})
	}
}

// of returns the rows of the share's queries.
func (s share) of(t Tensor) []float32 { return s.c.values(t.Slice(s.first, s.count)) }

// negatives returns the rows of the share's block.
func (s share) negatives(t Tensor) []float32 {
	return s.c.values(t.Slice(s.block*s.width, s.width))
}

// row returns row i of a tensor's values.
func row(x []float32, i, cols int) []float32 { return x[i*cols : (i+1)*cols] }

func formsCPU(c *cpu, o *Operands) {
	forms, rows, d := c.values(o.Out), c.values(o.In[0]), o.Link.Decoder
	fill := func(i int) { d.Form(row(forms, i, o.Out.Cols), row(rows, i, o.In[0].Cols)) }
	if d.Measure() != decoder.Dot {
		c.each(o.Out.Rows, linkRowsOnce, fill)
		return
	}
	for i := range o.Out.Rows { // copies, which are made before another thread is awake
		fill(i)
	}
}

func formsGradCPU(c *cpu, o *Operands) {
	grad, dForms, rows := c.values(o.Out), c.values(o.In[0]), c.values(o.In[1])
	c.each(o.Out.Rows, linkFormsOnce, func(i int) {
		o.Link.Decoder.FormGrad(row(grad, i, o.Out.Cols), row(dForms, i, o.In[0].Cols),
			row(rows, i, o.Out.Cols))
	})
}

func queriesCPU(c *cpu, o *Operands) {
	queries, ends, forms := c.values(o.Out), c.values(o.In[0]), c.values(o.In[1])
	formOf, dim, width := c.words(o.In[2]), o.Out.Cols, o.In[1].Cols
	c.each(o.Out.Rows, linkRowsOnce, func(i int) {
		q := row(queries, i, dim)
		o.Link.Decoder.Query(q, row(ends, i, dim), row(forms, int(formOf[i]), width), o.Link.Head)
		o.Link.Drop(q, i)
	})
}

func queriesGradCPU(c *cpu, o *Operands) {
	dEnds, dForms, dQueries := c.values(o.Out), c.values(o.Extra[0]), c.values(o.In[3])
	ends, forms, formOf := c.values(o.In[0]), c.values(o.In[1]), c.words(o.In[2])
	dim, width := o.Out.Cols, o.In[1].Cols
	c.pool.Span(o.Out.Rows, linkRowsOnce, func(lo, hi int) {
		own := make([]float32, dim)
		for i := lo; i < hi; i++ {
			dq := row(dQueries, i, dim)
			o.Link.Drop(dq, i)
			o.Link.Decoder.QueryGrad(own, row(dForms, i, width), dq, row(ends, i, dim),
				row(forms, int(formOf[i]), width), o.Link.Head)
			kernel.AddRow(row(dEnds, i, dim), own)
		}
	})
}

// Drop zeroes a share of the values of query i's row, or of its gradient, and scales the others up.
func (l *Links) Drop(row []float32, i int) {
	if l.Dropout == 0 {
		return
	}
	draws := rng.NewStream(rng.Sub(l.Key, uint64(l.First+i)))
	limit, scale := l.DropLimit()
	for j := 0; j < len(row); j += 4 {
		bits := draws.Uint64()
		for k := j; k < min(j+4, len(row)); k++ {
			if bits&0xffff < uint64(limit) {
				row[k] = 0
			} else {
				row[k] *= scale
			}
			bits >>= 16
		}
	}
}

// DropLimit is the limit of draws of 16 bits below which a value is dropped, and by what others are
// scaled.
func (l *Links) DropLimit() (limit int, scale float32) {
	return int(l.Dropout * (1 << 16)), float32(1 / (1 - l.Dropout))
}

func answersCPU(c *cpu, o *Operands) {
	scores, queries, answers := c.values(o.Out), c.values(o.In[0]), c.values(o.In[1])
	measure, dim := o.Link.Decoder.Measure(), o.In[0].Cols
	c.each(o.Out.Len(), linkRowsOnce, func(i int) {
		scores[i] = measure.Pair(row(queries, i, dim), row(answers, i, dim))
	})
}

func answersGradCPU(c *cpu, o *Operands) {
	dQueries, dAnswers, g := c.values(o.Out), c.values(o.Extra[0]), c.values(o.In[0])
	scores, queries, answers := c.values(o.In[1]), c.values(o.In[2]), c.values(o.In[3])
	measure, dim := o.Link.Decoder.Measure(), o.Out.Cols
	c.each(o.Out.Rows, linkRowsOnce, func(i int) {
		measure.PairGrad(row(dQueries, i, dim), row(dAnswers, i, dim), g[i], scores[i],
			row(queries, i, dim), row(answers, i, dim))
	})
}

func linkLossCPU(c *cpu, o *Operands) {
	g, gAnswers, scores, answers := c.values(o.Out), c.values(o.Extra[0]), c.values(o.In[0]),
		c.values(o.In[1])
	c.linkLosses(o, func(i int) (loss float64) {
		cols := o.In[0].Cols
		loss, gAnswers[i] = o.Link.Loss.Row(row(g, i, cols), row(scores, i, cols), answers[i],
			o.Scalar)
		return loss
	})
}

// linkLosses notes the sum of the losses of queries, given that of each.
func (c *cpu) linkLosses(o *Operands, of func(i int) float64) {
	rows := o.In[0].Rows
	losses, once := make([]float64, rows), linkRowsOnce
	if o.In[0].Cols > linkColsMany {
		once = 1
	}
	c.each(rows, once, func(i int) { losses[i] = of(i) })
	if !o.Acc {
		c.losses = append(c.losses, Loss{})
	}
	sum := &c.losses[len(c.losses)-1]
	for _, v := range losses {
		sum.Mean += v
	}
	sum.Rows += rows
}

func linkRanksCPU(c *cpu, o *Operands) {
	counts, scores := c.values(o.Out), c.values(o.In[0])
	own, of := c.values(o.In[1]), c.words(o.In[2])
	known, width := &c.lists[o.Lists.ID].Lists, o.In[0].Cols
	c.pool.Span(o.Out.Rows, linkTargetsOnce, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			query, place := of[2*i], of[2*i+1]
			countRanks(row(counts, i, RankCounts), row(scores, int(query), width), own[i], place,
				known.Idx[known.Off[query]:known.Off[query+1]], o.First)
		}
	})
}

// linkTargetsOnce is of how many targets a worker counts what scores above them at a time.
const linkTargetsOnce = 16

// countRanks writes what LinkRanks counts of a target with a score, and its own place.
//
//lint:parameters what one target is compared with
func countRanks(to, scores []float32, score float32, place uint32, known []uint32, first int) {
	above, equal := 0, 0
	for _, v := range scores[first:] {
		if v > score {
			above++
		}
		if v == score {
			equal++
		}
	}
	count := func(v float32, by int, above, equal *int) {
		switch {
		case v > score:
			*above += by
		case v == score:
			*equal += by
		}
	}
	if place != NoPlace {
		count(scores[place], -1, &above, &equal)
	}
	knownAbove, knownEqual := 0, 0
	for _, at := range known {
		if at != place {
			count(scores[at], 1, &knownAbove, &knownEqual)
		}
	}
	to[0], to[1], to[2], to[3] = float32(above), float32(equal), float32(knownAbove),
		float32(knownEqual)
}

func regularizeCPU(c *cpu, o *Operands) {
	grad, rows, weights := c.values(o.Out), c.values(o.In[0]), c.values(o.In[2])
	var at []uint32
	if o.In[1].Len() > 0 {
		at = c.words(o.In[1])
	}
	dim := o.Out.Cols
	c.each(o.Out.Rows, linkRowsOnce, func(i int) {
		from := i
		if at != nil {
			from = int(at[i])
		}
		if weights[i] > 0 {
			o.Link.Regularizer.AddGrad(row(grad, i, dim), row(rows, from, dim), weights[i])
		}
	})
}

// AddGrad adds the gradient of the regularizer of a row, times factor, to g.
func (r Regularizer) AddGrad(g, row []float32, factor float32) {
	switch r {
	case Squares:
		kernel.AddScaledRow(g, row, 2*factor)
	case ModulusCubes:
		half := len(row) / 2
		for i := range half {
			a, b := row[i], row[half+i]
			f := 3 * factor * float32(math.Sqrt(float64(a*a+b*b)))
			g[i] += f * a
			g[half+i] += f * b
		}
	case Cubes:
		kernel.AddCubeGradRow(g, row, 3*factor)
	}
}
