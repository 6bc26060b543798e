package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/compute/program"
	"gdb/train/setting"
)

// nodeEmbeddingMax bounds setting.Options.NodeEmbedding.
const nodeEmbeddingMax = 1 << 16

// headsDefault is the number of attention heads.
const headsDefault = 4

// Validate reports the first option that makes no sense for a model of such widths.
func (s *Spec) Validate() error {
	for _, o := range []struct{ name, value string }{{"aggregate", s.Aggregate}, {"norm", s.Norm},
		{"activation", s.Activation}} {
		if o.value != "" && !slices.Contains(setting.Choices(o.name), o.value) {
			return fmt.Errorf("unknown %s %q: known are %s", o.name, o.value,
				strings.Join(setting.Choices(o.name), ", "))
		}
	}
	if d := s.InputDropout; d != nil && !(*d >= 0 && *d < 1) {
		return fmt.Errorf("input-dropout %g: give a number from 0 to below 1", *d)
	}
	if s.NodeEmbedding < 0 || s.NodeEmbedding > nodeEmbeddingMax {
		return fmt.Errorf("node-embedding %d: give the number of values that are learned for each "+
			"node, 1 to %d, or 0 for none", s.NodeEmbedding, nodeEmbeddingMax)
	}
	if s.Heads < 0 {
		return fmt.Errorf("heads %d: give at least 1", s.Heads)
	}
	if err := errors.Join(s.checkWeights(), s.checkPrecompute()); err != nil {
		return err
	}
	if c, ok := s.Architecture.(interface{ Check(s *Spec) error }); ok {
		if err := c.Check(s); err != nil {
			return err
		}
	}
	if s.LayerWise {
		if err := s.checkLayers(); err != nil {
			return err
		}
	}
	return s.checkDraws()
}

// checkDraws refuses sums over all neighbors where what is drawn does not tell them.
func (s *Spec) checkDraws() error {
	switch {
	case s.DrawnByWeight && s.scales():
		return fmt.Errorf("sample weighted: %s sums over neighbors, and what is drawn by weight "+
			"does not tell the sum over all: --sample uniform, or --model sage", s.Name())
	case s.DrawnLatest && s.scales():
		return fmt.Errorf("sample latest: %s sums over neighbors, and the latest do not tell the "+
			"sum over all: --fanout all for each layer, --sample uniform, or --model sage",
			s.Name())
	}
	return nil
}

// checkLayers refuses layer-wise sampling where what is drawn tells nothing of whole lists.
func (s *Spec) checkLayers() error {
	c, ok := s.Architecture.(interface{ notByLayers() string })
	if !ok {
		return nil
	}
	return fmt.Errorf("sampler layer: %s %s: --sampler neighbor, or --model sage, gcn, gin or sgc",
		s.Name(), c.notByLayers())
}

// softmaxOfSome is why attention is not for neighbors that are drawn by layers.
const softmaxOfSome = "takes a softmax over what is drawn of a list, which does not estimate " +
	"that over the whole list without bias"

// weighs says whether an architecture can have the weights of edges count.
func weighs(a Architecture) bool {
	_, ok := a.(interface{ weighs() })
	return ok
}

// checkWeights refuses weights of edges where they have no meaning.
func (s *Spec) checkWeights() error {
	if !s.EdgeWeight {
		return nil
	}
	var names []string
	for _, a := range architectures {
		if weighs(a) {
			names = append(names, a.Name())
		}
	}
	switch {
	case !weighs(s.Architecture):
		return fmt.Errorf("edge-weight: %s does not use the weights of edges: %s do", s.Name(),
			strings.Join(names, ", "))
	case s.Aggregate == "max":
		return errors.New("edge-weight: the largest of neighbors has no use for weights: " +
			"--aggregate mean or sum")
	}
	return nil
}

// scales says whether sums over what is drawn are scaled to sums over all neighbors.
func (s *Spec) scales() bool {
	var params program.Params
	p := program.Make(&params, s.build, s.options(true, false))
	return p.Reads(program.ListScale)
}

// heads is the number of attention heads.
func (s *Spec) heads() int {
	if s.Heads == 0 {
		return headsDefault
	}
	return s.Heads
}

// checkHeads reports hidden layers that are no multiple of the heads.
func (s *Spec) checkHeads() error {
	for _, d := range s.Dims[1:s.Layers()] {
		if d%s.heads() != 0 {
			return fmt.Errorf("hidden %d: give a multiple of the %d heads (--heads), each of "+
				"which has its part", d, s.heads())
		}
	}
	return nil
}

