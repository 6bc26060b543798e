package model

import (
	"errors"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/setting"
)

// Chosen is the model that the settings of a node training choose.
type Chosen struct{ *setting.Node }

// Of returns the model that the settings choose.
func Of(c *setting.Node) Chosen { return Chosen{c} }

// Dims returns the widths of the input and of each layer's output, for in features and a
// number of classes.
func (c Chosen) Dims(in, classes int) []int {
	a, err := Find(c.Model)
	if err != nil {
		panic("BUG: settings were not checked: " + err.Error())
	}
	hidden := c.Widths
	if len(hidden) == 0 {
		hidden = slices.Repeat([]int{c.Hidden}, c.Hops()-1)
	}
	if c.Layers() == 1 {
		hidden = nil
	}
	if c.OfEdges() { // a head reads the outputs of both ends
		classes = c.Hidden
	}
	return Widths(a, in, classes, hidden)
}

// Precomputed returns what is computed from the features before the training.
func (c Chosen) Precomputed() Precomputed {
	a, err := Find(c.Model)
	if err != nil { // Validate reports it
		return Precomputed{}
	}
	return PrecomputedOf(a, &c.Options, c.Hops())
}

// Layers returns the number of layers: one for each hop, but layers that only sum are merged into
// one if all of them are precomputed.
func (c Chosen) Layers() int {
	if a := c.Precomputed(); a.Hops > 0 && a.First == a.Hops {
		return c.Hops() - a.Hops + 1
	}
	return c.Hops()
}

// Sampled returns the fanouts, or the sizes of layers, of the hops that batches have. The last hops
// are summed before the training if sums are precomputed, and not sampled.
func (c Chosen) Sampled() (fanout, layers []int) {
	n := c.Hops() - c.Precomputed().Hops
	return c.Fanout[:min(n, len(c.Fanout))], c.LayerSize[:min(n, len(c.LayerSize))]
}

// InPlace reports whether the first layer may average features where they are kept. Dropout copies
// the rows of one list at a time, so lists must be bounded then. A device would read each row over
// the bus as often as lists name it, so it does not read in place.
func (c Chosen) InPlace(dims []int) bool {
	s := c.Spec(dims)
	return c.Backend != setting.BackendCUDA && s.InPlace() &&
		(s.InputRate() == 0 || !slices.Contains(c.Fanout, sample.All))
}

// InPlaceCut reports whether it may where rows are kept in pieces, the widths of types being known.
// Lists must be bounded as with dropout.
func (c Chosen) InPlaceCut(dims []int) bool {
	return len(c.TypeWidths) > 0 && !slices.Contains(c.Fanout, sample.All) && c.InPlace(dims)
}

// InPlaceResident reports whether the first layer does so when all features are in memory. With
// dropout that takes as long as copying, which other cores could do.
func (c Chosen) InPlaceResident(dims []int) bool {
	return c.Spec(dims).InputRate() == 0 && c.InPlace(dims)
}

// Spec returns the specification of the model, for valid settings and the given widths.
func (c Chosen) Spec(dims []int) *Spec {
	a, err := Find(c.Model)
	if err != nil {
		panic("BUG: settings were not checked: " + err.Error())
	}
	return &Spec{Architecture: a, Dims: dims, Dropout: float32(c.Dropout),
		Order: c.Order, Tune: c.Tune, Precomputed: c.Precomputed(),
		DrawnByWeight: c.Sample == setting.SampleWeighted,
		DrawnLatest:   c.Sample == setting.SampleLatest && c.draws(),
		EdgeOutputs:   c.EdgeOutputs(),
		Halo:          c.Halo(),
		LayerWise:     c.Sampler == setting.SamplerLayer,
		Options:       c.Options, Half: c.Half(),
		FuseAttention: c.Backend == setting.BackendCUDA}
}

// draws reports whether some hop samples part of a list.
func (c Chosen) draws() bool {
	fanout, _ := c.Sampled()
	return slices.ContainsFunc(fanout, func(f int) bool { return f != sample.All })
}

