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

// headsDefault is the number of attention heads where the option is 0.
const headsDefault = 4

// Validate returns an error for the first option that makes no sense for a model of these widths.
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
	return errors.Join(s.checkDraws(), s.checkEdgeFeatures())
}

// checkEdgeFeatures returns an error for a model that does not read columns of edges.
func (s *Spec) checkEdgeFeatures() error {
	if _, ok := s.Architecture.(interface{ readsEdges() }); ok || len(s.EdgeFeatures) == 0 {
		return nil
	}
	return fmt.Errorf("edge-features: %s reads no columns of edges: sage, hsage and gat do",
		s.Name())
}

// checkDraws returns an error if the model sums over all neighbors and sampling does not allow to
// estimate that sum.
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

// checkLayers returns an error if the architecture cannot estimate what it computes over whole
// lists from what layer-wise sampling draws.
func (s *Spec) checkLayers() error {
	c, ok := s.Architecture.(interface{ notByLayers() string })
	if !ok {
		return nil
	}
	return fmt.Errorf("sampler layer: %s %s: --sampler neighbor, or --model sage, gcn, gin or sgc",
		s.Name(), c.notByLayers())
}

// onHost reports whether devices have no kernels of the architecture's operations, in a store that
// has types of nodes or none.
func (s *Spec) onHost(types bool) bool {
	_, always := s.Architecture.(interface{ onHost() })
	_, typed := s.Architecture.(interface{ typedOnHost() })
	return always || typed && types
}

// softmaxOfSome says why attention cannot use neighbors that are drawn by layers.
const softmaxOfSome = "takes a softmax over what is drawn of a list, which does not estimate " +
	"that over the whole list without bias"

// weighs reports whether an architecture can take the weights of edges into account.
func weighs(a Architecture) bool {
	_, ok := a.(interface{ weighs() })
	return ok
}

// checkWeights returns an error if weights of edges are asked for where they have no meaning.
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

// scales reports whether sums over sampled neighbors are scaled to sums over all neighbors.
func (s *Spec) scales() bool {
	var params program.Params
	p := program.Make(&params, s.build, s.options(true, false))
	return p.Reads(program.ListScale)
}

// heads returns the number of attention heads.
func (s *Spec) heads() int {
	if s.Heads == 0 {
		return headsDefault
	}
	return s.Heads
}

// checkHeads returns an error if the width of a hidden layer is no multiple of the number of heads.
func (s *Spec) checkHeads() error {
	for _, d := range s.Dims[1:s.Layers()] {
		if d%s.heads() != 0 {
			return fmt.Errorf("hidden %d: give a multiple of the %d heads (--heads), each of "+
				"which has its part", d, s.heads())
		}
	}
	return nil
}

// reduce returns how lists are reduced: as the option says, or else as own says.
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

// drop appends dropout of a layer's input.
func (s *Spec) drop(b *program.Builder, l int, x program.Value) program.Value {
	rate := s.Dropout
	if l == 0 {
		rate = s.InputRate()
	}
	return b.Dropout(x, rate)
}

// InputRate returns the share of features that are dropped out.
func (s *Spec) InputRate() float32 {
	if s.InputDropout != nil {
		return float32(*s.InputDropout)
	}
	return s.Dropout
}

// estimates reports whether entries have to be weighted, so that sums over what layer-wise sampling
// draws of lists estimate sums over whole lists.
func (s *Spec) estimates(b *program.Builder) bool { return s.LayerWise && !b.Exact }

// estimate appends a sum or mean over whole lists, estimated without bias from what layers have of
// them. The mean is the sum divided by the size, or the weight, of the whole list.
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

// pull appends a reduction of lists, weighted if that is asked for. A sum over some of a list's
// neighbors is scaled to estimate the sum over all of them; evaluation reads all.
func (s *Spec) pull(b *program.Builder, x program.Value, r program.Reduce) program.Value {
	if s.estimates(b) && r != program.Max {
		return s.estimate(b, x, r)
	}
	y := program.Value(0)
	if s.EdgeWeight && (b.Exact || !s.DrawnByWeight) { // else draws count weights already
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

// finish appends the end of layer l: bias, residual, norm and activation. y is what the layer
// computed, and x the input rows of the same nodes. own is the activation that the architecture
// has by default.
func (s *Spec) finish(b *program.Builder, l int, x, y program.Value,
	own string) program.Value {
	y = s.biased(b, l, y)
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
	case "none":
		return y
	case "elu":
		return b.ELU(y)
	case "gelu":
		return b.GELU(y)
	}
	return b.ReLU(y)
}

// normalize appends a scaling of the rows or the columns of y, as Norm says:
// γ·(y-mean)/√(variance+ε) + β, where γ and β are learned.
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

// shortcut returns a layer's input in the form in which it is added to the output.
func (s *Spec) shortcut(b *program.Builder, l int, x program.Value, cols int) program.Value {
	if b.Cols(x) == cols {
		return x
	}
	return b.MatMul(x, b.Param(layerName(l)+"residual", b.Cols(x), cols, program.Glorot))
}

// layerName returns the prefix of the names of a layer's parameters.
func layerName(l int) string { return fmt.Sprintf("layer %d ", l+1) }
