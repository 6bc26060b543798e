package main

import (
	"fmt"
	"math"
)

// rowsMost is how many vectors of a row kernels take at once: 256 bytes.
const rowsMost = 16

// segment writes the sums of rows: one kernel for each number of vectors, whose sums stay in
// registers.
func segment() (all []*function) {
	for _, write := range []func(vectors int) *function{segmentSum, weightedSum, columnSum} {
		for vectors := 1; vectors <= rowsMost; vectors++ {
			all = append(all, write(vectors))
		}
	}
	return all
}

// newRows begins a kernel over rows of some vectors.
func newRows(name string, vectors int, signature, doc string) *rowSet {
	f := newFunction(fmt.Sprintf("%sNEON_%d", name, vectors), signature, doc)
	return &rowSet{function: f, acc: f.vector(vectors), last: f.load("lanes")}
}

// fetched says which rows are asked for before their turn: bytes of each at x, as many rows ahead
// as in the kernels for amd64, whose generator says why. Narrower rows are not asked for.
type fetched struct {
	x, stride  gp
	bytes      int
	rows       int // ahead; 0: none are asked for
	last, next gp
}

const (
	fetchedLeast              = 256
	fetchedAhead, fetchedRows = 6144, 12
)

// begin finds the last entry of all segments.
func (f *fetched) begin(u *rowSet, off, idx, segments gp) {
	if f.bytes < fetchedLeast {
		return
	}
	f.rows = min(fetchedAhead/f.bytes, fetchedRows)
	f.last, f.next = u.gp(), u.gp()
	u.op("MOVWU (%s)(%s<<2), %s", off, segments, f.last)
	u.op("ADD %s<<2, %s, %s", f.last, idx, f.last)
	u.op("SUB $4, %s", f.last)
}

// row asks for the row that comes rows later than the one at p. It comes to the second-level cache.
func (f *fetched) row(u *rowSet, p gp) {
	if f.rows == 0 {
		return
	}
	u.op("ADD $%d, %s, %s", 4*f.rows, p, f.next)
	u.op("CMP %s, %s", f.last, f.next)
	u.op("CSEL HI, %s, %s, %s", f.last, f.next, f.next)
	u.op("MOVWU (%s), %s", f.next, f.next)
	u.op("MADD %s, %s, %s, %s", f.stride, f.x, f.next, f.next)
	for at := 0; at < f.bytes; at += lineBytes {
		u.op("PRFM %d(%s), PLDL2KEEP", at, f.next)
	}
}

// segmentLoop is the loop over segments: each begins and ends as off says, and entry handles one
// row, whose number is in r and whose address is in at. A segment without rows goes on at the label
// store, which end marks.
type segmentLoop struct {
	fetch fetched
	begin func(p, count gp)
	entry func(r, at gp)
	end   func(count gp, store string)
}

func (l segmentLoop) write(u *rowSet) {
	off, idx, segments := u.load("off"), u.load("idx"), u.load("segments")
	l.fetch.begin(u, off, idx, segments)
	p, count, left, r, at := u.gp(), u.gp(), u.gp(), u.gp(), u.gp()
	again, row, store := u.label(), u.label(), u.label()
	u.mark(again)
	u.op("MOVWU (%s), %s", off, p)
	u.op("MOVWU 4(%s), %s", off, count)
	u.op("SUB %s, %s", p, count)
	u.op("ADD %s<<2, %s, %s", p, idx, p)
	u.scope(func() { l.begin(p, count) })
	u.op("MOVD %s, %s", count, left)
	u.op("CBZ %s, %s", count, store)
	u.mark(row)
	l.fetch.row(u, p)
	u.op("MOVWU.P 4(%s), %s", p, r)
	u.op("MADD %s, %s, %s, %s", l.fetch.stride, l.fetch.x, r, at)
	u.scope(func() { l.entry(r, at) })
	u.op("SUBS $1, %s", left)
	u.op("BNE %s", row)
	u.scope(func() { l.end(count, store) })
	u.op("ADD $4, %s", off)
	u.op("SUBS $1, %s", segments)
	u.op("BNE %s", again)
}