// Validate returns an error for the first setting that makes no sense, also for the model, which
// says what would.
func (c Chosen) Validate() error {
	if _, err := Find(c.Model); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if err := c.Node.Validate(); err != nil {
		return err
	}
	if err := c.Spec(c.Dims(c.Precomputed().Parts(), 1)).Validate(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// ResolveEval replaces auto by the mode of evaluation that the model and the times of seeds have:
// exact where whole lists can be computed layer by layer.
func (c Chosen) ResolveEval() {
	if c.EvalMode != "auto" {
		return
	}
	c.EvalMode = "exact"
	if c.Timed() || (&Spec{Options: c.Options}).SampledOnly() {
		c.EvalMode = setting.EvalSampled
	}
}

// FitEdges sets what the model has to know of a store's edges. It returns an error if the model
// needs something of them that they do not have.
func (c Chosen) FitEdges(m *kv.Meta) error {
	spec := c.Spec(c.Dims(c.Precomputed().Parts(), 1))
	c.Relations, c.NodeTypes, c.TypeWidths, c.RelationSources = 0, nil, nil, nil
	reads := spec.Extras()
	switch {
	case reads.EdgeTypes && len(m.EdgeTypes) == 0:
		return errors.New("train: --model " + c.Model + " has a weight matrix for each type of " +
			"edges, and those of this store have no types: ingest with types (--rel-col, or " +
			"triples), or take another model")
	case c.Backend == setting.BackendCUDA && spec.onHost(m.Typed() && len(m.NodeTypes) > 1):
		return errors.New("train: --model " + c.Model + " is computed on the CPU alone so far, " +
			"rgcn where nodes have types: --backend cpu")
	case spec.SampledOnly() && c.EvalMode != setting.EvalSampled:
		return errors.New("train: models that read columns of edges (--edge-features) are " +
			"evaluated on sampled neighbors alone so far: --eval-mode sampled")
	case c.EdgeWeight && !m.Weighted:
		return errors.New("train: --edge-weight: the edges of this store have no weights: ingest " +
			"with weights (--weight-col), or leave the flag out")
	case c.Sample == setting.SampleWeighted && !m.Weighted:
		return errors.New("train: --sample weighted: the edges of this store have no weights: " +
			"ingest with weights (--weight-col), or leave the flag out")
	case c.Sample == setting.SampleLatest && !m.Timestamped:
		return errors.New("train: --sample latest: the edges of this store have no times: " +
			"ingest with times (--time-col), or leave the flag out")
	case c.Timed() && !m.Timestamped:
		return errors.New("train: --time, --task edge: the edges of this store have no times: " +
			"ingest with times (--time-col), or leave the flag out")
	case c.Timed() && reads.WeightSums:
		return errors.New("train: --time: --edge-weight with --model " + c.Model + " divides by " +
			"the sums of weights of whole lists, later edges included: leave one of both out")
	case c.Before != nil && !m.Timestamped:
		return errors.New("train: --before: the edges of this store have no times: ingest with " +
			"times (--time-col), or leave the flag out")
	}
	if reads.EdgeTypes {
		c.Relations = len(m.EdgeTypes)
	}
	if reads.EdgeTypes && m.Typed() {
		c.fitTypes(m)
	}
	c.FitRows(m)
	if err := c.Spec(c.Dims(c.Precomputed().Parts(), 1)).Validate(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// FitRows sets whether sparse rows of a store are read as they are: on the CPU, in float32, by a
// model that multiplies them first. Otherwise they are read with all their zeros.
func (c Chosen) FitRows(m *kv.Meta) {
	c.SparseWords = 0
	if len(m.Features) == 0 || m.Features[0].DType != rowfile.Sparse || c.Half() ||
		c.Backend == setting.BackendCUDA || c.NodeEmbedding > 0 || c.Precompute ||
		c.Normalize == setting.NormalizeColumns {
		return
	}
	c.SparseWords = m.Features[0].RowBytes / 4
	if !c.Spec(c.Dims(c.Inputs(m), 1)).TakesSparse() {
		c.SparseWords = 0
	}
}

// fitTypes sets what the model has to know of the types of a typed store.
func (c Chosen) fitTypes(m *kv.Meta) {
	c.NodeTypes = make([]int, len(m.NodeTypes))
	c.PlaceTypes(m)
	if len(m.Features) > 0 {
		for _, s := range m.Features[0].Sections {
			c.TypeWidths = append(c.TypeWidths, s.Dim)
		}
	}
	for _, r := range m.Relations {
		c.RelationSources = append(c.RelationSources, r.Src)
	}
}

// PlaceTypes sets where the types of nodes begin that the model knows of: a store that nodes were
// added to has some of them elsewhere than when the run began.
func (c Chosen) PlaceTypes(m *kv.Meta) {
	for i := range min(len(c.NodeTypes), len(m.NodeTypes)) {
		c.NodeTypes[i] = int(m.NodeTypes[i].First)
	}
}

// Unused names what a store has and a run does not read.
func (c Chosen) Unused(m *kv.Meta) (names []string) {
	spec := c.Spec(c.Dims(c.Precomputed().Parts(), 1))
	reads := spec.Extras()
	if m.Weighted && !c.EdgeWeight && !slices.Contains(c.EdgeFeatures, loader.EdgeWeight) &&
		c.Sample != setting.SampleWeighted && !c.OfEdges() {
		names = append(names, "edge weights")
	}
	if m.Timestamped && c.Sample != setting.SampleLatest && c.Before == nil &&
		!c.Timed() {
		names = append(names, "edge times")
	}
	if len(m.EdgeTypes) > 1 && !reads.EdgeTypes {
		names = append(names, "edge types")
	}
	if m.Typed() && len(m.NodeTypes) > 1 && !spec.typed() {
		names = append(names, "types of nodes (columns of different types are read as if they "+
			"were the same; --model hsage tells them apart)")
	}
	if len(m.Features) > 0 && m.Features[0].DType == rowfile.Sparse && c.SparseWords == 0 {
		names = append(names, "that features are sparse (they are read with all their zeros; "+
			"sage, gcn, gin, gat, gatv2, rgcn and mlp read them as they are, in float32 on the "+
			"CPU, without --normalize zscore)")
	}
	for _, f := range m.Features[min(1, len(m.Features)):] {
		names = append(names, "features "+f.Name)
	}
	return names
}
