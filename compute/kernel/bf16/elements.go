package bf16

import "gdb/compute/kernel"

// elementsPart is how many values are computed at a time as floats: they stay in the first-level
// cache from when they are read until they are rounded.
const elementsPart = 4 << 10

// Elements writes to out what fn makes of the rows of x(rows,n), for some rows at a time: fn is
// given their values as floats, which it changes, and the number of the first row. out may be x.
func Elements[T Value](p *kernel.Pool, out []Number, x []T, rows, n int,
	fn func(values []float32, row int)) {
	if rows*n == 0 {
		return
	}
	out, x = out[:rows*n], x[:rows*n]
	o, once := level(), max(1, elementsPart/n)
	p.Span(rows, once*max(1, convertPart/(once*n)), func(lo, hi int) {
		buffer := p.TakeFloats(once * n)
		for i := lo; i < hi; i += once {
			end := min(i+once, hi)
			values := buffer[:(end-i)*n]
			load(o, values, x[i*n:end*n])
			fn(values, i)
			o.narrow(out[i*n:end*n], values)
		}
		p.GiveFloats(buffer)
	})
}

// load writes the values of x as floats.
func load[T Value](o *ops, values []float32, x []T) {
	switch x := any(x).(type) {
	case []float32:
		copy(values, x)
	case []Number:
		o.widen(values, x)
	}
}

// gradient has fn make of dy what is written to out, some values at a time: fn is given them and
// those of y, both of which it may change, and the position of the first. out may be dy.
func gradient[T Value](p *kernel.Pool, out []T, dy []float32, y []Number,
	fn func(values, y []float32, at int)) {
	c, o := resultOf(out[:len(y)]), level()
	dy = dy[:len(y)]
	p.Span(len(y), convertPart, func(lo, hi int) {
		buffer := p.TakeFloats(2 * elementsPart)
		for i := lo; i < hi; i += elementsPart {
			end := min(i+elementsPart, hi)
			own, values := buffer[:end-i], buffer[elementsPart:][:end-i]
			o.widen(own, y[i:end])
			if c.floats != nil {
				values = c.floats[i:end]
			}
			copy(values, dy[i:end])
			fn(values, own, i)
			if c.floats == nil {
				o.narrow(c.numbers[i:end], values)
			}
		}
		p.GiveFloats(buffer)
	})
}

// columnRows is how many rows ColumnSum adds up before it adds that to the rest.
const columnRows = 1024

// ColumnWords returns the scratch memory of ColumnSum, in words.
func ColumnWords(rows, n int) int { return partsOf(rows, columnRows) * n }

// ColumnSum writes the sum of the rows of x(rows,n) to out(n).
func ColumnSum(p *kernel.Pool, out []float32, x []Number, rows, n int) {
	out, x = out[:n], x[:rows*n]
	clear(out)
	if rows*n == 0 {
		return
	}
	o, once := level(), max(1, elementsPart/n)
	p.SumParts(rows, columnRows, func(sum []float32, lo, hi int) {
		buffer, own := p.TakeFloats(once*n), kernel.NewPool(1)
		for i := lo; i < hi; i += once {
			values := buffer[:(min(i+once, hi)-i)*n]
			o.widen(values, x[i*n:][:len(values)])
			kernel.ColumnSum(own, sum, values, len(values)/n, n, i > lo)
		}
		p.GiveFloats(buffer)
	}, out)
}

// CopyColumns writes the columns of x(rows,wide) from one on to out(rows,n).
func CopyColumns(p *kernel.Pool, out, x []Number, c kernel.Columns) {
	p.Span(c.Rows, max(1, convertPart/max(1, c.FromWidth)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(out[i*c.Count:(i+1)*c.Count], x[i*c.FromWidth+c.From:][:c.Count])
		}
	})
}

// convertPart is how many values a part of a conversion has: enough that handing it out costs
// nothing.
const convertPart = 64 << 10

// Narrow writes each value of x, rounded, to out: see Of.
func Narrow(p *kernel.Pool, out []Number, x []float32) {
	out = out[:len(x)]
	o := level()
	p.Span(len(x), convertPart, func(lo, hi int) { o.narrow(out[lo:hi], x[lo:hi]) })
}

// Widen writes each value of x to out, exactly.
func Widen(p *kernel.Pool, out []float32, x []Number) {
	out = out[:len(x)]
	o := level()
	p.Span(len(x), convertPart, func(lo, hi int) { o.widen(out[lo:hi], x[lo:hi]) })
}

// Round makes each value of x the nearest Number.
func Round(x []float32) {
	var buffer [elementsPart]Number
	o := level()
	for ; len(x) > 0; x = x[min(elementsPart, len(x)):] {
		part := x[:min(elementsPart, len(x))]
		o.narrow(buffer[:len(part)], part)
		o.widen(part, buffer[:len(part)])
	}
}

// refNarrow and refWiden are the specification, as all of ref.go is.
func refNarrow(out []Number, x []float32) {
	for i, v := range x {
		out[i] = Of(v)
	}
}

func refWiden(out []float32, x []Number) {
	for i, v := range x {
		out[i] = v.Float32()
	}
}