func segmentSum(vectors int) *function {
	u := newRows("segmentSum", vectors, "func(out, x *float32, off, idx *uint32, segments int, "+
		"stride uintptr, lanes int, mean uint64)",
		fmt.Sprintf("sums rows of %d vectors: see segmentFunc.", vectors))
	out, x, stride, mean := u.load("out"), u.load("x"), u.load("stride"), u.load("mean")
	segmentLoop{fetched{x: x, stride: stride, bytes: vectors * vectorBytes},
		func(_, _ gp) { u.clearAll() },
		func(_, at gp) { u.each(at, func(i int, v vec) { u.add(u.acc[i], u.acc[i], v) }) },
		func(count gp, store string) {
			u.op("CBZ %s, %s", mean, store)
			factor, length := u.vec(), u.vec()
			u.op("SCVTFS %s, %s", count, length.scalar())
			u.op("FMOVS $1.0, %s", factor.scalar())
			u.op("FDIVS %s, %s, %s", length.scalar(), factor.scalar(), factor.scalar())
			u.op("VDUP %s.S[0], %s.S4", factor, factor)
			for _, v := range u.acc {
				u.mul(v, v, factor)
			}
			u.mark(store)
			u.store(out)
			u.op("ADD %s, %s", stride, out)
		}}.write(u)
	return u.function
}

func weightedSum(vectors int) *function {
	u := newRows("weightedSum", vectors, "func(out, x, weight *float32, off, idx *uint32, "+
		"segments int, stride uintptr, lanes int, accumulate uint64)",
		fmt.Sprintf("adds weighted rows of %d vectors: see weightedFunc.", vectors))
	out, x, weight := u.load("out"), u.load("x"), u.load("weight")
	stride, accumulate := u.load("stride"), u.load("accumulate")
	segmentLoop{fetched{x: x, stride: stride}, func(_, _ gp) { u.begin(out, accumulate) },
		func(r, at gp) {
			w := u.vec()
			u.op("FMOVS (%s)(%s<<2), %s", weight, r, w.scalar())
			u.each(at, func(i int, v vec) { u.addTimesLane(u.acc[i], v, w, 0) })
		},
		func(_ gp, store string) {
			u.mark(store)
			u.store(out)
			u.op("ADD %s, %s", stride, out)
		}}.write(u)
	return u.function
}

func columnSum(vectors int) *function {
	u := newRows("columnSum", vectors, "func(out, x *float32, rows int, stride uintptr, lanes int)",
		fmt.Sprintf("sums rows of %d vectors that follow one another: see columnFunc.", vectors))
	out, x, rows, stride := u.load("out"), u.load("x"), u.load("rows"), u.load("stride")
	row := u.label()
	u.clearAll()
	u.mark(row)
	u.each(x, func(i int, v vec) { u.add(u.acc[i], u.acc[i], v) })
	u.op("ADD %s, %s", stride, x)
	u.op("SUBS $1, %s", rows)
	u.op("BNE %s", row)
	u.store(out)
	return u.function
}

// maxMost is how many vectors of largest values and of their rows fit in registers.
const maxMost = 12

// maxima writes the largest values of rows, and their gradients.
func maxima() (all []*function) {
	for vectors := 1; vectors <= maxMost; vectors++ {
		all = append(all, segmentMax(vectors))
	}
	for vectors := 1; vectors <= rowsMost; vectors++ {
		all = append(all, segmentMaxGrad(vectors))
	}
	return all
}

