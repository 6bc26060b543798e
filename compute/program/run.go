package program

import (
	"fmt"

	"gdb/compute/backend"
)

// operands are those of an operation, as tensors.
type operands struct {
	out   backend.Tensor
	in    [4]backend.Tensor
	extra [2]backend.Tensor
	acc   bool
}

// prepare finds the operands of an operation, and copies what it works in the place of and is read
// again.
func (m *Machine) prepare(o *op) (t operands) {
	for i, v := range o.in {
		t.in[i] = m.tensor(v)
	}
	for i, v := range o.extra {
		t.extra[i] = m.tensor(v)
	}
	t.out, t.acc = m.tensor(o.out), o.acc != 0
	target := o.acc
	if target == 0 && o.inPlace >= 0 {
		target = o.in[o.inPlace]
	}
	if o.copies {
		m.be.Copy(t.out, m.tensor(target))
	}
	return t
}

// run does an operation.
func (m *Machine) run(o *op) {
	t := m.prepare(o)
	if m.dense(o, &t) || m.element(o, &t) || m.overLists(o, &t) || m.attention(o, &t) {
		return
	}
	panic(fmt.Sprintf("BUG: operation %s is not done by the machine", o.kind))
}

// lastRows are the last n rows of a matrix.
func lastRows(x backend.Tensor, n int) backend.Tensor { return x.Slice(x.Rows-n, n) }

// dense does products, sums and copies.
func (m *Machine) dense(o *op, t *operands) bool {
	x, y, be := t.in[0], t.in[1], m.be
	switch o.kind {
	case opMatMul:
		be.MatMul(lastRows(t.out, x.Rows), x, y, t.acc)
	case opMatMulTA:
		be.MatMulTA(t.out, x, y, t.acc)
	case opMatMulTB:
		be.MatMulTB(lastRows(t.out, x.Rows), x, y, t.acc)
	case opHeadMul:
		be.HeadMul(lastRows(t.out, x.Rows), x, y, o.heads, t.acc)
	case opHeadMulTA:
		be.HeadMulTA(t.out, x, y, o.heads, t.acc)
	case opHeadMulTB:
		be.HeadMulTB(lastRows(t.out, x.Rows), x, y, o.heads, t.acc)
	case opAdd:
		be.Add(lastRows(t.out, y.Rows), y)
	case opColumnSum:
		be.ColumnSum(t.out, x)
	case opHeadMean:
		be.HeadMean(t.out, x, o.heads)
	case opHeadMeanGr:
		be.HeadMeanGrad(t.out, x, o.heads)
	case opColumns:
		be.Columns(t.out, x, o.first)
	case opColumnsGr:
		be.ColumnsGrad(t.out, x, o.first)
	case opScale:
		be.Scale(t.out, o.scalar)
	case opShift:
		be.Shift(t.out, o.scalar)
	case opRowScale:
		be.RowScale(t.out, y)
	case opNarrow:
		m.halves().Narrow(t.out, x)
	case opWiden:
		m.halves().Widen(t.out, x)
	case opEmbed:
		be.Zero(t.out.Slice(0, t.out.Rows-x.Rows))
		be.Copy(lastRows(t.out, x.Rows), x)
	default:
		return false
	}
	return true
}

// element does element-wise operations and norms.
func (m *Machine) element(o *op, t *operands) bool {
	x, y, out, be := t.in[0], t.in[1], t.out, m.be
	if t.out.Half {
		return m.halfElement(o, t)
	}
	switch o.kind {
	case opBias:
		be.Bias(out, y)
		m.dropAfter(o, out)
	case opBiasReLU:
		be.BiasReLU(out, y)
		m.dropAfter(o, out)
	case opReLU:
		be.LeakyReLU(out, 0)
		m.dropAfter(o, out)
	case opReLUGrad:
		be.ReLUGrad(out, y, o.scalar)
	case opELU:
		be.ELU(out)
	case opELUGrad:
		if y.Half {
			m.halves().ELUGradTo(out, out, y, m.dropped(o, out))
			break
		}
		be.ELUGrad(out, y)
	case opGELU:
		be.GELU(out, x)
	case opGELUGrad:
		be.GELUGrad(out, y)
	case opLeakyReLU:
		be.LeakyReLU(out, o.scalar)
	case opLeakyReLUGrad:
		be.LeakyReLUGrad(out, y, o.scalar)
	case opDropout:
		be.Dropout(out, m.firstDropped(o, out), o.scalar, m.key(o.site))
	case opTypeRows:
		be.TypeRows(out, x, y)
	case opTypeRowsGrad:
		be.TypeRowsGrad(out, x, y)
	case opLayerNorm:
		be.LayerNorm(out, x, y, t.in[2], t.extra[0])
	case opLayerNormGrad:
		be.LayerNormGrad(out, t.extra[0], t.extra[1], x, y, t.in[2], t.in[3])
	case opBatchNorm:
		be.BatchNorm(out, x, y, t.in[2], t.extra[0])
		be.TrackNorm(t.in[3], t.extra[0], x.Rows)
	case opBatchNormGrad:
		be.BatchNormGrad(out, t.extra[0], t.extra[1], x, y, t.in[2], t.in[3])
	case opNormApply:
		be.NormApply(out, x, y, t.in[2], t.in[3])
	default:
		return false
	}
	return true
}

