package program

import "gdb/compute/backend"

// KernelBytes is the scratch memory that the operations of a step take one after the other, besides
// what StepFloats and ListFloats count, on a batch of such sizes with so many threads. Lists of the
// first hop have longest entries at most.
func (p *Program) KernelBytes(s *Sizes, threads, longest int) int64 {
	var most backend.Taken
	for i := range p.ops {
		o := &p.ops[i]
		if t, half := p.takenByHalf(o, s, longest); half {
			most = most.Or(t)
			continue
		}
		most = most.Or(p.takenByDense(o, s)).Or(p.takenByLists(o, s, longest))
	}
	return most.Bytes(threads)
}

// WidenedFloats counts the values of all operands of products that are of bfloat16 beside one of
// float32, on a batch of such sizes.
func (p *Program) WidenedFloats(s *Sizes) (floats int) {
	for i := range p.ops {
		if o := &p.ops[i]; isProduct(o.kind) && p.of(o.in[0]).half && !p.of(o.in[1]).half {
			x := p.of(o.in[0])
			floats += s.Of(x.rows) * x.cols
		}
	}
	return floats
}

// takenByDense is what products, sums of columns and norms take.
func (p *Program) takenByDense(o *op, s *Sizes) (t backend.Taken) {
	switch o.kind {
	case opMatMul, opMatMulTB, opHeadMul, opHeadMulTB:
		w, heads := p.of(o.in[1]), max(1, o.heads)
		k, n := s.Of(w.rows), w.cols/heads
		if o.kind == opMatMulTB || o.kind == opHeadMulTB {
			k, n = n, k
		}
		return backend.TakenByMatMul(k, n)
	case opMatMulTA, opHeadMulTA:
		x, y, heads := p.of(o.in[0]), p.of(o.in[1]), max(1, o.heads)
		return backend.TakenByMatMulTA(s.Of(x.rows), x.cols/heads, y.cols/heads, x.cols)
	case opColumnSum:
		x := p.of(o.in[0])
		return backend.TakenByColumnSum(s.Of(x.rows), x.cols)
	case opTypeRowsGrad:
		table := p.of(o.out)
		return backend.TakenByTypeRowsGrad(s.Of(table.rows) * table.cols)
	case opLayerNormGrad:
		x := p.of(o.in[0])
		return backend.TakenByLayerNormGrad(s.Of(x.rows), x.cols)
	}
	return t
}

// takenByHalf is what operations with an operand of bfloat16 take, and whether one is such.
func (p *Program) takenByHalf(o *op, s *Sizes, longest int) (t backend.Taken, half bool) {
	if len(o.in) == 0 || !p.of(o.in[0]).half && !p.of(o.out).half {
		return t, false
	}
	x, out, heads := p.of(o.in[0]), p.of(o.out), max(1, o.heads)
	rows, n := s.Of(x.rows), out.cols/heads
	switch {
	case isProduct(o.kind) && !p.of(o.in[1]).half:
		return backend.TakenByWidened(rows, x.cols/heads, p.of(o.in[1]).cols/heads, heads), true
	case o.kind == opMatMulTA || o.kind == opHeadMulTA:
		return backend.TakenByHalfMatMulTA(rows, x.cols/heads, n, heads), true
	case isProduct(o.kind):
		return backend.TakenByHalfMatMul(x.cols/heads, n, heads, out.half), true
	case isList(o.kind):
		lists, entries := s.Nodes[o.list.Hop+1], s.Of(Entries(o.list))
		if o.kind == opPullMeanDropped {
			return backend.TakenByHalfDropped(longest, lists, entries, out.cols), true
		}
		return backend.TakenByHalfSegments(lists, entries, max(x.cols, out.cols), out.half), true
	}
	return backend.TakenByHalfElements(rows, x.cols), true
}

// takenByLists is what operations over lists take.
func (p *Program) takenByLists(o *op, s *Sizes, longest int) (t backend.Taken) {
	switch o.kind {
	case opPullSumGrad:
		return backend.TakenBySegmentSumGrad(s.Nodes[o.list.Hop+1])
	case opPullMeanDropped:
		return backend.TakenBySegmentMeanDropout(longest, p.of(o.out).cols)
	case opSoftmax:
		return backend.TakenBySoftmax(o.heads)
	case opPullWeightedGradX:
		return backend.TakenByEntryGrad(o.heads, p.of(o.in[0]).cols/o.heads)
	case opScores2GradList:
		return backend.TakenByScores2GradList(p.of(o.out).cols)
	case opScores2GradRow:
		return backend.TakenByEntryGrad(o.heads, p.of(o.out).cols/o.heads)
	}
	return t
}
