//go:build cuda && cgo && linux

package cuda

import (
	"slices"

	"gdb/compute/backend"
	"gdb/compute/decoder"
)

// The numbers that the kernels have of how queries are made, of how they compare, and of losses.
var (
	madeOf = map[string]int{"distmult": 0, "complex": 1, "rotate": 1, "transe": 2, "dot": 3}
	costOf = []string{decoder.Softmax, decoder.Logistic, decoder.Margin, decoder.Adversarial}
)

// productsLeast is from how many queries on that share negatives these are compared by products of
// cuBLAS, where scores are products.
const productsLeast = 8

// links are operations of link prediction.
var links = map[string]deviceKernel{
	"link-forms": func(g *gpu, o *backend.Operands) {
		rows := o.In[0]
		g.launch("link_forms", rows.Len(), o.Out, rows, rows.Rows, rows.Cols,
			o.Out.Cols > rows.Cols)
	},
	"link-forms-grad": func(g *gpu, o *backend.Operands) {
		rows := o.In[1]
		g.launch("link_forms_grad", rows.Len(), o.Out, o.In[0], rows, rows.Rows, rows.Cols,
			o.In[0].Cols > rows.Cols)
	},
	"link-queries": func(g *gpu, o *backend.Operands) {
		g.launch("link_queries", o.Out.Len(), g.queryArguments(o, o.Out)...)
	},
	"link-queries-grad": func(g *gpu, o *backend.Operands) {
		g.launch("link_queries_grad", o.Out.Len(), g.queryArguments(o, o.Out, o.Extra[0],
			o.In[3])...)
	},
	"link-answers": func(g *gpu, o *backend.Operands) {
		q := o.In[0]
		g.launch("link_answers", q.Rows*warpThreads, o.Out, q, o.In[1], q.Rows, q.Cols, measure(o))
	},
	"link-answers-grad": func(g *gpu, o *backend.Operands) {
		q := o.In[2]
		g.launch("link_answers_grad", q.Len(), o.Out, o.Extra[0], o.In[0], o.In[1], q, o.In[3],
			q.Rows, q.Cols, measure(o))
	},
	"link-scores":      linkScores,
	"link-scores-grad": linkScoresGrad,
	"link-exclude": func(g *gpu, o *backend.Operands) {
		g.launch("link_exclude", o.In[0].Len(), o.Out, o.In[0], o.In[0].Len())
	},
	"link-loss": linkLoss,
	"link-loss-all": func(g *gpu, o *backend.Operands) {
		scores, answers := o.In[0], g.forward(o.Lists, o.In[0].Cols)
		g.sumLosses(o, func(parts uint64) {
			g.launch("link_loss_all", scores.Rows*warpThreads, o.Out, parts, scores, answers.off,
				answers.idx, scores.Rows, scores.Cols, o.Scalar,
				slices.Index(costOf, o.Link.Loss.Name))
		})
	},
	"link-ranks": func(g *gpu, o *backend.Operands) {
		known := g.forward(o.Lists, o.In[0].Cols)
		g.launch("link_ranks", o.Out.Rows*warpThreads, o.Out, o.In[0], o.In[1], o.In[2], known.off,
			known.idx, o.Out.Rows, o.In[0].Cols, o.First)
	},
	"link-regularize": func(g *gpu, o *backend.Operands) {
		at := uint64(0)
		if o.In[1].Len() > 0 {
			at = g.at(o.In[1])
		}
		g.launch("link_regularize", o.Out.Len(), o.Out, o.In[0], at, o.In[2], o.Out.Rows,
			o.Out.Cols, int(o.Link.Regularizer))
	},
	"adagrad-rows": func(g *gpu, o *backend.Operands) {
		grad := o.In[0]
		g.launch("adagrad_rows", grad.Len(), o.Out, o.Extra[0], grad, o.In[1], grad.Rows,
			grad.Cols, o.Step.Eps, g.float(float64(o.Step.Rate)))
	},
	"adam-rows": func(g *gpu, o *backend.Operands) {
		grad, s := o.In[0], &o.Step
		_, step := g.adamStep(s)
		g.launch("adam_rows", grad.Len(), o.Out, o.Extra[0], o.Extra[1], grad, o.In[1], grad.Rows,
			grad.Cols, s.Beta1, 1-s.Beta1, s.Beta2, 1-s.Beta2, s.Eps, step)
	},
}

// measure returns the number of how queries compare with candidates, which decoder.Measure has.
func measure(o *backend.Operands) int { return int(o.Link.Decoder.Measure()) }

