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
	if !g.ready(true, "ClipNorm", x) {
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

// Adam takes one step. The constants are made of the settings as the CPU makes them.
func (g *gpu) Adam(w, grad backend.Tensor, m backend.Moments, s backend.AdamStep) {
	if !g.ready(w.Len() == grad.Len(), "Adam", w, grad) {
		return
	}
	bias := func(beta float32) float64 { return 1 - math.Pow(float64(beta), float64(s.Step)) }
	rootScale, rate := float32(1/math.Sqrt(bias(s.Beta2))), float32(float64(s.Rate)/bias(s.Beta1))
	l2, shrink := s.WeightDecay, float32(1)
	if s.Decoupled {
		l2, shrink = 0, 1-s.Rate*s.WeightDecay
	}
	g.launch("adam", w.Len(), w, grad, m.M, m.V, w.Len(), l2, s.Beta1, 1-s.Beta1, s.Beta2,
		1-s.Beta2, s.Eps, g.float(float64(rootScale), float64(shrink), float64(rate)))
}

// SGD takes one step.
func (g *gpu) SGD(w, grad backend.Tensor, rate, weightDecay float32) {
	if g.ready(w.Len() == grad.Len(), "SGD", w, grad) {
		g.launch("sgd", w.Len(), w, grad, w.Len(), weightDecay, g.float(float64(rate)))
	}
}

// Adagrad takes one step.
func (g *gpu) Adagrad(w, grad, sums backend.Tensor, rate, eps, weightDecay float32) {
	if g.ready(w.Len() == grad.Len() && w.Len() == sums.Len(), "Adagrad", w, grad, sums) {
		g.launch("adagrad", w.Len(), w, grad, sums, w.Len(), eps, weightDecay,
			g.float(float64(rate)))
	}
}