// firstDropped is the position of the first value of a matrix that is dropped out.
func (m *Machine) firstDropped(o *op, x backend.Tensor) int {
	first := -m.padding(m.p.of(o.out).rows)
	if o.tail { // the positions are those among all nodes
		first = m.own.Nodes[0] - m.sizes.Nodes[1]
	}
	return first * x.Cols
}

// dropAfter does the dropout that an activation has after it, if any.
func (m *Machine) dropAfter(o *op, x backend.Tensor) {
	if o.rate > 0 {
		m.be.Dropout(x, m.firstDropped(o, x), o.rate, m.key(o.site))
	}
}

// halves is what the backend has of half precision.
func (m *Machine) halves() backend.Halves { return m.be.(backend.Halves) }

// dropped is the dropout of matrix x that an operation has, if any.
func (m *Machine) dropped(o *op, x backend.Tensor) (a backend.Activation) {
	if o.rate > 0 {
		a.Rate, a.First, a.Key = o.rate, m.firstDropped(o, x), m.key(o.site)
	}
	return a
}

// halfElement does an element-wise operation whose result is of bfloat16.
func (m *Machine) halfElement(o *op, t *operands) bool {
	x, a := t.in[0], m.dropped(o, t.out)
	switch o.kind {
	case opReLUGrad:
		m.halves().ReLUGradTo(t.out, x, t.in[1], o.scalar)
		return true
	case opELUGrad:
		m.halves().ELUGradTo(t.out, x, t.in[1], a)
		return true
	case opELU:
		a.Bias, a.ELU = t.in[1], true
	case opBias:
		a.Bias = t.in[1]
	case opBiasReLU:
		a.Bias, a.ReLU = t.in[1], true
	case opReLU:
		a.ReLU = true
	case opDropout:
		a.Rate, a.First, a.Key = o.scalar, m.firstDropped(o, t.out), m.key(o.site)
	default:
		return false
	}
	m.halves().Activate(t.out, x, a)
	return true
}

// fresh is how many rows of a gradient are written for the first time.
func (t *operands) fresh() int {
	if t.acc {
		return 0
	}
	return t.out.Rows
}

// overLists does reductions of lists, and their gradients.
func (m *Machine) overLists(o *op, t *operands) bool {
	if !isList(o.kind) {
		return false
	}
	x, y, out, be, s := t.in[0], t.in[1], t.out, m.be, m.segments(o.list)
	switch o.kind {
	case opPullMean:
		be.SegmentMean(out, x, s)
	case opPullMeanGrad:
		be.SegmentMeanGrad(out, x, s, t.fresh())
	case opPullMeanDropped:
		be.SegmentMeanDropout(out, x, s, o.scalar, m.key(o.site))
	case opPullSum:
		be.SegmentSum(out, x, s)
	case opPullSumGrad:
		be.SegmentSumGrad(out, x, s, t.fresh())
	case opPullMax:
		be.SegmentMax(out, x, t.extra[0], s)
	case opPullMaxGrad:
		be.SegmentMaxGrad(out, x, y, s, t.fresh())
	case opPullWeighted:
		be.WeightedSum(out, x, y, s, o.heads, o.shared, t.acc)
	case opPullWeightedGradX:
		be.WeightedSumGrad(out, x, y, s, o.heads, o.shared, t.fresh())
	case opEntryDot:
		be.EntryDot(out, x, y, s, o.heads, o.shared)
	default:
		return false
	}
	return true
}

// attention does what makes weights of entries, and its gradients.
func (m *Machine) attention(o *op, t *operands) bool {
	x, y, out, be, s := t.in[0], t.in[1], t.out, m.be, m.segments(o.list)
	switch o.kind {
	case opScores:
		be.Scores(out, x, y, s, o.scalar)
	case opScoresGrad:
		be.ScoresGrad(out, y, o.scalar)
	case opEntryToList:
		be.EntryToList(out, x, s)
	case opEntryToRow:
		be.EntryToRow(out, x, s, t.fresh())
	case opScores2:
		be.Scores2(out, x, y, t.in[2], s, o.heads, o.scalar)
	case opScores2GradList:
		be.Scores2GradList(out, t.extra[0], x, y, t.in[2], t.in[3], s, o.heads, o.scalar)
	case opScores2GradRow:
		be.Scores2GradRow(out, x, y, t.in[2], t.in[3], s, o.heads, o.scalar, t.fresh())
	case opSoftmax:
		be.Softmax(out, s)
	case opProduct:
		be.EntryProduct(out, x, y, s)
	case opSoftmaxGrad:
		be.SoftmaxGrad(out, y, s)
	default:
		return false
	}
	return true
}
