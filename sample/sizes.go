package sample

// BatchSize is the size of a batch, or of the largest of several.
type BatchSize struct {
	Nodes, Edges int64
	Inner        int64 // nodes that have neighbors
	Seeds        int64
	// NodeBytes and EntryBytes are what the batch keeps for each node and for each neighbor besides
	// their numbers: see Extras. SeedBytes is what it keeps for each seed: its number and labels.
	NodeBytes, EntryBytes, SeedBytes int64
}

// ListBytes returns the heap of a sampled batch: its edges twice, its nodes, and their offsets.
func (b *BatchSize) ListBytes() int64 {
	return (8+b.EntryBytes)*b.Edges + (4+b.NodeBytes)*b.Nodes + 4*b.Inner + b.SeedBytes*b.Seeds
}

// ScratchBytes returns the scratch memory of a sampler, without that of its lists: see Sampler.
// drawing is what drawing one neighbor takes in addition.
func (b *BatchSize) ScratchBytes(drawing int64) int64 {
	return (12+b.EntryBytes+drawing)*b.Edges + 12*b.Inner + 32*b.Nodes
}

// GrowthSixteenths is the capacity of a list that grew to its length, in sixteenths of the length:
// scratch memory and the lists of batches have a quarter to spare.
const GrowthSixteenths = 20

// Batches returns how many batches a pipeline has under way, and how many of them have features.
func (c *PipelineConfig) Batches() (all, gathered int) {
	const gatherer, consumer = 1, 1
	gathered = max(c.Ready, 0) + gatherer + consumer
	if c.InTurn {
		gathered = 1
	}
	return max(c.Workers, 1) + sampledMax + gathered, gathered
}

// NewBuffers returns buffers for the features of the batches of such a pipeline.
func (c *PipelineConfig) NewBuffers() *Buffers {
	_, gathered := c.Batches()
	return NewBuffers(gathered, "features of a batch", c.Budget)
}
