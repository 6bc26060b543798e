package main

// normKernels are the normalizations, row by row. See refnorm.go for what each computes.
var normKernels = []sliceKernel{
	{"sum", "func(x []float32) float32", "is the sum of x.", func(k *pass) {
		total := k.zero()
		k.over(func(a at) { k.add(total, total, a.load("x")) }, "x")
		k.sum(total)
	}},
	{"squares", "func(x []float32, mean float32) float32", "is the sum of (x-mean)².",
		func(k *pass) {
			mean, total := k.param("mean"), k.zero()
			k.over(func(a at) {
				v := a.load("x")
				k.sub(v, v, mean)
				a.kept(v)
				k.addTimes(total, v, v)
			}, "x")
			k.sum(total)
		}},
	{"normRow", "func(y, x, gamma, beta []float32, mean, inverse float32)",
		"is y = (x-mean)*inverse*gamma + beta.", func(k *pass) {
			mean, inverse := k.param("mean"), k.param("inverse")
			k.over(func(a at) {
				v, y := a.load("x"), a.load("beta")
				k.sub(v, v, mean)
				k.mul(v, v, inverse)
				k.addTimes(y, v, a.load("gamma"))
				a.store(y, "y")
			}, "y", "gamma", "beta", "x")
		}},
	{"layerSums", "func(dgamma, dbeta, dy, x, gamma []float32, mean, inverse float32) " +
		"(plain, scaled float32)", "adds to gradients and returns sums: see refLayerSums.",
		layerSums},
	{"layerGrad", "func(dx, dy, x, gamma []float32, mean, inverse, a, b float32)",
		"is dx = inverse*(dy*gamma - a - (x-mean)*inverse*b).", func(k *pass) {
			mean, inverse := k.param("mean"), k.param("inverse")
			plain, scaled := k.param("a"), k.param("b")
			k.over(func(a at) {
				v, g := a.load("x"), a.load("dy")
				k.sub(v, v, mean)
				k.mul(v, v, inverse)
				k.mul(g, g, a.load("gamma"))
				k.sub(g, g, plain)
				k.lessTimes(g, v, scaled)
				k.mul(g, g, inverse)
				a.store(g, "dx")
			}, "dx", "x", "gamma", "dy")
		}},
	{"addSquares", "func(sum, x, mean []float32)", "is sum += (x-mean)².", func(k *pass) {
		k.over(func(a at) {
			v, t := a.minus("x", "mean"), a.load("sum")
			k.addTimes(t, v, v)
			a.store(t, "sum")
		}, "sum", "mean", "x")
	}},
	{"normColumns", "func(y, x, mean, factor, beta []float32)",
		"is y = (x-mean)*factor + beta.", func(k *pass) {
			k.over(func(a at) {
				v, y := a.minus("x", "mean"), a.load("beta")
				k.addTimes(y, v, a.load("factor"))
				a.store(y, "y")
			}, "y", "mean", "factor", "beta", "x")
		}},
	{"batchSums", "func(dgamma, dbeta, dy, x, mean, inverse []float32)",
		"adds a row to the gradients of gamma and beta.", func(k *pass) {
			k.over(func(a at) {
				v, g := a.minus("x", "mean"), a.load("dy")
				k.mul(v, v, a.load("inverse"))
				a.addGradients(v, g)
			}, "dgamma", "dbeta", "x", "mean", "inverse", "dy")
		}},
	{"batchGrad", "func(dx, dy, x, mean, a, b, c []float32)",
		"is dx = a*dy - b*(x-mean) - c.", func(k *pass) {
			k.over(func(a at) {
				v, g := a.minus("x", "mean"), a.load("dy")
				k.mul(g, g, a.load("a"))
				k.sub(g, g, a.load("c"))
				k.lessTimes(g, v, a.load("b"))
				a.store(g, "dx")
			}, "dx", "x", "mean", "a", "b", "c", "dy")
		}},
}

// addGradients adds a gradient g to that of beta, and times v to that of gamma.
func (a at) addGradients(v, g vec) {
	t := a.load("dbeta")
	a.k.add(t, t, g)
	a.store(t, "dbeta")
	t = a.load("dgamma")
	a.k.addTimes(t, g, v)
	a.store(t, "dgamma")
}

func layerSums(k *pass) {
	mean, inverse := k.param("mean"), k.param("inverse")
	plain, scaled := k.zero(), k.zero()
	k.over(func(a at) {
		v, g := a.load("x"), a.load("dy")
		k.sub(v, v, mean)
		k.mul(v, v, inverse)
		a.addGradients(v, g)
		k.mul(g, g, a.load("gamma"))
		k.add(plain, plain, g)
		k.addTimes(scaled, g, v)
	}, "dgamma", "dbeta", "x", "gamma", "dy")
	k.foldSum(plain)
	k.result("plain", plain)
	k.foldSum(scaled)
	k.result("scaled", scaled)
}
