package model

import (
	"slices"

	"gdb/compute/program"
	"gdb/internal/dense"
	"gdb/sample"
)

// Params returns the number of values that the model learns.
func (s *Spec) Params() int { return s.Layout().Count() }

// Layout returns where each parameter stands in the vector of all of them, without
// allocating that vector.
func (s *Spec) Layout() *program.Params {
	var p program.Params
	program.Make(&p, s.build, s.options(false, false))
	return &p
}

// StepCost is the memory of a training step on a mini-batch.
type StepCost struct {
	// Floats is the scratch that the backend is asked for, without the features, whose rows are
	// reused once they are not needed. Lists is what the lists that the model makes take where the
	// host computes, and Computed what it computes of degrees.
	Floats, Lists, Computed int64
	// KernelBytes is the scratch of kernels.
	KernelBytes int64
	// Block is what is prepared of a batch for a device, in words of 4 bytes.
	Block int64
	// Widened is what a device takes for operands of products that it converts to float32.
	Widened int64
	// Copied is what is sent to a device with memory of its own beside the block, in words of 4
	// bytes: features and labels.
	Copied int64
}

// Growth scales a sampled batch to the size that is planned for: Num/Den times as many nodes and
// entries. For an upper bound, Parts smaller batches make up that size and their costs are added;
// Parts is otherwise 1.
type Growth struct{ Num, Den, Parts int64 }

// StepCost returns the memory that a training step takes. inPlace says that the rows of the first
// layer's neighbors are read where they are kept. Lists have at most longest entries.
func (s *Spec) StepCost(d *dense.Lists, inPlace bool, g Growth, threads, longest int) StepCost {
	made := programs{spec: s, params: &program.Params{}}
	sizes := program.SizesOf(d)
	chosen := made.choose(programKey{train: true, inPlace: inPlace}, &sizes)
	cost := s.stepCost(chosen, &sizes, g, threads, longest)
	if !s.Tune || s.Order != nil {
		return cost
	}
	for order := range uint64(1) << made.get(programKey{train: true}).Places() {
		p := made.ordered(programKey{train: true, inPlace: inPlace}, order)
		other := s.stepCost(p, &sizes, g, threads, longest)
		cost.Floats, cost.Lists = max(cost.Floats, other.Floats), max(cost.Lists, other.Lists)
		cost.Computed = max(cost.Computed, other.Computed)
		cost.KernelBytes = max(cost.KernelBytes, other.KernelBytes)
		cost.Copied = max(cost.Copied, other.Copied)
		cost.Block = max(cost.Block, other.Block)
		cost.Widened = max(cost.Widened, other.Widened)
	}
	return cost
}

// stepCost returns the memory that a step takes with one program.
func (s *Spec) stepCost(p *program.Program, sizes *program.Sizes, g Growth, threads,
	longest int) StepCost {
	features := p.FeatureFloats(sizes.Nodes[0])
	if p.InPlace() {
		features = p.FeatureFloats(sizes.Nodes[1])
	}
	part, whole := grown(sizes, g.Num, g.Den*g.Parts), grown(sizes, g.Num, g.Den)
	return StepCost{
		Floats:      g.Parts * int64(p.StepFloats(&part, features)+p.ListFloats(&part)),
		Lists:       g.Parts * int64(p.HeldWords(&part)),
		Computed:    g.Parts * int64(p.ComputedWords(&part)),
		KernelBytes: p.KernelBytes(&whole, threads, longest),
		Copied:      g.Parts * int64(s.copied(&part)),
		Block:       g.Parts * int64(p.BlockWords(&part)),
		Widened:     g.Parts * int64(p.WidenedFloats(&part)),
	}
}

// copied returns how many words of 4 bytes a device is sent for a batch beside its block: features
// and labels.
func (s *Spec) copied(sizes *program.Sizes) int {
	last := len(sizes.Nodes) - 1
	return sizes.Nodes[0]*s.Dims[0] + sizes.Nodes[last]*s.Dims[len(s.Dims)-1]
}

// grown returns the sizes multiplied by num/den.
func grown(s *program.Sizes, num, den int64) (g program.Sizes) {
	for _, n := range s.Nodes {
		g.Nodes = append(g.Nodes, scaled(n, num, den))
	}
	for _, n := range s.Entries {
		g.Entries = append(g.Entries, scaled(n, num, den))
	}
	for _, n := range s.Segments {
		g.Segments = append(g.Segments, scaled(n, num, den))
	}
	g.Items = scaled(s.Items, num, den)
	return g
}

func scaled(n int, num, den int64) int { return int((int64(n)*num + den - 1) / den) }

// Extras returns what the model reads of a batch besides its nodes and neighbors.
func (s *Spec) Extras() sample.Extras {
	var params program.Params
	p := program.Make(&params, s.build, s.options(true, false))
	reads := func(some ...program.Property) bool { return slices.ContainsFunc(some, p.Reads) }
	x := sample.Extras{
		Degrees:     reads(program.InvSqrtDegree, program.ListScale, program.InvDegree),
		EdgeWeights: reads(program.EdgeWeight, program.InvListWeight),
		EdgeTypes:   reads(program.EdgeType, program.TypeShare, program.SegmentType),
		WeightSums:  reads(program.InvSqrtWeight, program.InvWeightSum),
	}
	if s.LayerWise { // entries have a weight that is not the edge's
		x.EdgeWeights = s.EdgeWeight
	}
	return x
}

// InPlace reports whether the first layer may average features where they are kept. Nothing else
// may read the neighbors' features. Where the layer may transform first, which needs a copy, it
// must be at least half as wide as its input.
func (s *Spec) InPlace() bool {
	p := program.Make(&program.Params{}, s.build, s.options(true, true))
	return p.InPlace() && (s.Dims[0] <= 2*s.Dims[1] || p.Places() == 0)
}
