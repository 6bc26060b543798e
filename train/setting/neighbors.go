package setting

import "gdb/sample"

// Neighbors is how batches of a training of nodes are sampled.
type Neighbors struct {
	// Fanout is the number of neighbors drawn at each hop, the first next to the seeds, and by
	// its length the number of layers; sample.All takes whole lists.
	Fanout []int `json:"fanout"`
	// FanoutBy has the fanouts of each hop by relation, where they are given so: Fanout then has
	// the largest of each.
	FanoutBy []sample.RelationFanout `json:"fanout_by,omitempty"`
	// Sampler is SamplerNeighbor, or SamplerLayer, which draws the neighbors of all nodes of a hop
	// together, about LayerSize of them at each: this takes the place of Fanout, which is nil then.
	Sampler   string `json:"sampler,omitempty"`
	LayerSize []int  `json:"layer_size,omitempty"`
	// Sample is how they are drawn: SampleUniform, SampleWeighted, by the weights of edges, or
	// SampleLatest, those of the latest edges.
	Sample string `json:"sample"`
	// Before has only the edges count whose time is below it, in sampling, evaluation and degrees;
	// nil is all.
	Before *int64 `json:"before,omitempty"`
}

var neighborRows = []*Row{
	{Name: "fanout", Fields: []string{"fanout_by"}, For: OfBoth, Type: fanout, Default: "10,10",
		LinkDefault: "20", InPlan: PlanValue, Group: GroupInputs, Needs: needsEncoder,
		Help: "neighbors per hop, the first next to the seeds; all for every one; of typed " +
			"stores by relation too: buys=10,rev_buys=5;5"},
	{Name: "sampler", For: OfNodes, Default: SamplerNeighbor, Unset: SamplerNeighbor,
		Choices: []string{SamplerNeighbor, SamplerLayer}, Group: GroupInputs,
		Help: "neighbor or layer: draw the neighbors of each node apart, or those of a whole hop " +
			"together"},
	{Name: "layer-size", For: OfNodes, InPlan: PlanValue, Group: GroupInputs,
		Help: "nodes drawn per hop by --sampler layer, in the place of --fanout: 512,512"},
	{Name: "sample", For: OfNodes, Default: SampleUniform, Unset: SampleUniform,
		Choices: []string{SampleUniform, SampleWeighted, SampleLatest}, InPlan: PlanValue,
		Group: GroupInputs, Help: "how neighbors are drawn: uniform, weighted (by the weights of " +
			"edges) or latest (those of the latest edges)"},
	{Name: "before", For: OfNodes, Type: optionalTime, InPlan: PlanValue, Group: GroupInputs,
		Help: "have only edges before this time count, in evaluation too: seconds since 1970, or " +
			"a date and time such as 2024-05-31 or 2024-05-31T12:00:00Z"},
}
