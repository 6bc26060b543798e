package main

import "fmt"

// edge writes the sums and products of rows with a weight for each entry and head.
func edge() (all []*function) {
	for vectors := 1; vectors <= rowsMost; vectors++ {
		all = append(all, edgeSum(vectors))
	}
	for vectors := 1; vectors <= rowsMost; vectors++ {
		all = append(all, edgeDot(vectors))
	}
	return all
}

// scoreMost is how many vectors of a row, of its gradients and of attention fit in registers.
const scoreMost = 8

// score writes the scores of GATv2 and their gradients.
func score() (all []*function) {
	for _, write := range []func(vectors int) *function{edgeScore,
		func(vectors int) *function { return edgeScoreGrad(vectors, true) },
		func(vectors int) *function { return edgeScoreGrad(vectors, false) }} {
		for vectors := 1; vectors <= scoreMost; vectors++ {
			all = append(all, write(vectors))
		}
	}
	return all
}

// edgeParams are the parameters of all kernels of this file, after the pointers to the rows.
const edgeParams = "off, idx *uint32, lists, heads int, xRow, xHead, ownHead uintptr, lanes int, " +
	"accumulate uint64"

// edgeRows begins the kernel for a number of vectors. pointers are its first parameters.
func edgeRows(name string, vectors int, pointers, doc string) *rowSet {
	return newRows(name, vectors, "func("+pointers+", "+edgeParams+")",
		fmt.Sprintf("works on rows of %d vectors. It %s: see edgeFunc.", vectors, doc))
}

// scoreRows begins a kernel that has att too.
func scoreRows(name string, vectors int, doc string) *rowSet {
	return newRows(name, vectors, "func(own, x, values *float32, "+edgeParams+
		", att, out, sum *float32, slope float32)",
		fmt.Sprintf("works on rows of %d vectors. It %s: see scoreFunc.", vectors, doc))
}

// edgeLoop is the loop over lists, heads and entries. begin and end are called for each list and
// head, entry for each entry, with the address of its row at the head. A list without entries goes
// on from begin at the label store, which end marks.
type edgeLoop struct {
	own   gp // the list's own row at the head: to write, or to multiply with
	value gp // where the edge value of the entry is
	// perHead are pointers into rows that all lists have, and perList into rows of the lists, by
	// parameter: they move from head to head, and perHead back for each list.
	perHead, perList map[string]gp

	begin func()
	entry func(row gp)
	end   func(store string)
}

// newEdgeLoop loads the pointers to rows and edge values, which the parameters name.
func newEdgeLoop(u *rowSet, own, value string) *edgeLoop {
	return &edgeLoop{own: u.load(own), value: u.load(value), perHead: map[string]gp{},
		perList: map[string]gp{}}
}

// write writes the loop.
func (l *edgeLoop) write(u *rowSet) {
	off, xRow, heads := u.load("off"), u.load("xRow"), u.load("heads")
	ownHead, xHead, lists := u.load("ownHead"), u.load("xHead"), u.load("lists")
	list, end, left, values := u.gp(), u.gp(), u.gp(), u.gp()
	x, next, row := u.gp(), u.gp(), u.gp()
	again, head, entry, store := u.label(), u.label(), u.label(), u.label()
	u.op("MOVD %s, %s", l.value, values)
	u.mark(again)
	u.reload("idx", scratch)
	u.op("MOVWU (%s), %s", off, list)
	u.op("MOVWU.W 4(%s), %s", off, end)
	u.op("ADD %s<<2, %s, %s", list, scratch, list)
	u.op("ADD %s<<2, %s, %s", end, scratch, end)
	u.reload("x", x)
	for _, name := range []string{"att", "sum"} {
		if p, has := l.perHead[name]; has {
			u.reload(name, p)
		}
	}
	u.op("MOVD %s, %s", heads, left)
	u.mark(head)
	u.op("MOVD %s, %s", list, next)
	u.op("MOVD %s, %s", values, l.value)
	u.scope(l.begin)
	u.op("CMP %s, %s", end, next)
	u.op("BEQ %s", store)
	u.mark(entry)
	u.op("MOVWU.P 4(%s), %s", next, row)
	u.op("MADD %s, %s, %s, %s", xRow, x, row, row)
	u.scope(func() { l.entry(row) })
	u.op("ADD %s<<2, %s, %s", heads, l.value, l.value)
	u.op("CMP %s, %s", end, next)
	u.op("BNE %s", entry)
	u.scope(func() { l.end(store) })
	l.nextHead(u, ownHead)
	u.op("ADD %s, %s", xHead, x)
	u.op("ADD $4, %s", values)
	u.op("SUBS $1, %s", left)
	u.op("BNE %s", head)
	// values is behind the values of the first entry now: those of the next list begin as many
	// entries later as the list has, less one.
	u.op("SUB %s, %s", list, end)
	u.op("SUB $4, %s", end)
	u.op("MADD %s, %s, %s, %s", heads, values, end, values)
	u.op("SUBS $1, %s", lists)
	u.op("BNE %s", again)
}

// nextHead moves the pointers to the next head.
func (l *edgeLoop) nextHead(u *rowSet, ownHead gp) {
	u.op("ADD %s, %s", ownHead, l.own)
	for _, name := range []string{"att", "sum"} {
		if p, has := l.perHead[name]; has {
			u.op("ADD %s, %s", ownHead, p)
		}
	}
	if p, has := l.perList["out"]; has {
		u.op("ADD %s, %s", ownHead, p)
	}
}

