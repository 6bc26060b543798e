//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// norm writes the normalizations, row by row. See refnorm.go for what each computes.
func norm() {
	for _, s := range isas {
		sum(s)
		squares(s)
		normRow(s)
		layerSums(s)
		layerGrad(s)
		addSquares(s)
		normColumns(s)
		batchSums(s)
		batchGrad(s)
	}
}

func addLanes(a, b, to reg.Register) { VADDPS(a, b, to) }

// kept zeros the lanes of v that are not of the arrays.
func (a at) kept(v reg.VecVirtual) {
	if a.rest != nil {
		a.s.keep(*a.rest, v)
	}
}

// minus returns the values at p, less those at q.
func (a at) minus(p, q reg.Register) reg.VecVirtual {
	v := a.load(p)
	VSUBPS(a.load(q), v, v)
	return v
}

func sum(s isa) {
	s.text("sum", "func(x []float32) float32", "is the sum of x.")
	x, total := base("x"), s.zero()
	s.loop(length("x"), func(a at) { VADDPS(a.load(x), total, total) })
	s.result(total, addLanes)
}

func squares(s isa) {
	s.text("squares", "func(x []float32, mean float32) float32", "is the sum of (x-mean)².")
	x, mean, total := base("x"), s.broadcast(floatParam("mean")), s.zero()
	s.loop(length("x"), func(a at) {
		v := a.load(x)
		VSUBPS(mean, v, v)
		a.kept(v)
		VFMADD231PS(v, v, total)
	})
	s.result(total, addLanes)
}

func normRow(s isa) {
	s.text("normRow", "func(y, x, gamma, beta []float32, mean, inverse float32)",
		"is y = (x-mean)*inverse*gamma + beta.")
	y, x, gamma, beta := base("y"), base("x"), base("gamma"), base("beta")
	mean, inverse := s.broadcast(floatParam("mean")), s.broadcast(floatParam("inverse"))
	s.loop(length("x"), func(a at) {
		v := a.load(x)
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		VFMADD213PS(a.load(beta), a.load(gamma), v)
		a.store(v, y)
	})
	done()
}

func layerSums(s isa) {
	s.text("layerSums", "func(dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) "+
		"(plain, scaled float32)", "adds to gradients and returns sums: see refLayerSums.")
	dgamma, dbeta, dy := base("dgamma"), base("dbeta"), base("dy")
	x, gamma := base("x"), base("gamma")
	mean, inverse := s.broadcast(floatParam("mean")), s.broadcast(floatParam("inverse"))
	plain, scaled := s.zero(), s.zero()
	s.loop(length("dy"), func(a at) {
		v, g := a.load(x), a.load(dy)
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		t := a.load(dbeta)
		VADDPS(g, t, t)
		a.store(t, dbeta)
		t = a.load(dgamma)
		VFMADD231PS(g, v, t)
		a.store(t, dgamma)
		VMULPS(a.load(gamma), g, g)
		VADDPS(g, plain, plain)
		VFMADD231PS(g, v, scaled)
	})
	first, second := YMM(), YMM()
	for i, v := range []reg.VecVirtual{plain, scaled} {
		x := s.fold(v, first, second, addLanes)
		a, err := ReturnIndex(i).Resolve()
		if err != nil {
			panic(err)
		}
		VMOVSS(x, a.Addr)
	}
	done()
}

func layerGrad(s isa) {
	s.text("layerGrad", "func(dx, dy, x, gamma []float32, mean, inverse, a, b float32)",
		"is dx = inverse*(dy*gamma - a - (x-mean)*inverse*b).")
	dx, dy, x, gamma := base("dx"), base("dy"), base("x"), base("gamma")
	mean, inverse := s.broadcast(floatParam("mean")), s.broadcast(floatParam("inverse"))
	plain, scaled := s.broadcast(floatParam("a")), s.broadcast(floatParam("b"))
	s.loop(length("dy"), func(a at) {
		v, g := a.load(x), a.load(dy)
		VSUBPS(mean, v, v)
		VMULPS(inverse, v, v)
		VFMSUB132PS(a.load(gamma), plain, g)
		VFNMADD231PS(v, scaled, g)
		VMULPS(inverse, g, g)
		a.store(g, dx)
	})
	done()
}

func addSquares(s isa) {
	s.text("addSquares", "func(sum, x, mean []float32)", "is sum += (x-mean)².")
	sum, x, mean := base("sum"), base("x"), base("mean")
	s.loop(length("x"), func(a at) {
		v, t := a.minus(x, mean), a.load(sum)
		VFMADD231PS(v, v, t)
		a.store(t, sum)
	})
	done()
}

func normColumns(s isa) {
	s.text("normColumns", "func(y, x, mean, factor, beta []float32)",
		"is y = (x-mean)*factor + beta.")
	y, x, mean, factor, beta := base("y"), base("x"), base("mean"), base("factor"), base("beta")
	s.loop(length("x"), func(a at) {
		v := a.minus(x, mean)
		VFMADD213PS(a.load(beta), a.load(factor), v)
		a.store(v, y)
	})
	done()
}

func batchSums(s isa) {
	s.text("batchSums", "func(dgamma, dbeta, dy, x, mean, inverse []float32)",
		"adds a row to the gradients of gamma and beta.")
	dgamma, dbeta, dy := base("dgamma"), base("dbeta"), base("dy")
	x, mean, inverse := base("x"), base("mean"), base("inverse")
	s.loop(length("dy"), func(a at) {
		v, g := a.minus(x, mean), a.load(dy)
		VMULPS(a.load(inverse), v, v)
		t := a.load(dbeta)
		VADDPS(g, t, t)
		a.store(t, dbeta)
		t = a.load(dgamma)
		VFMADD231PS(g, v, t)
		a.store(t, dgamma)
	})
	done()
}

func batchGrad(s isa) {
	s.text("batchGrad", "func(dx, dy, x, mean, a, b, c []float32)",
		"is dx = a*dy - b*(x-mean) - c.")
	dx, dy, x, mean := base("dx"), base("dy"), base("x"), base("mean")
	factor, slope, shift := base("a"), base("b"), base("c")
	s.loop(length("dy"), func(a at) {
		v, g := a.minus(x, mean), a.load(dy)
		VFMSUB132PS(a.load(factor), a.load(shift), g)
		VFNMADD231PS(v, a.load(slope), g)
		a.store(g, dx)
	})
	done()
}
