package main

import "math"

// vectorKernels are elementwise, or of one row.
var vectorKernels = []sliceKernel{
	{"add", "func(dst, src []float32)", "is dst += src, over the length of src.",
		func(k *pass) {
			k.over(func(a at) {
				v := a.load("src")
				k.add(v, v, a.load("dst"))
				a.store(v, "dst")
			}, "dst", "src")
		}},
	{"scale", "func(x []float32, s float32)", "is x *= s.", func(k *pass) {
		factor := k.param("s")
		k.over(func(a at) {
			v := a.load("x")
			k.mul(v, v, factor)
			a.store(v, "x")
		}, "x")
	}},
	{"bias", "func(y, bias []float32, rows, n int)", "adds bias to each row of y(rows,n).",
		func(k *pass) { bias(k, false) }},
	{"biasReLU", "func(y, bias []float32, rows, n int)",
		"adds bias to each row of y(rows,n) and cuts at zero.",
		func(k *pass) { bias(k, true) }},
	{"reluGrad", "func(dy, y []float32, scale float32)",
		"scales dy, and zeroes it where y is not positive.", func(k *pass) {
			factor := k.param("scale")
			k.over(func(a at) {
				positive, v := k.positive(a.load("y")), a.load("dy")
				k.mul(v, v, factor)
				k.and(v, v, positive)
				a.store(v, "dy")
			}, "dy", "y")
		}},
	{"dropout", "func(y []float32, plan *uint32, first uint32)",
		"drops or scales y: see refDropout.", dropout},
	{"sgd", "func(w, g []float32, lr, weightDecay float32)", "is w -= lr(g+weightDecay·w).",
		func(k *pass) {
			lr, decay := k.param("lr"), k.param("weightDecay")
			k.over(func(a at) {
				grad, weight := a.load("g"), a.load("w")
				k.addTimes(grad, decay, weight)
				k.lessTimes(weight, lr, grad)
				a.store(weight, "w")
			}, "w", "g")
		}},
	{"adagrad", "func(w, g, s []float32, lr, eps, weightDecay float32)",
		"is a step of Adagrad: see refAdagrad.", func(k *pass) {
			lr, eps, decay := k.param("lr"), k.param("eps"), k.param("weightDecay")
			k.over(func(a at) {
				grad, weight, squares := a.load("g"), a.load("w"), a.load("s")
				k.addTimes(grad, decay, weight)
				k.addTimes(squares, grad, grad)
				a.store(squares, "s")
				k.unary("fsqrt", squares, squares)
				k.add(squares, squares, eps)
				k.mul(grad, grad, lr)
				k.div(grad, grad, squares)
				k.sub(weight, weight, grad)
				a.store(weight, "w")
			}, "w", "s", "g")
		}},
	{"adam", "func(w, g, m, v []float32, plan *float32)", "is a step of Adam: see refAdam.", adam},
	{"rowMax", "func(x []float32) float32", "is the largest value of x.", func(k *pass) {
		best := k.float(float32(math.Inf(-1)))
		k.over(func(a at) { k.binary("fmax", best, best, a.loadAll("x")) }, "x")
		k.op("%s", maximumOfLanes(best, best))
		k.result("ret", best)
	}},
	{"expSum", "func(out, x []float32, shift float32) float32",
		"writes exp(x-shift), for x at most shift, and returns the sum: see refExpSum.",
		func(k *pass) {
			shift, sum, e := k.param("shift"), k.zero(), k.newExp()
			k.over(func(a at) {
				r := a.load("x")
				k.sub(r, r, shift)
				p := e.of(r)
				a.kept(p)
				a.store(p, "out")
				k.add(sum, sum, p)
			}, "out", "x")
			k.sum(sum)
		}},
}

// bias adds a row to each row of y, and cuts at zero if relu is set. rows and n are positive.
func bias(k *pass, relu bool) {
	rows, n, first := k.load("rows"), k.load("n"), k.load("bias_base")
	k.base["bias"] = k.gp()
	k.begin("y")
	row := k.label()
	k.mark(row)
	k.op("MOVD %s, %s", first, k.base["bias"])
	k.loop(n, func(a at) {
		v := a.load("y")
		k.add(v, v, a.load("bias"))
		if relu {
			negative := k.vec()
			k.op("%s", sign("fcmlt", negative, v))
			k.andNot(v, v, negative) // a NaN stays
		}
		a.store(v, "y")
	}, "y", "bias")
	k.op("SUBS $1, %s", rows)
	k.op("BNE %s", row)
}

// The constants of dropout.go.
const (
	drawStep = 0x9e3779b9
	drawMul1 = 0x7feb352d
	drawMul2 = 0x846ca68b
)

