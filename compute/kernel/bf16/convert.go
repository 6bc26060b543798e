package bf16

import "gdb/compute/kernel"

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
