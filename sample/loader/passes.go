package loader

import (
	"context"

	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/bulk"
	"gdb/sample/rowcache"
)

// ahead returns what draws the batches of steps first … end-1 together: macro-batches, or passes if
// the topology is paged and has memory for them; else nil. An epoch has per batches.
func (s *Source) ahead(c *Config, per, first, end uint64) (sample.Ahead, error) {
	if c.Macro > 1 {
		return bulk.NewMacro(bulk.MacroConfig{
			Sampler: func() (*sample.Sampler, error) { return s.Sampler(c.Fanout, c.Seed) },
			Workers: c.PassWorkers,
			Order: func(epoch uint64) (*sample.Order, error) {
				return sample.EpochOrder(c.Seeds, c.Seed, epoch, c.Batch)
			},
			PerEpoch: per, Batches: uint64(c.Macro), End: end, Budget: s.Budget}), nil
	}
	if s.Graph.Resident || s.Graph.PassBytes == 0 || !s.Passes() || s.Topology == nil {
		return nil, nil
	}
	bytes := bulk.PassWindowsBytes(s.Graph.PassBytes)
	w, ok, err := topology.NewWindows(s.Topology, bytes)
	if err == nil && !ok { // a list may be longer than that many bytes
		bytes = s.Graph.PassBytes / 2
		w, ok, err = topology.NewWindows(s.Topology, bytes)
	}
	if err != nil || !ok {
		return nil, err
	}
	held := w.Stats().Bytes
	if err := w.Close(); err != nil {
		return nil, err
	}
	cfg := bulk.PassesConfig{
		Windows: func() (*topology.Windows, error) {
			w, _, err := topology.NewWindows(s.Topology, bytes)
			return w, err
		},
		Sampler: func(t topology.Reader) (*sample.Sampler, error) {
			return s.samplerOf(t, c.Fanout, c.Seed)
		},
		Order: func(epoch uint64) (*sample.Order, error) {
			return sample.EpochOrder(c.Seeds, c.Seed, epoch, c.Batch)
		},
		PerEpoch: per, First: first, End: end, Workers: c.PassWorkers,
		Room: s.Graph.PassBytes - held, WindowBytes: held, Budget: s.Budget}
	if s.staged != nil && c.Superbatch == nil && !c.Later {
		cfg.Stage = s.staged
	}
	return bulk.NewPasses(cfg), nil
}

// stagedRows reads ahead the rows that a static cache does not keep. It implements bulk.PassStage.
type stagedRows struct {
	*rowcache.Staged
	cache *rowcache.Cache
}

// Ready waits until the cache is filled, since the device is faster if one reads after the other.
func (s *stagedRows) Ready(ctx context.Context) error { return s.cache.Filled(ctx) }

// Absent appends those of nodes whose rows the cache does not keep to the list to.
func (s *stagedRows) Absent(nodes, to []sample.NodeID) []sample.NodeID {
	return s.cache.Absent(nodes, to)
}

// Passes reports whether batches of the source can be drawn in passes. They cannot if layers are
// drawn, which need sums over all lists of a batch, or if edges are cut off at a time, which is
// found list by list.
func (s *Source) Passes() bool {
	return s.Meta.Coded && len(s.LayerSize) == 0 && s.Before == nil
}
