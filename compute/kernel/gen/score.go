//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// score writes the scores of GATv2 and their gradients.
func score() {
	for _, s := range isas {
		for vectors := 1; vectors <= s.most(3, 8); vectors++ {
			edgeScore(s, vectors)
		}
		for vectors := 1; vectors <= s.most(2, 6); vectors++ {
			edgeScoreGrad(s, vectors, true)
			edgeScoreGrad(s, vectors, false)
		}
	}
}

// headAt returns the address of the present head in a row, given the parameter that points to it.
func (l *edgeLoop) headAt(row string) Mem {
	at := loadGP(Param("heads"))
	SUBQ(l.heads, at)
	IMULQ(floatParam("ownHead"), at)
	ADDQ(floatParam(row), at)
	return Mem{Base: at}
}

// plus returns the sum of a vector of the entry's row and v.
func (u *sums) plus(m Mem, v reg.VecVirtual, masked bool) reg.VecVirtual {
	t := u.s.vec()
	if masked {
		u.s.loadMasked(m, u.last, t)
		VADDPS(v, t, t)
	} else {
		VADDPS(m, v, t)
	}
	return t
}

// edgeScore writes the products of att with leaky sums of a list's own row and those of its
// entries.
func edgeScore(s isa, vectors int) {
	scoreText(s, "edgeScore", vectors, "scores sums of rows")
	u := newSums(s, vectors)
	att, acc := u.more(), s.vecs(min(vectors, 2))
	slope, zero := s.broadcast(floatParam("slope")), s.zero()
	var l edgeLoop
	l.run("own", "values", func() {
		u.load(Mem{Base: l.own})
		att.load(l.headAt("att"))
	}, func() {
		i := 0
		add := func(m Mem, v reg.VecVirtual) {
			t, less := u.plus(m, v, i == vectors-1), s.vec()
			VMULPS(slope, t, less)
			t = s.choose(s.greater(t, zero), t, less)
			if to := acc[i%len(acc)]; i < len(acc) {
				VMULPS(att.acc[i], t, to)
			} else {
				VFMADD231PS(att.acc[i], t, to)
			}
			i++
		}
		u.each(l.row, add, add)
		storeDot(s, acc, Mem{Base: l.value})
	}, func() { Label("store") })
}

// edgeScoreGrad writes the gradient of edgeScore in a list's own row, and adds that in att to sum.
func edgeScoreGrad(s isa, vectors int, withAtt bool) {
	if withAtt {
		scoreText(s, "edgeScoreGrad", vectors, "writes the gradients of scores in own and att")
	} else {
		scoreText(s, "edgeScoreOwnGrad", vectors, "writes the gradient of scores in own")
	}
	u, grad, att := newSums(s, vectors), &sums{s: s}, &sums{s: s}
	grad.last, att.last = u.last, u.last
	for range vectors {
		grad.acc = append(grad.acc, s.vec())
		att.acc = append(att.acc, s.vec())
	}
	slope, zero := s.broadcast(floatParam("slope")), s.zero()
	var l edgeLoop
	l.run("own", "values", func() {
		u.load(Mem{Base: l.own})
		grad.clear()
		if withAtt {
			att.load(l.headAt("sum"))
		}
	}, func() {
		positive := s.broadcast(Mem{Base: l.value})
		negative := s.vec()
		VMULPS(slope, positive, negative)
		i := 0
		add := func(m Mem, v reg.VecVirtual) {
			t := u.plus(m, v, i == vectors-1)
			factor := s.choose(s.greater(t, zero), positive, negative)
			VADDPS(factor, grad.acc[i], grad.acc[i])
			if withAtt {
				VFMADD231PS(factor, t, att.acc[i])
			}
			i++
		}
		u.each(l.row, add, add)
	}, func() {
		Label("store")
		if withAtt {
			att.store(l.headAt("sum"))
		}
		delta := loadGP(Param("out"))
		SUBQ(floatParam("own"), delta)
		l.writeScaled(u, grad, Mem{Base: l.own, Index: delta, Scale: 1})
	})
}

// writeScaled writes att times grad to m, or adds it there. It uses the registers of u.
func (l *edgeLoop) writeScaled(u, grad *sums, m Mem) {
	s := u.s
	u.load(l.headAt("att"))
	for i, v := range u.acc {
		VMULPS(grad.acc[i], v, v)
	}
	CMPQ(floatParam("accumulate"), U8(0))
	JEQ(LabelRef("write"))
	grad.load(m)
	for i, v := range u.acc {
		VADDPS(grad.acc[i], v, v)
	}
	Label("write")
	u.each(m, func(m Mem, v reg.VecVirtual) { s.store(v, m) },
		func(m Mem, v reg.VecVirtual) { s.storeMasked(v, u.last, m) })
}
