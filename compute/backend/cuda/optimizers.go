//go:build cuda && cgo && linux

package cuda

import (
	"math"

	"gdb/compute/backend"
	"gdb/internal/mem"
)

// normSize is NormSize of the kernels: how many values a part of a norm has.
const normSize = 4096

// ClipNorm bounds the norm of g. It waits for the factor, which the caller gets.
func (g *gpu) ClipNorm(x backend.Tensor, most float32, beside float64) (factor float32) {
	if g.err != nil {
		return 1
	}
	count := (x.Len() + normSize - 1) / normSize
	parts, at := g.take(count*numberBytes), g.take(numberBytes)
	g.launch("square_parts", count*blockThreads, parts, x, x.Len())
	g.launch("clip_factor", 1, at, parts, count, g.float(beside), most)
	g.launch("scale_by", x.Len(), x, x.Len(), at)
	var read [1]float64
	if g.flush(); g.err == nil {
		g.fail("read the norm", g.driver.read(mem.BytesOf(read[:]), at))
	}
	if g.err != nil {
		return 1
	}
	return float32(read[0])
}

// optimizers change weights by their gradients.
var optimizers = map[string]deviceKernel{
	"adam": adam,
	"sgd": func(g *gpu, o *backend.Operands) {
		n := o.Out.Len()
		g.launch("sgd", n, o.Out, o.In[0], n, o.Step.WeightDecay, g.float(float64(o.Step.Rate)))
	},
	"adagrad": func(g *gpu, o *backend.Operands) {
		n, s := o.Out.Len(), &o.Step
		g.launch("adagrad", n, o.Out, o.In[0], o.Extra[0], n, s.Eps, s.WeightDecay,
			g.float(float64(s.Rate)))
	},
}

// adam takes one step.
func adam(g *gpu, o *backend.Operands) {
	w, s := o.Out, &o.Step
	l2, step := g.adamStep(s)
	g.launch("adam", w.Len(), w, o.In[0], o.Extra[0], o.Extra[1], w.Len(), l2, s.Beta1, 1-s.Beta1,
		s.Beta2, 1-s.Beta2, s.Eps, step)
}

// adamStep returns the decay that is a part of the gradient, and where the numbers are that differ
// from step to step: the constants are made of the settings as the CPU makes them.
func (g *gpu) adamStep(s *backend.AdamStep) (l2 float32, step uint64) {
	bias := func(beta float32) float64 { return 1 - math.Pow(float64(beta), float64(s.Step)) }
	rootScale, rate := float32(1/math.Sqrt(bias(s.Beta2))), float32(float64(s.Rate)/bias(s.Beta1))
	l2, shrink := s.WeightDecay, float32(1)
	if s.Decoupled {
		l2, shrink = 0, 1-s.Rate*s.WeightDecay
	}
	return l2, g.float(float64(rootScale), float64(shrink), float64(rate))
}
