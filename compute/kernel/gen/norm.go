//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// normKernels are the normalizations, row by row. See refnorm.go for what each computes.
var normKernels = []sliceKernel{
	{"sum", "func(x []float32) float32", "is the sum of x.", func(k *vectors) {
		total := k.zero()
		k.each("x", func(a at) { VADDPS(a.load("x"), total, total) })
		k.result(total, addLanes)
	}},
	{"squares", "func(x []float32, mean float32) float32", "is the sum of (x-mean)².",
		func(k *vectors) {
			mean, total := k.param("mean"), k.zero()
			k.each("x", func(a at) {
				v := a.load("x")
				VSUBPS(mean, v, v)
				a.kept(v)
				VFMADD231PS(v, v, total)
			})
			k.result(total, addLanes)
		}},
	{"normRow", "func(y, x, gamma, beta []float32, mean, inverse float32)",
		"is y = (x-mean)*inverse*gamma + beta.", func(k *vectors) {
			mean, inverse := k.param("mean"), k.param("inverse")
			k.over("x", func(a at) {
				v := a.load("x")
				VSUBPS(mean, v, v)
				VMULPS(inverse, v, v)
				VFMADD213PS(a.load("beta"), a.load("gamma"), v)
				a.store(v, "y")
			})
		}},
	{"layerSums", "func(dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) " +
		"(plain, scaled float32)", "adds to gradients and returns sums: see refLayerSums.",
		layerSums},
	{"layerGrad", "func(dx, dy, x, gamma []float32, mean, inverse, a, b float32)",
		"is dx = inverse*(dy*gamma - a - (x-mean)*inverse*b).", func(k *vectors) {
			mean, inverse := k.param("mean"), k.param("inverse")
			plain, scaled := k.param("a"), k.param("b")
			k.over("dy", func(a at) {
				v, g := a.load("x"), a.load("dy")
				VSUBPS(mean, v, v)
				VMULPS(inverse, v, v)
				VFMSUB132PS(a.load("gamma"), plain, g)
				VFNMADD231PS(v, scaled, g)
				VMULPS(inverse, g, g)
				a.store(g, "dx")
			})
		}},
	{"addSquares", "func(sum, x, mean []float32)", "is sum += (x-mean)².", func(k *vectors) {
		k.over("x", func(a at) {
			v, t := a.minus("x", "mean"), a.load("sum")
			VFMADD231PS(v, v, t)
			a.store(t, "sum")
		})
	}},
	{"normColumns", "func(y, x, mean, factor, beta []float32)",
		"is y = (x-mean)*factor + beta.", func(k *vectors) {
			k.over("x", func(a at) {
				v := a.minus("x", "mean")
				VFMADD213PS(a.load("beta"), a.load("factor"), v)
				a.store(v, "y")
			})
		}},
	{"batchSums", "func(dgamma, dbeta, dy, x, mean, inverse []float32)",
		"adds a row to the gradients of gamma and beta.", func(k *vectors) {
			k.over("dy", func(a at) {
				v, g := a.minus("x", "mean"), a.load("dy")
				VMULPS(a.load("inverse"), v, v)
				a.addGradients(v, g)
			})
		}},
	{"batchGrad", "func(dx, dy, x, mean, a, b, c []float32)",
		"is dx = a*dy - b*(x-mean) - c.", func(k *vectors) {
			k.over("dy", func(a at) {
				v, g := a.minus("x", "mean"), a.load("dy")
				VFMSUB132PS(a.load("a"), a.load("c"), g)
				VFNMADD231PS(v, a.load("b"), g)
				a.store(g, "dx")
			})
		}},
}

func addLanes(a, b, to reg.Register) { VADDPS(a, b, to) }

// addGradients adds a gradient g to that of beta, and times v to that of gamma.
func (a at) addGradients(v, g reg.VecVirtual) {
	t := a.load("dbeta")
	VADDPS(g, t, t)
	a.store(t, "dbeta")
	t = a.load("dgamma")
	VFMADD231PS(g, v, t)
	a.store(t, "dgamma")
}

func layerSums(k *vectors) {
	mean, inverse := k.param("mean"), k.param("inverse")
	plain, scaled := k.zero(), k.zero()
	k.each("dy", func(a at) {
		v, g := a.load("x"), a.load("dy")
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		a.addGradients(v, g)
		VMULPS(a.load("gamma"), g, g)
		VADDPS(g, plain, plain)
		VFMADD231PS(g, v, scaled)
	})
	first, second := YMM(), YMM()
	storeResult(0, k.fold(plain, first, second, addLanes))
	storeResult(1, k.fold(scaled, first, second, addLanes))
	done()
}
