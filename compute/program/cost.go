package program

// Cost is what a program takes on a batch of such sizes, in floating-point operations of a matrix
// product. Only what depends on the order of aggregation and product is counted.
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