// queryArguments returns what kernels of queries take behind the matrices that they begin with.
func (g *gpu) queryArguments(o *backend.Operands, first ...any) []any {
	l := o.Link
	limit, scale := l.DropLimit()
	return append(first, o.In[0], o.In[1], o.In[2], o.Out.Rows, o.Out.Cols, madeOf[l.Name], l.Head,
		g.number(l.Key), l.First, limit, scale)
}

// linkScores compares queries with the negatives of their shares.
func linkScores(g *gpu, o *backend.Operands) {
	scores, q, x := o.Out, o.In[0], o.In[1]
	if g.multiplies(o.Link) {
		eachShare(o.Link, scores, func(rows func(backend.Tensor) backend.Tensor,
			block func(backend.Tensor) backend.Tensor) {
			g.multiply("link-scores", &backend.Operands{Out: rows(scores),
				In: [4]backend.Tensor{rows(q), block(x)}}, false, true)
		})
		return
	}
	groups := o.Link.Chunk/linksTogether + 1
	g.launch("link_scores", scores.Rows/o.Link.Chunk*groups*scores.Cols+scores.Cols, scores, q, x,
		scores.Rows, o.Link.Chunk, scores.Cols, q.Cols, measure(o))
}

// linksTogether is Together of the kernels.
const linksTogether = 4

// linkScoresGrad is the gradient of both.
func linkScoresGrad(g *gpu, o *backend.Operands) {
	grad, scores, q, x, dq, dx := o.In[0], o.In[1], o.In[2], o.In[3], o.Out, o.Extra[0]
	if g.multiplies(o.Link) {
		eachShare(o.Link, grad, func(rows func(backend.Tensor) backend.Tensor,
			block func(backend.Tensor) backend.Tensor) {
			g.multiply("link-scores-grad", &backend.Operands{Out: rows(dq),
				In: [4]backend.Tensor{rows(grad), block(x)}}, false, false)
			g.multiply("link-scores-grad", &backend.Operands{Out: block(dx),
				In: [4]backend.Tensor{rows(grad), rows(q)}}, true, false)
		})
		return
	}
	args := []any{grad, scores, q, x, grad.Rows, o.Link.Chunk, grad.Cols, q.Cols, measure(o)}
	g.launch("link_scores_grad_queries", q.Len(), append([]any{dq}, args...)...)
	g.launch("link_scores_grad_candidates", x.Len(), append([]any{dx}, args...)...)
}

// multiplies reports whether scores are products of cuBLAS.
func (g *gpu) multiplies(l *backend.Links) bool {
	return l.Decoder.Measure() == decoder.Dot && l.Chunk >= productsLeast
}

// eachShare calls f with what cuts a share's rows, and its block of negatives, out of matrices.
func eachShare(l *backend.Links, scores backend.Tensor,
	f func(rows, block func(backend.Tensor) backend.Tensor)) {
	for first := 0; first < scores.Rows; first += l.Chunk {
		f(func(t backend.Tensor) backend.Tensor {
			return t.Slice(first, min(l.Chunk, scores.Rows-first))
		}, func(t backend.Tensor) backend.Tensor {
			return t.Slice(first/l.Chunk*scores.Cols, scores.Cols)
		})
	}
}

// linkLoss computes the loss of queries. The queries of one step have one loss.
func linkLoss(g *gpu, o *backend.Operands) {
	scores, l := o.In[0], &o.Link.Loss
	g.sumLosses(o, func(parts uint64) {
		g.launch("link_loss", scores.Rows*warpThreads, o.Out, o.Extra[0], parts, scores, o.In[1],
			scores.Rows, scores.Cols, o.Scalar, slices.Index(costOf, l.Name), l.Margin,
			l.Temperature)
	})
}

// sumLosses sums the losses of queries up, which launch writes as a part for each.
func (g *gpu) sumLosses(o *backend.Operands, launch func(parts uint64)) {
	scores := o.In[0]
	sum, _ := g.lossNumbers()
	parts := g.takeParts(scores.Rows)
	launch(parts)
	g.finish(sum, parts, scores.Rows)
	rows, more := scores.Rows, o.Acc
	g.pend(sum, func(sum, _ *[kept]float64) backend.Loss {
		loss := backend.Loss{Mean: sum[0], Rows: rows}
		if last := len(g.losses.read) - 1; more && last >= 0 {
			before := g.losses.read[last]
			g.losses.read = g.losses.read[:last]
			loss.Mean, loss.Rows = before.Mean+loss.Mean, before.Rows+loss.Rows
		}
		return loss
	})
}