func edgeSum(vectors int) *function {
	u := edgeRows("edgeSum", vectors, "out, x, weight *float32", "adds weighted rows")
	accumulate := u.load("accumulate")
	l := newEdgeLoop(u, "out", "weight")
	l.begin = func() { u.begin(l.own, accumulate) }
	l.entry = func(row gp) {
		w := u.vec()
		u.op("FMOVS (%s), %s", l.value, w.scalar())
		u.each(row, func(i int, v vec) { u.addTimesLane(u.acc[i], v, w, 0) })
	}
	l.end = func(store string) {
		u.mark(store)
		u.store(l.own)
	}
	l.write(u)
	return u.function
}

// edgeDot multiplies a list's own row with those of its entries. Four sums at most run beside each
// other.
func edgeDot(vectors int) *function {
	u := edgeRows("edgeDot", vectors, "own, x, dw *float32", "multiplies rows")
	accumulate, acc := u.load("accumulate"), u.vector(min(vectors, 4))
	l := newEdgeLoop(u, "own", "dw")
	l.begin = func() { u.loadAll(l.own) }
	l.entry = func(row gp) {
		u.each(row, func(i int, v vec) { u.addProduct(acc, i, v, u.acc[i]) })
		u.storeDot(acc, l.value, accumulate)
	}
	l.end = u.mark
	l.write(u)
	return u.function
}

// addProduct adds a product to one of some sums by turns, of which the first ones begin with it.
func (u *rowSet) addProduct(acc []vec, i int, a, b vec) {
	if i < len(acc) {
		u.mul(acc[i], a, b)
	} else {
		u.addTimes(acc[i%len(acc)], a, b)
	}
}

// storeDot adds up all lanes of some sums and writes the total to the address p, or adds it there.
func (u *rowSet) storeDot(acc []vec, p, accumulate gp) {
	for ; len(acc) > 1; acc = acc[:(len(acc)+1)/2] {
		half := (len(acc) + 1) / 2
		for i := half; i < len(acc); i++ {
			u.add(acc[i-half], acc[i-half], acc[i])
		}
	}
	write, old := u.label(), u.vec()
	u.foldSum(acc[0])
	u.op("CBZ %s, %s", accumulate, write)
	u.op("FMOVS (%s), %s", p, old.scalar())
	u.op("FADDS %s, %s, %s", old.scalar(), acc[0].scalar(), acc[0].scalar())
	u.mark(write)
	u.op("FMOVS %s, (%s)", acc[0].scalar(), p)
}

// edgeScore writes the products of att with leaky sums of a list's own row and those of its
// entries.
func edgeScore(vectors int) *function {
	u := scoreRows("edgeScore", vectors, "scores sums of rows")
	att, acc, accumulate := u.more(), u.vector(min(vectors, 2)), u.load("accumulate")
	slope := u.param("slope")
	l := newEdgeLoop(u, "own", "values")
	l.perHead["att"] = u.gp()
	l.begin = func() {
		u.loadAll(l.own)
		att.loadAll(l.perHead["att"])
	}
	l.entry = func(row gp) {
		u.each(row, func(i int, v vec) {
			less := u.vec()
			u.add(v, v, u.acc[i])
			u.mul(less, v, slope)
			u.addProduct(acc, i, u.choose(u.positive(v), v, less), att.acc[i])
		})
		u.storeDot(acc, l.value, accumulate)
	}
	l.end = u.mark
	l.write(u)
	return u.function
}

// edgeScoreGrad writes the gradient of edgeScore in a list's own row, and adds that in att to sum.
func edgeScoreGrad(vectors int, withAtt bool) *function {
	name, doc := "edgeScoreOwnGrad", "writes the gradient of scores in own"
	if withAtt {
		name, doc = "edgeScoreGrad", "writes the gradients of scores in own and att"
	}
	u := scoreRows(name, vectors, doc)
	grad, slope, accumulate := u.more(), u.param("slope"), u.load("accumulate")
	l := newEdgeLoop(u, "own", "values")
	l.perHead["att"], l.perList["out"] = u.gp(), u.load("out")
	var att *rowSet
	if withAtt {
		att, l.perHead["sum"] = u.more(), u.gp()
	}
	l.begin = func() {
		u.loadAll(l.own)
		grad.clearAll()
		if withAtt {
			att.loadAll(l.perHead["sum"])
		}
	}
	l.entry = func(row gp) {
		yes, no := u.vec(), u.vec()
		u.op("VLD1R (%s), [%s.S4]", l.value, yes)
		u.mul(no, yes, slope)
		u.each(row, func(i int, v vec) {
			u.add(v, v, u.acc[i])
			factor := u.choose(u.positive(v), yes, no)
			u.add(grad.acc[i], grad.acc[i], factor)
			if withAtt {
				u.addTimes(att.acc[i], factor, v)
			}
		})
	}
	l.end = func(store string) {
		u.mark(store)
		if withAtt {
			att.store(l.perHead["sum"])
		}
		u.storeScaled(grad, l.perHead["att"], l.perList["out"], accumulate)
	}
	l.write(u)
	return u.function
}

// storeScaled writes the row at att times grad to out, or adds it there. It uses the registers of
// u.
func (u *rowSet) storeScaled(grad *rowSet, att, out, accumulate gp) {
	write := u.label()
	u.loadAll(att)
	for i, v := range u.acc {
		u.mul(v, v, grad.acc[i])
	}
	u.op("CBZ %s, %s", accumulate, write)
	grad.loadAll(out)
	for i, v := range u.acc {
		u.add(v, v, grad.acc[i])
	}
	u.mark(write)
	u.store(out)
}
