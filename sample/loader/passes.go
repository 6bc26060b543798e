package loader

import (
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/passes"
)

// ahead draws batches of the steps first … end-1 together where the topology is paged and has
// memory for it; else it is nil. An epoch has per batches.
func (s *Source) ahead(c *Config, per, first, end uint64) (sample.Ahead, error) {
	if s.Graph.Resident || s.Graph.PassBytes == 0 || !s.Passes() || s.Topology == nil {
		return nil, nil
	}
	w, ok, err := topology.NewWindows(s.Topology, passes.WindowsBytes(s.Graph.PassBytes))
	if err == nil && !ok { // a list may be longer than that
		w, ok, err = topology.NewWindows(s.Topology, s.Graph.PassBytes/2)
	}
	if err != nil || !ok {
		return nil, err
	}
	g, err := passes.New(passes.Config{Windows: w,
		Sampler: func(t topology.Reader) (*sample.Sampler, error) {
			return s.samplerOf(t, c.Fanout, c.Seed)
		},
		Order: func(epoch uint64) (*sample.Order, error) {
			return sample.EpochOrder(c.Seeds, c.Seed, epoch, c.Batch)
		},
		PerEpoch: per, First: first, End: end, Workers: c.PassWorkers,
		Room: s.Graph.PassBytes - w.Stats().Bytes, Budget: s.Budget})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Passes says whether batches of the source can be drawn together: layers are drawn by sums over
// the lists of a batch, and which entries come before a time is found out list by list.
func (s *Source) Passes() bool {
	return s.Meta.Coded && len(s.LayerSize) == 0 && s.Before == nil
}
