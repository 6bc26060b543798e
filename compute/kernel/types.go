package kernel

const (
	// typesPart is how many entries are a part of TypeRows, and at least one of TypeRowsGrad.
	typesPart = 1 << 12
	// typesFloats bounds the partial sums of TypeRowsGrad, and typesParts their number.
	typesFloats, typesParts = 1 << 20, 64
)

// TypeRows is out[e] = table[types[e]] for rows of d values: what each entry has by its type.
func TypeRows(p *Pool, out, table []float32, types []uint32, d int) {
	out = out[:len(types)*d]
	p.Span(len(types), typesPart, func(lo, hi int) {
		refTypeRows(out[lo*d:hi*d], table, types[lo:hi], d)
	})
}

// TypeRowsGrad is its gradient in the table: dtable[t] = the sum of the rows of dout whose type is
// t. Entries are summed up in parts of a size that follows from their number, and these in order.
func TypeRowsGrad(p *Pool, dtable, dout []float32, types []uint32, d int) {
	clear(dtable)
	if len(types) == 0 || len(dtable) == 0 {
		return
	}
	n := len(dtable)
	size := max(typesPart, partsOf(len(types), TypeParts(n)))
	parts := partsOf(len(types), size)
	sums := p.TakeFloats(parts * n)
	p.Span(len(types), size, func(lo, hi int) {
		sum := sums[lo/size*n:][:n]
		clear(sum)
		refTypeRowsGrad(sum, dout[lo*d:hi*d], types[lo:hi], d)
	})
	add := level().add
	for i := range parts {
		add(dtable, sums[i*n:i*n+n])
	}
	p.GiveFloats(sums)
}

// TypeParts is how many partial sums of n values TypeRowsGrad takes at most.
func TypeParts(n int) int { return min(typesParts, max(1, typesFloats/n)) }
