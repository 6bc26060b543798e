package bf16

import (
	"math"
	"unsafe"

	"gdb/compute/kernel"
)

// Activation is what Activate makes of values, in this order: it adds a row, cuts at zero or takes
// ELU, and drops values out.
type Activation struct {
	Bias []float32 // nil for none
	ReLU bool
	ELU  bool
	// Rate is the share of values that Dropout zeroes, 0 for none; First is the position of the
	// first value, and Key what the draws are a function of.
	Rate  float32
	First int
	Key   uint64
}

// The activations, as assembly tests them: 0 for none.
const (
	actReLU = 1
	actELU  = 2
)

// activateFunc computes an activation of some rows of n values, to bfloat16: it adds bias to each
// unless that is nil, does what act says, and drops values out by a plan, unless that is nil, of
// which the first value has the position first. There are at least one row and one value.
type activateFunc[T float32 | uint16] func(out *uint16, x *T, bias *float32, plan *uint32,
	rows, n int, act uint64, first uint32)

// gradientFunc computes the gradient of an activation whose result was y, of n values, at least
// one, given that of y. ReLU scales what is kept by factor; of ELU, factor makes of y what it was
// before values were dropped out, by a plan as that of activateFunc.
type gradientFunc func(out *uint16, dy *float32, y *uint16, plan *uint32, n int, act uint64,
	first uint32, factor float32)

// act returns the activation as assembly tests it.
func (a *Activation) act() uint64 {
	switch {
	case a.ReLU:
		return actReLU
	case a.ELU:
		return actELU
	}
	return 0
}

// Activate writes an activation of x(rows,n) to out, which may be x.
func Activate[T Value](p *kernel.Pool, out []Number, x []T, rows, n int, a *Activation) {
	o := level()
	if o.activateFloats == nil || a.ReLU && a.Bias == nil {
		Elements(p, out, x, rows, n, func(values []float32, row int) { a.apply(values, row, n) })
		return
	}
	out, x = out[:rows*n], x[:rows*n]
	if len(out) == 0 {
		return
	}
	p.Span(rows, max(1, convertPart/n), func(lo, hi int) {
		activate(out, x, n, lo*n, hi*n, a)
	})
}

// activate computes values from one on to another of rows of n: as many rows at a time as draw by
// the same plan, or what such rows have of one that is cut.
func activate[T Value](out []Number, x []T, n, from, to int, a *Activation) {
	o := level()
	for from < to {
		rows, width, col := (to-from)/n, n, from%n
		d, first, left := plan(a.Rate, a.Key, a.First+from)
		if rows = min(rows, left/n); col > 0 || rows == 0 {
			rows, width = 1, min(n-col, left)
		}
		bias := (*float32)(nil)
		if a.Bias != nil {
			bias = &a.Bias[col]
		}
		end := from + rows*width
		switch x := any(x[from:end]).(type) {
		case []float32:
			o.activateFloats(rowsFrom(out, from), &x[0], bias, d, rows, width, a.act(), first)
		case []Number:
			o.activateHalf(rowsFrom(out, from), rowsFrom(x, 0), bias, d, rows, width, a.act(),
				first)
		}
		from = end
	}
}

// plan returns the plan of the draws from a position on, as assembly takes it, and for how many
// values it holds. Without dropout it is nil and holds for all.
func plan(rate float32, key uint64, position int) (words *uint32, first uint32, left int) {
	if rate == 0 {
		return nil, 0, math.MaxInt
	}
	d := new(kernel.DropoutPlan)
	first, left = kernel.PlanDropout(d, position, rate, key)
	return (*uint32)(unsafe.Pointer(d)), first, left
}

// apply is the specification: it computes rows from one on in place, as floats.
func (a *Activation) apply(values []float32, row, n int) {
	switch rows := len(values) / n; {
	case a.Bias != nil && a.ReLU:
		kernel.BiasReLU(nil, values, a.Bias, rows, n)
	case a.Bias != nil:
		kernel.Bias(nil, values, a.Bias, rows, n)
	case a.ReLU:
		kernel.LeakyReLU(nil, values, 0)
	}
	if a.ELU {
		kernel.ELU(nil, values)
	}
	kernel.Dropout(nil, values, a.First+row*n, a.Rate, a.Key)
}

// ReLUGrad writes to out the gradient of ReLU and then Dropout at such a rate, whose output was y,
// given that of y, dy: see kernel.DropoutReLUGrad. out may be dy.
func ReLUGrad[T Value](p *kernel.Pool, out []T, dy []float32, y []Number, rate float32) {
	scale := 1 / (1 - rate)
	if !activateGrad(p, out, dy, y, scale, &Activation{ReLU: true}) {
		gradient(p, out, dy, y, func(values, y []float32, _ int) {
			kernel.DropoutReLUGrad(nil, values, y, rate)
		})
	}
}

// ELUGrad writes to out the gradient of ELU and then Dropout, whose output was y, given that of y,
// dy: see kernel.ELUGrad. y begins at the position first; a rate of 0 is for no Dropout. out may be
// dy. What was dropped out is found by key: a value that is kept may be zero too.
func ELUGrad[T Value](p *kernel.Pool, out []T, dy []float32, y []Number, drop kernel.Drop) {
	a := Activation{ELU: true, Rate: drop.Rate, First: drop.First, Key: drop.Key}
	if !activateGrad(p, out, dy, y, 1-drop.Rate, &a) {
		gradient(p, out, dy, y, func(values, y []float32, at int) {
			kernel.Scale(nil, y, 1-drop.Rate) // as it was before
			kernel.ELUGrad(nil, values, y)
			kernel.Dropout(nil, values, drop.First+at, drop.Rate, drop.Key)
		})
	}
}

// activateGrad has a kernel compute a gradient, if there is one and the result is of Numbers.
func activateGrad[T Value](p *kernel.Pool, out []T, dy []float32, y []Number, factor float32,
	a *Activation) bool {
	c, o := resultOf(out[:len(y)]), level()
	if c.numbers == nil || o.activateGrad == nil {
		return false
	}
	dy = dy[:len(y)]
	p.Span(len(y), convertPart, func(lo, hi int) {
		for lo < hi {
			d, first, left := plan(a.Rate, a.Key, a.First+lo)
			n := min(hi-lo, left)
			o.activateGrad((*uint16)(&c.numbers[lo]), &dy[lo], (*uint16)(&y[lo]), d, n, a.act(),
				first,
				factor)
			lo += n
		}
	})
	return true
}
