package program

// gatherFlops is what reading one float of a random row costs, in floating-point operations of a
// matrix product: a core gathers about 5 GB/s and multiplies at about 100 GFLOP/s.
const gatherFlops = 80

// Cost is what a program takes on a batch of such sizes, in floating-point operations of a matrix
// product. Only what depends on the order of aggregation and product is counted.
func (p *Program) Cost(s *Sizes) (flops float64) {
	for i := range p.ops {
		flops += p.cost(&p.ops[i], s)
	}
	return flops
}

// OpCost is that of one operation: 0 for what no order depends on.
func (p *Program) OpCost(i int, s *Sizes) float64 { return p.cost(&p.ops[i], s) }

func (p *Program) cost(o *op, s *Sizes) float64 {
	out, rows := p.of(o.out), 0.0
	if len(o.in) > 0 {
		rows = float64(s.Of(p.of(o.in[0]).rows))
	}
	cols := func(i int) float64 { return float64(p.of(o.in[i]).cols) }
	switch o.kind {
	case opMatMul, opMatMulTA:
		return 2 * rows * cols(0) * cols(1)
	case opMatMulTB:
		return 2 * rows * cols(0) * float64(out.cols)
	case opHeadMul, opHeadMulTA:
		return 2 * rows * cols(0) * cols(1) / float64(o.heads)
	case opHeadMulTB:
		return 2 * rows * cols(0) * float64(out.cols) / float64(o.heads)
	case opPullMean, opPullMeanDropped, opPullSum, opPullMeanGrad, opPullSumGrad:
		return gatherFlops * float64(s.Of(Entries(o.list))) * cols(0)
	case opPullWeighted, opEntryDot, opPullWeightedGradX:
		return p.weighedCost(o, s)
	}
	return 0
}

// weighedCost is that of an operation that reads a row for each entry and head: the row is read
// once, and used for each head.
func (p *Program) weighedCost(o *op, s *Sizes) float64 {
	read := float64(p.of(o.in[0]).cols)
	if o.kind == opEntryDot {
		read = float64(p.of(o.in[1]).cols)
	}
	used := read
	if o.shared && o.kind != opPullWeightedGradX {
		used *= float64(o.heads)
	}
	const usedFlops = 16 // a value that is in the first cache
	return float64(s.Of(Entries(o.list))) * (gatherFlops*read + usedFlops*(used-read))
}
