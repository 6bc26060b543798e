package program

import (
	"gdb/compute/backend"
	"gdb/compute/kernel/bf16"
)

// Cost returns what a program takes on a batch of such sizes, in floating-point operations of a
// matrix product. Only what depends on the order of aggregation and product is counted.
func (p *Program) Cost(s *Sizes) (flops float64) {
	for i := range p.ops {
		flops += p.cost(&p.ops[i], s)
	}
	return flops
}

// OpCost returns the cost of an operation in FLOPs; 0 for operations that no choice of order
// changes.
func (p *Program) OpCost(i int, s *Sizes) float64 { return p.cost(&p.ops[i], s) }

func (p *Program) cost(o *op, s *Sizes) float64 {
	if o.kind.flops == nil {
		return 0
	}
	return o.kind.flops(sized{p, o, s})
}

// KernelBytes returns the scratch memory of the largest operation of a step, besides what
// StepFloats and ListFloats count, for a batch of sizes s and a number of threads. Lists of the
// first hop have longest entries at most.
func (p *Program) KernelBytes(s *Sizes, threads, longest int) int64 {
	var most backend.Taken
	for i := range p.ops {
		o := &p.ops[i]
		most = most.Or(sized{p, o, s}.taken(longest))
	}
	return most.Bytes(threads)
}

// WidenedFloats counts the values of all operands of products that are of bfloat16 beside one of
// float32, on a batch of such sizes.
func (p *Program) WidenedFloats(s *Sizes) (floats int) {
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind.product != noProduct && p.of(o.in[0]).half && !p.of(o.in[1]).half {
			x := p.of(o.in[0])
			floats += s.Of(x.rows) * x.cols
		}
	}
	return floats
}

// taken returns what an operation takes.
func (z sized) taken(longest int) (t backend.Taken) {
	k, out := z.o.kind, z.p.of(z.o.out)
	if half := len(z.o.in) > 0 && z.p.of(z.o.in[0]).half || out.half; !half {
		if k.taken == nil {
			return t
		}
		return k.taken(z, longest)
	}
	switch {
	case k.takenHalf != nil:
		return k.takenHalf(z, longest)
	case k.lists != noLists:
		return backend.Taken{Once: z.lists(), List: bf16.SegmentWords(z.lists(), z.entries(),
			max(z.cols(0), out.cols), out.half)}
	}
	return backend.Taken{Once: bf16.ColumnWords(z.rows(0), z.cols(0)),
		List: bf16.ElementWords(z.cols(0))}
}
