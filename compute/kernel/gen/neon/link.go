package main

// linkKernels are what link prediction does with single rows.
var linkKernels = []sliceKernel{
	{"product", "func(y, a, b []float32)", "is y = a*b, over the length of b.",
		func(k *pass) {
			k.over(func(a at) {
				v := a.load("a")
				k.mul(v, v, a.load("b"))
				a.store(v, "y")
			}, "y", "a", "b")
		}},
	{"addCube", "func(g, x []float32, f float32)", "is g += f*|x|*x, over the length of x.",
		func(k *pass) {
			f := k.param("f")
			k.over(func(a at) {
				v, sum, size := a.load("x"), a.load("g"), k.vec()
				k.unary("fabs", size, v)
				k.mul(size, size, f)
				k.addTimes(sum, size, v)
				a.store(sum, "g")
			}, "g", "x")
		}},
	{"dot", "func(a, b []float32) float32", "is the sum of a*b, over the length of b.",
		func(k *pass) {
			sum := k.zero()
			k.over(func(a at) { k.addTimes(sum, a.load("a"), a.load("b")) }, "a", "b")
			k.sum(sum)
		}},
	{"manhattan", "func(a, b []float32) float32", "is the sum of |a-b|, over the length of b.",
		func(k *pass) {
			sum := k.zero()
			k.over(func(a at) {
				v := a.load("a")
				k.binary("fabd", v, v, a.load("b"))
				k.add(sum, sum, v)
			}, "a", "b")
			k.sum(sum)
		}},
	{"manhattanGrad", "func(da, db, a, b []float32, w float32)",
		"is da -= w*sign(a-b) and db += w*sign(a-b), over the length of b.", manhattanGrad},
	{"modulus", "func(ar, ai, br, bi []float32) float32",
		"is the sum of the moduli of a-b, over the length of bi.", func(k *pass) {
			sum, least := k.zero(), k.float(modulusLeast)
			k.over(func(a at) {
				root := k.squaredModulus(a.minus("ar", "br"), a.minus("ai", "bi"), least)
				k.unary("fsqrt", root, root)
				a.kept(root)
				k.add(sum, sum, root)
			}, "ar", "ai", "br", "bi")
			k.sum(sum)
		}},
	{"modulusGrad", "func(da, db, a, b []float32, half, n uint64, w float32)",
		"adds gradients of n complex numbers, whose imaginary parts lie half values behind the " +
			"real ones: see refModulusGrad.", modulusGrad},
	{"prefetchRows", "func(table *float32, rows *uint32, count int, bytes uintptr)",
		"asks for the lines of rows, each of which takes bytes.", prefetchRows},
}

// prefetchRows asks for each line of the rows that a list names.
func prefetchRows(k *pass) {
	table, rows, count, bytes := k.load("table"), k.load("rows"), k.load("count"), k.load("bytes")
	at, last, row, line := k.gp(), k.gp(), k.label(), k.label()
	k.mark(row)
	k.op("MOVWU.P 4(%s), %s", rows, at)
	k.op("MADD %s, %s, %s, %s", bytes, table, at, at)
	k.op("ADD %s, %s, %s", bytes, at, last)
	k.op("AND $%d, %s", -lineBytes, at)
	k.mark(line)
	k.op("PRFM (%s), PLDL1KEEP", at)
	k.op("ADD $%d, %s", lineBytes, at)
	k.op("CMP %s, %s", last, at)
	k.op("BLO %s", line)
	k.op("SUBS $1, %s", count)
	k.op("BNE %s", row)
}

// modulusLeast is the constant of package kernel.
const modulusLeast = 1e-20

// manhattanGrad clears the weight where a difference has no sign.
func manhattanGrad(k *pass) {
	w := k.param("w")
	k.over(func(a at) {
		x, y := a.load("a"), a.load("b")
		up, down := k.greater(x, y), k.greater(y, x)
		k.and(up, up, w)
		k.and(down, down, w)
		k.sub(up, up, down)
		v := a.load("da")
		k.sub(v, v, up)
		a.store(v, "da")
		v = a.load("db")
		k.add(v, v, up)
		a.store(v, "db")
	}, "da", "db", "a", "b")
}

// squaredModulus returns x²+y² and a little more: see refModulus.
func (k *pass) squaredModulus(x, y, least vec) vec {
	v := k.vec()
	k.move(v, least)
	k.addTimes(v, x, x)
	k.addTimes(v, y, y)
	return v
}

func modulusGrad(k *pass) {
	w, half, least := k.param("w"), k.load("half"), k.float(modulusLeast)
	names := []string{"da", "db", "a", "b"}
	for _, real := range names[:4] {
		k.base[real+"i"] = k.gp()
		k.op("ADD %s<<2, %s, %s", half, k.begin(real), k.base[real+"i"])
		names = append(names, real+"i")
	}
	k.loop(k.load("n"), func(a at) {
		x, y := a.minus("a", "b"), a.minus("ai", "bi")
		f := k.squaredModulus(x, y, least)
		k.unary("fsqrt", f, f)
		k.div(f, w, f)
		for _, part := range []struct {
			diff   vec
			da, db string
		}{{x, "da", "db"}, {y, "dai", "dbi"}} {
			own, other := a.load(part.da), a.load(part.db)
			k.lessTimes(own, f, part.diff)
			k.addTimes(other, f, part.diff)
			a.store(own, part.da)
			a.store(other, part.db)
		}
	}, names...)
}