// dropout draws a number for each value, and compares it with the threshold of the plan.
func dropout(k *pass) {
	plan, first := k.load("plan"), k.load("first")
	mul1, mul2 := k.constant(drawMul1), k.constant(drawMul2)
	each := k.constant(drawStep)
	stride := k.constant(drawStep * lanes & math.MaxUint32)
	var fields [4]vec // add, xor, threshold and scale
	for i := range fields {
		fields[i] = k.vec()
		k.op("VLD1R (%s), [%s.S4]", plan, fields[i])
		k.op("ADD $4, %s", plan)
	}
	position := k.vec()
	for i := range lanes {
		k.op("VMOV %s, %s.S[%d]", first, position, i)
		k.op("ADDW $1, %s", first)
	}
	k.binary("mul", position, position, each)
	k.op("VADD %s.S4, %s.S4, %s.S4", fields[0], position, position)
	k.over(func(a at) {
		x, t, v := k.vec(), k.vec(), a.load("y")
		shift := func(bits int) {
			k.op("VUSHR $%d, %s.S4, %s.S4", bits, x, t)
			k.xor(x, x, t)
		}
		k.move(x, position)
		step := stride
		if a.single {
			step = each
		}
		k.op("VADD %s.S4, %s.S4, %s.S4", step, position, position)
		shift(16)
		k.binary("mul", x, x, mul1)
		shift(15)
		k.xor(x, x, fields[1])
		k.binary("mul", x, x, mul2)
		shift(16)
		k.op("VUSHR $8, %s.S4, %s.S4", x, x)
		k.binary("cmhs", x, x, fields[2])
		k.mul(v, v, fields[3])
		k.and(v, v, x)
		a.store(v, "y")
	}, "y")
}

func adam(k *pass) {
	plan := k.load("plan")
	var c [9]vec
	for i := range c {
		c[i] = k.vec()
		k.op("VLD1R (%s), [%s.S4]", plan, c[i])
		k.op("ADD $4, %s", plan)
	}
	l2, beta1, rest1, beta2, rest2 := c[0], c[1], c[2], c[3], c[4]
	rootScale, eps, shrink, rate := c[5], c[6], c[7], c[8]
	k.over(func(a at) {
		grad, weight := a.load("g"), a.load("w")
		k.addTimes(grad, l2, weight)
		mean := a.load("m")
		k.mul(mean, mean, beta1)
		k.addTimes(mean, rest1, grad)
		a.store(mean, "m")
		squares := a.load("v")
		k.mul(squares, squares, beta2)
		k.mul(grad, grad, grad)
		k.addTimes(squares, rest2, grad)
		a.store(squares, "v")
		root := k.vec()
		k.unary("fsqrt", root, squares)
		k.move(squares, eps)
		k.addTimes(squares, root, rootScale)
		k.mul(mean, mean, rate)
		k.div(mean, mean, squares)
		k.mul(weight, weight, shrink)
		k.sub(weight, weight, mean)
		a.store(weight, "w")
	}, "w", "m", "v", "g")
}

// The polynomial for exp on [-ln 2/2, ln 2/2] comes from Moshier's Cephes library (expf): its error
// is below 2 units in the last place.
var expPolynomial = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
	1.6666665459e-1, 5.0000001201e-1}

const (
	ln2High = 0.693359375 // of few bits, so that its multiples are exact
	ln2Low  = -2.12194440e-4
	// expLeast is where exp is taken for zero, as in all levels: see refExpSum.
	expLeast = -64
)

// exp holds what exponentials need in registers.
type exp struct {
	k                            *pass
	log2e, high, low, least, one vec
	polynomial                   []vec
}

func (k *pass) newExp() *exp {
	e := &exp{k: k, log2e: k.float(math.Log2E), high: k.float(ln2High), low: k.float(ln2Low),
		least: k.float(expLeast), one: k.float(1)}
	for _, c := range expPolynomial {
		e.polynomial = append(e.polynomial, k.float(c))
	}
	return e
}

// of returns exp(r), for r at most 0, as 2^n·exp(r'), n an integer and r' small. It changes r.
func (e *exp) of(r vec) vec {
	k, n, t := e.k, e.k.vec(), e.k.vec()
	none, p, q := k.vec(), k.vec(), k.vec()
	k.binary("fcmge", none, e.least, r) // not of a NaN
	k.mul(n, r, e.log2e)
	k.unary("fcvtns", n, n)
	k.unary("scvtf", t, n)
	k.lessTimes(r, t, e.high)
	k.lessTimes(r, t, e.low)
	k.move(p, e.polynomial[0])
	for _, c := range e.polynomial[1:] {
		k.move(q, c)
		k.addTimes(q, p, r)
		p, q = q, p
	}
	k.mul(p, p, r)
	k.move(q, r)
	k.addTimes(q, p, r)
	k.add(q, q, e.one)
	k.op("VSHL $23, %s.S4, %s.S4", n, n)
	k.op("VADD %s.S4, %s.S4, %s.S4", n, q, q)
	k.andNot(q, q, none)
	return q
}
