package program

import (
	"fmt"
	"strings"
)

// kindNames are the names of operations as they are printed.
var kindNames = map[Kind]string{
	opMatMul: "matmul", opMatMulTA: "matmul-ta", opMatMulTB: "matmul-tb", opHeadMul: "headmul",
	opHeadMulTA: "headmul-ta", opHeadMulTB: "headmul-tb", opAdd: "add", opColumnSum: "column-sum",
	opHeadMean: "head-mean", opHeadMeanGr: "head-mean-grad", opScale: "scale", opShift: "shift",
	opColumns: "columns", opColumnsGr: "columns-grad",
	opRowScale: "row-scale", opCopy: "copy", opEmbed: "embed",
	opNarrow: "narrow", opWiden: "widen", opBias: "bias",
	opBiasReLU: "bias-relu", opReLU: "relu", opReLUGrad: "relu-grad", opELU: "elu",
	opELUGrad: "elu-grad", opGELU: "gelu", opGELUGrad: "gelu-grad", opLeakyReLU: "leaky-relu",
	opLeakyReLUGrad: "leaky-relu-grad", opDropout: "dropout", opLayerNorm: "layer-norm",
	opLayerNormGrad: "layer-norm-grad", opBatchNorm: "batch-norm",
	opBatchNormGrad: "batch-norm-grad", opNormApply: "norm-apply",
	opPullMean: "pull-mean", opPullMeanGrad: "push-mean",
	opPullMeanDropped: "pull-mean-dropped", opPullSum: "pull-sum", opPullSumGrad: "push-sum",
	opPullMax: "pull-max", opPullMaxGrad: "push-max", opPullWeighted: "pull-weighted",
	opPullWeightedGradX: "push-weighted", opEntryDot: "entry-dot", opScores: "scores",
	opScoresGrad: "scores-grad", opEntryToList: "entries-to-lists",
	opEntryToRow: "entries-to-rows", opScores2: "scores2", opScores2GradList: "scores2-to-lists",
	opScores2GradRow: "scores2-to-rows", opSoftmax: "softmax", opProduct: "product",
	opSoftmaxGrad: "softmax-grad", opTypeRows: "type-rows", opTypeRowsGrad: "type-rows-grad",
}

// String is what the kind is called.
func (k Kind) String() string { return kindNames[k] }

// String prints the program, one operation a line.
func (p *Program) String() string {
	var b strings.Builder
	for i := range p.ops {
		if i == p.forward {
			fmt.Fprintf(&b, "%s = gradient of the loss at %s\n", p.show(p.seed), p.name(p.logits))
		}
		fmt.Fprintln(&b, p.Op(i))
	}
	return b.String()
}

// Len is the number of operations.
func (p *Program) Len() int { return len(p.ops) }

// Backward says whether operation i is of the backward pass.
func (p *Program) Backward(i int) bool { return i >= p.forward }

// Shape is that of the result of operation i, in a batch of such sizes.
func (p *Program) Shape(i int, s *Sizes) (rows, cols int) {
	v := p.of(p.ops[i].out)
	return s.Of(v.rows), v.cols
}

// Op is a line about operation i.
func (p *Program) Op(i int) string {
	o := &p.ops[i]
	var in []string
	for _, v := range o.in {
		in = append(in, p.name(v))
	}
	sign := "="
	if o.acc != 0 {
		sign = "= " + p.name(o.acc) + " +"
	}
	line := fmt.Sprintf("%s %s %s(%s)", p.show(o.out), sign, o.kind, strings.Join(in, ", "))
	if o.kind == opColumns {
		line += fmt.Sprintf(" from %d", o.first)
	}
	if o.list != (List{}) || isList(o.kind) {
		line += " " + o.list.String()
	}
	if o.rate > 0 {
		line += " dropout"
	}
	if o.copies {
		line += " copying"
	}
	return line
}

// isList says whether a kind reads lists.
func isList(k Kind) bool { return k >= opPullMean && k <= opSoftmaxGrad }

// name is what a value is called, and show adds its shape.
func (p *Program) name(v Value) string {
	x := p.of(v)
	switch {
	case x.role == roleParam:
		return x.name
	case x.role == roleGrad:
		return fmt.Sprintf("d(%s)", p.params.shapes[x.index].name)
	case x.role == roleHost && x.base == 0:
		return propertyNames[x.index]
	case v == p.features:
		return "features"
	case x.role == roleTable:
		return "table"
	case x.base != 0:
		return fmt.Sprintf("%s[%s]", p.name(x.base), x.rows)
	}
	return fmt.Sprintf("%%%d", v)
}

func (p *Program) show(v Value) string {
	x := p.of(v)
	kind := ""
	if x.half {
		kind = " bf16"
	}
	return fmt.Sprintf("%s (%s x %d%s)", p.name(v), x.rows, x.cols, kind)
}