// reduce is how lists are reduced.
func (s *Spec) reduce(own program.Reduce) program.Reduce {
	switch s.Aggregate {
	case "mean":
		return program.Mean
	case "max":
		return program.Max
	case "sum":
		return program.Sum
	}
	return own
}

// drop drops values of a layer's input out.
func (s *Spec) drop(b *program.Builder, l int, x program.Value) program.Value {
	rate := s.Dropout
	if l == 0 {
		rate = s.InputRate()
	}
	return b.Dropout(x, rate)
}

// InputRate is the share of features that are dropped out.
func (s *Spec) InputRate() float32 {
	if s.InputDropout != nil {
		return float32(*s.InputDropout)
	}
	return s.Dropout
}

// estimates says whether the weights of entries have to count by which sums over what layers have
// of lists estimate those over whole lists.
func (s *Spec) estimates(b *program.Builder) bool { return s.LayerWise && !b.Exact }

// estimate is a sum or mean over whole lists, estimated without bias from what layers have of them:
// the mean is the sum over what the whole list has.
func (s *Spec) estimate(b *program.Builder, x program.Value, r program.Reduce) program.Value {
	y := b.PullWeighted(x, b.EdgeWeights(), b.Lists(), 1, false)
	switch {
	case r == program.Sum:
		return y
	case s.EdgeWeight:
		return b.RowScale(y, b.InvWeightSums())
	}
	return b.RowScale(y, b.InvDegrees())
}

// pull reduces lists, weighted if that is asked for. A sum over some of a list's neighbors is
// scaled to what it is over all of them, as far as can be told: evaluation has them all.
func (s *Spec) pull(b *program.Builder, x program.Value, r program.Reduce) program.Value {
	if s.estimates(b) && r != program.Max {
		return s.estimate(b, x, r)
	}
	y := program.Value(0)
	if s.EdgeWeight && (b.Exact || !s.DrawnByWeight) { // which has weights count already
		y = b.PullWeighted(x, b.EdgeWeights(), b.Lists(), 1, false)
		if r == program.Mean {
			return b.RowScale(y, b.InvListWeights())
		}
	} else {
		y = b.Pull(x, b.Lists(), r)
	}
	if r == program.Sum {
		y = b.RowScale(y, b.ListScale())
	}
	return y
}

// finish ends layer l: y is what it computed without its bias, x its input of the same nodes. own
// is the activation of the architecture.
func (s *Spec) finish(b *program.Builder, l int, x, y program.Value,
	own string) program.Value {
	at := layerName(l)
	y = b.Bias(y, b.Param(at+"bias", 1, b.Cols(y), program.Zero))
	if s.Residual {
		y = b.Add(y, s.shortcut(b, l, x, b.Cols(y)))
	}
	if s.last(l) {
		return y
	}
	y = s.normalize(b, l, y)
	activation := s.Activation
	if activation == "" || activation == "auto" {
		activation = own
	}
	switch activation {
	case "elu":
		return b.ELU(y)
	case "gelu":
		return b.GELU(y)
	}
	return b.ReLU(y)
}

// normalize scales the rows or the columns of y as Norm says: γ·(y-mean)/√(variance+ε) + β, where γ
// and β are learned.
func (s *Spec) normalize(b *program.Builder, l int, y program.Value) program.Value {
	if s.Norm != "layer" && s.Norm != "batch" {
		return y
	}
	at, cols := layerName(l)+"norm ", b.Cols(y)
	scale := b.Param(at+"scale", 1, cols, program.One)
	shift := b.Param(at+"shift", 1, cols, program.Zero)
	if s.Norm == "layer" {
		return b.LayerNorm(y, scale, shift)
	}
	return b.BatchNorm(y, scale, shift, b.Param(at+"statistics", 2, cols, program.Statistics))
}

// shortcut is a layer's input as it is added to its output.
func (s *Spec) shortcut(b *program.Builder, l int, x program.Value, cols int) program.Value {
	if b.Cols(x) == cols {
		return x
	}
	return b.MatMul(x, b.Param(layerName(l)+"residual", b.Cols(x), cols, program.Glorot))
}

// layerName begins the names of a layer's parameters.
func layerName(l int) string { return fmt.Sprintf("layer %d ", l+1) }
