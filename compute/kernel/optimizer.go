package kernel

import "math"

// Adam takes the step-th step, counted from 1, of w along the gradient g, with the moments m and
// v, which begin as zeros. Decoupled weight decay (AdamW) shrinks the weights by lr·weightDecay;
// otherwise weightDecay·w is added to the gradient.
func Adam(p *Pool, w, g, m, v []float32, s AdamStep) {
	c := planAdam(s)
	w, m, v = w[:len(g)], m[:len(g)], v[:len(g)]
	adam := level().adam
	p.Span(len(g), flatPart, func(lo, hi int) {
		adam(w[lo:hi], g[lo:hi], m[lo:hi], v[lo:hi], &c)
	})
}

// planAdam finds the constants of a step.
func planAdam(s AdamStep) adamPlan {
	bias := func(beta float32) float64 { return 1 - math.Pow(float64(beta), float64(s.Step)) }
	c := adamPlan{beta1: s.Beta1, rest1: 1 - s.Beta1, beta2: s.Beta2, rest2: 1 - s.Beta2,
		eps:       s.Eps,
		rootScale: float32(1 / math.Sqrt(bias(s.Beta2))),
		rate:      float32(float64(s.Rate) / bias(s.Beta1)),
		shrink:    1}
	if s.Decoupled {
		c.shrink = 1 - s.Rate*s.WeightDecay
	} else {
		c.l2 = s.WeightDecay
	}
	return c
}

// SGD is w -= lr·(g + weightDecay·w).
func SGD(p *Pool, w, g []float32, lr, weightDecay float32) {
	w = w[:len(g)]
	sgd := level().sgd
	p.Span(len(g), flatPart, func(lo, hi int) { sgd(w[lo:hi], g[lo:hi], lr, weightDecay) })
}

// Adagrad is s += g² and w -= lr·g/(sqrt(s)+eps), where weightDecay·w is added to g first.
func Adagrad(p *Pool, w, g, s []float32, step AdamStep) {
	w, s = w[:len(g)], s[:len(g)]
	adagrad := level().adagrad
	p.Span(len(g), flatPart, func(lo, hi int) {
		adagrad(w[lo:hi], g[lo:hi], s[lo:hi], step.Rate, step.Eps, step.WeightDecay)
	})
}

// ClipNorm scales g so that its norm, the root of the sum of squares, is at most most, and returns
// the factor. beside is the sum of the squares of other gradients, which their owner scales.
// Squares are summed in parts of one size, and the parts in their order.
func ClipNorm(p *Pool, g []float32, most float32, beside float64) (factor float32) {
	sum := p.total(len(g), flatPart, func(lo, hi int) (sum float64) {
		for _, v := range g[lo:hi] {
			sum += float64(v) * float64(v)
		}
		return sum
	})
	norm := math.Sqrt(sum + beside)
	if !(norm > float64(most)) {
		return 1
	}
	factor = float32(float64(most) / norm)
	scale := level().scale
	p.Span(len(g), flatPart, func(lo, hi int) { scale(g[lo:hi], factor) })
	return factor
}
