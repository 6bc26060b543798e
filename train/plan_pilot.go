package train

import (
	"context"

	"gdb/layout"
	"gdb/sample"
)

// pilotBatches are sampled before the memory is split, to know how large batches are.
const pilotBatches = 4

// pilot samples the first batches and returns the largest.
func (in *inputs) pilot(ctx context.Context, c *Config, train []sample.NodeID) (*sample.Dense,
	error) {
	s, err := sample.NewSampler([]layout.Topology{in.topology},
		sample.Config{Fanout: c.Fanout, Seed: c.Seed, Budget: in.budget})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	order, err := sample.EpochOrder(train, c.Seed, 0, c.Batch)
	if err != nil {
		return nil, err
	}
	var largest *sample.Dense
	for i := range min(order.Batches(), pilotBatches) {
		d := &sample.Dense{}
		if err := s.Sample(ctx, 0, i, order.Seeds(i, nil), d); err != nil {
			return nil, err
		}
		if largest == nil || len(d.NodeIDs) > len(largest.NodeIDs) {
			largest = d
		}
	}
	return largest, nil
}
