package program

import (
	"math"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// Norms of rows, and of columns over a batch.

var opLayerNorm = define("layer-norm", func(o *backend.Operands) bool {
	return sameLen(o) && o.Extra[0].Len() == 2*o.In[0].Rows && o.In[1].Len() == o.In[0].Cols
}, layerNormRef, Kind{grad: func(t *tape, o *op, dy Value) { t.norm(opLayerNormGrad, o, dy) }})

// LayerNorm scales each row to mean 0 and variance 1, and then by gamma and beta (1,cols).
func (b *Builder) LayerNorm(x, gamma, beta Value) Value {
	vx := b.p.of(x)
	o := simple(opLayerNorm, x, gamma, beta)
	o.extra = []Value{b.p.new(value{rows: vx.rows, cols: 2})}
	return b.like(x, o)
}

// norm appends the gradients of a norm, which one operation computes.
func (t *tape) norm(kind *Kind, o *op, dy Value) {
	x, gamma, beta := o.in[0], o.in[1], o.in[2]
	g := simple(kind, dy, x, gamma, o.extra[0])
	v := *t.p.of(x)
	for range 2 {
		g.extra = append(g.extra, t.p.new(value{rows: Fixed(1), cols: v.cols, grad: true}))
	}
	dx := t.p.add(g, v.rows, v.cols)
	t.hold(gamma, g.extra[0])
	t.hold(beta, g.extra[1])
	t.hold(x, dx)
}

var opLayerNormGrad = define("layer-norm-grad", normGradFits, layerNormGradRef,
	Kind{taken: func(z sized, _ int) backend.Taken {
		return backend.Taken{Once: 2 * kernel.ColumnWords(z.rows(0), z.cols(0))}
	}})

// opBatchNorm is of x, by the batch; it adds to statistics, its last operand.
var opBatchNorm = define("batch-norm", func(o *backend.Operands) bool {
	n := 2 * o.In[0].Cols
	return sameLen(o) && o.Extra[0].Len() == n && o.In[3].Len() == n
}, batchNormRef, Kind{counts: true,
	grad: func(t *tape, o *op, dy Value) { t.norm(opBatchNormGrad, o, dy) }})

var opBatchNormGrad = define("batch-norm-grad", normGradFits, batchNormGradRef, Kind{})

// opNormApply is of x, by statistics.
var opNormApply = define("norm-apply", func(o *backend.Operands) bool {
	return sameLen(o) && o.In[3].Len() == 2*o.In[0].Cols
}, normApplyRef, Kind{grad: func(t *tape, o *op, dy Value) {
	t.give(o.in[0], simple(opNormApplyGrad, dy, o.in[1], o.in[3]))
}})

// opNormApplyGrad has the gradient of the result, gamma and statistics. Parameters are not learned
// by a program that applies a norm.
var opNormApplyGrad = define("norm-apply-grad", func(o *backend.Operands) bool {
	return sameLen(o) && o.In[2].Len() == 2*o.In[0].Cols
}, func(h *backend.Plain) {
	inverse := inverseDeviations(h.From[2].V)
	for i := range h.To.Rows {
		for j, v := range h.From[0].Row(i) {
			h.To.Row(i)[j] = v * inverse[j] * h.From[1].V[j]
		}
	}
}, Kind{})

// BatchNorm scales each column of x to mean 0 and variance 1 over the batch, and then by gamma and
// beta (1,cols). What the batches' means and variances are like is kept in statistics (2,cols), by
// which columns are scaled where nothing is trained.
func (b *Builder) BatchNorm(x, gamma, beta, statistics Value) Value {
	if !b.Train {
		return b.like(x, simple(opNormApply, x, gamma, beta, statistics))
	}
	o := simple(opBatchNorm, x, gamma, beta, statistics)
	o.extra = []Value{b.p.new(value{rows: Fixed(2), cols: b.Cols(x)})}
	return b.like(x, o)
}

func normGradFits(o *backend.Operands) bool {
	return sameLen(o) && o.In[1].Len() == o.Out.Len() && o.Extra[0].Len() == o.Out.Cols &&
		o.Extra[1].Len() == o.Out.Cols
}

// statistics returns the mean of values and 1/√variance.
func statistics(n int, value func(i int) float32) (mean, inverse float32) {
	sum, squares := 0.0, 0.0
	for i := range n {
		sum += float64(value(i))
	}
	for i := range n {
		d := float64(value(i)) - sum/float64(n)
		squares += d * d
	}
	return float32(sum / float64(n)), float32(1 / math.Sqrt(squares/float64(n)+backend.NormEps))
}

func layerNormRef(h *backend.Plain) {
	x, gamma, beta := h.From[0], h.From[1].V, h.From[2].V
	for i := range x.Rows {
		mean, inverse := statistics(x.Cols, func(j int) float32 { return x.Row(i)[j] })
		copy(h.More[0].V[2*i:], []float32{mean, inverse})
		for j, v := range x.Row(i) {
			h.To.Row(i)[j] = (v-mean)*inverse*gamma[j] + beta[j]
		}
	}
}

func batchNormRef(h *backend.Plain) {
	x, stats := h.From[0], h.More[0]
	for j := range x.Cols {
		stats.Row(0)[j], stats.Row(1)[j] = 0, 0
		if x.Rows > 0 {
			stats.Row(0)[j], stats.Row(1)[j] = statistics(x.Rows,
				func(i int) float32 { return x.Row(i)[j] })
		}
	}
	scaleColumns(h, stats.Row(0), stats.Row(1))
	backend.TrackNorm(h.From[3].V, stats.V, x.Rows)
}

func normApplyRef(h *backend.Plain) {
	scaleColumns(h, h.From[3].V[:h.From[0].Cols], inverseDeviations(h.From[3].V))
}

// inverseDeviations returns 1/√(variance+ε) of columns, given their means and then their variances.
func inverseDeviations(statistics []float32) []float32 {
	n := len(statistics) / 2
	inverse := make([]float32, n)
	for j, v := range statistics[n:] {
		inverse[j] = float32(1 / math.Sqrt(float64(v)+backend.NormEps))
	}
	return inverse
}

// scaleColumns scales columns by their statistics, and then by gamma and beta.
func scaleColumns(h *backend.Plain, mean, inverse []float32) {
	for i := range h.To.Rows {
		for j, v := range h.From[0].Row(i) {
			h.To.Row(i)[j] = (v-mean[j])*inverse[j]*h.From[1].V[j] + h.From[2].V[j]
		}
	}
}

// normGrad computes the gradients of gamma, of beta and of x, which was scaled in groups of n
// values by the statistics of each. group(i,j) returns the group of a value, from 0 to groups-1.
func normGrad(h *backend.Plain, groups, n int, statistics func(group int) (mean, inverse float32),
	group func(i, j int) int) {
	dy, x, gamma := h.From[0], h.From[1], h.From[2].V
	dgamma, dbeta := h.More[0].V, h.More[1].V
	clear(dgamma)
	clear(dbeta)
	plain, scaled := make([]float32, groups), make([]float32, groups)
	each := func(f func(g, i, j int, hat, inverse float32)) {
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				g := group(i, j)
				mean, inverse := statistics(g)
				f(g, i, j, (v-mean)*inverse, inverse)
			}
		}
	}
	each(func(g, i, j int, hat, _ float32) {
		d := dy.Row(i)[j]
		dgamma[j] += d * hat
		dbeta[j] += d
		plain[g] += d * gamma[j]
		scaled[g] += d * gamma[j] * hat
	})
	each(func(g, i, j int, hat, inverse float32) {
		mean := (plain[g] + hat*scaled[g]) / float32(n)
		h.To.Row(i)[j] = inverse * (dy.Row(i)[j]*gamma[j] - mean)
	})
}

func layerNormGradRef(h *backend.Plain) {
	x, stats := h.From[1], h.From[3].V
	normGrad(h, x.Rows, x.Cols, func(i int) (mean, inverse float32) {
		return stats[2*i], stats[2*i+1]
	}, func(i, _ int) int { return i })
}

func batchNormGradRef(h *backend.Plain) {
	x, stats := h.From[1], h.From[3].V
	normGrad(h, x.Cols, x.Rows, func(j int) (mean, inverse float32) {
		return stats[j], stats[x.Cols+j]
	}, func(_, j int) int { return j })
}