// segmentMax keeps the largest values, and the numbers of their rows, in registers.
func segmentMax(vectors int) *function {
	u := newRows("segmentMax", vectors, "func(out, x *float32, arg, off, idx *uint32, "+
		"segments int, stride, argStride uintptr, lanes int)",
		fmt.Sprintf("finds the largest values of rows of %d vectors: see maxFunc.", vectors))
	arg := u.more()
	out, to, x := u.load("out"), u.load("arg"), u.load("x")
	stride, argStride := u.load("stride"), u.load("argStride")
	segmentLoop{fetched{x: x, stride: stride, bytes: vectors * vectorBytes},
		func(p, count gp) { beginMax(u, arg, p, count) },
		func(r, at gp) {
			number := u.vec()
			u.op("VDUP %s, %s.S4", r, number)
			u.each(at, func(i int, v vec) { u.takeLarger(v, number, u.acc[i], arg.acc[i]) })
		},
		func(_ gp, store string) {
			u.mark(store)
			u.store(out)
			arg.store(to)
			u.op("ADD %s, %s", stride, out)
			u.op("ADD %s, %s", argStride, to)
		}}.write(u)
	return u.function
}

// beginMax has largest values begin below all, and their rows with the first of the list at p: or
// with zero and no row, of a list of no entries.
func beginMax(u, arg *rowSet, p, count gp) {
	begun := u.label()
	for i, v := range u.acc {
		u.clear(v)
		u.op("VCMEQ %s.S4, %s.S4, %s.S4", v, v, arg.acc[i])
	}
	u.op("CBZ %s, %s", count, begun)
	u.op("MOVD $0x%x, %s", math.Float32bits(float32(math.Inf(-1))), scratch)
	for i, v := range u.acc {
		u.op("VDUP %s, %s.S4", scratch, v)
		u.op("VLD1R (%s), [%s.S4]", p, arg.acc[i])
	}
	u.mark(begun)
}

// takeLarger replaces best by v, and its number, where v is not at most best, unless best is NaN.
func (u *rowSet) takeLarger(v, number, best, arg vec) {
	kept, takes := u.vec(), u.vec()
	u.binary("fcmge", kept, best, v)
	u.binary("fcmeq", takes, best, best)
	u.andNot(takes, takes, kept)
	u.op("VBIT %s.B16, %s.B16, %s.B16", takes, v, best)
	u.op("VBIT %s.B16, %s.B16, %s.B16", takes, number, arg)
}

// segmentMaxGrad adds rows in the columns in which a row has the largest value.
func segmentMaxGrad(vectors int) *function {
	u := newRows("segmentMaxGrad", vectors, "func(out, x *float32, arg, off, idx *uint32, "+
		"segments int, stride uintptr, lanes int, first uint32, accumulate uint64)",
		fmt.Sprintf("adds rows of %d vectors in some columns: see maxGradFunc.", vectors))
	out, x, arg := u.load("out"), u.load("x"), u.load("arg")
	stride, first, accumulate := u.load("stride"), u.load("first"), u.load("accumulate")
	last, numbers, number := u.gp(), u.gp(), u.vec()
	segmentLoop{fetched{x: x, stride: stride},
		func(_, _ gp) {
			u.begin(out, accumulate)
			u.op("VDUP %s, %s.S4", first, number)
			u.op("ADD $1, %s", first)
			u.op("MOVD $-1, %s", last)
		},
		func(r, at gp) {
			same := u.label()
			u.op("CMP %s, %s", r, last) // a segment that names the row twice
			u.op("BEQ %s", same)
			u.op("MOVD %s, %s", r, last)
			u.op("MADD %s, %s, %s, %s", stride, arg, r, numbers)
			u.each(at, func(i int, v vec) {
				here := u.vec()
				u.read(i, here, numbers)
				u.op("VCMEQ %s.S4, %s.S4, %s.S4", number, here, here)
				u.and(v, v, here)
				u.add(u.acc[i], u.acc[i], v)
			})
			u.mark(same)
		},
		func(_ gp, store string) {
			u.mark(store)
			u.store(out)
			u.op("ADD %s, %s", stride, out)
		}}.write(u)
	return u.function
}
