package loader

import (
	"context"
	"slices"

	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/bulk"
	"gdb/sample/rowcache"
)

// drawer returns what draws the batches of steps first … end-1 for the workers of a pipeline:
// together in macro-batches, or as c.Draws does, or in passes if the topology is paged and has
// memory for them, else each by itself. An epoch has per batches.
func (s *Source) drawer(c *Config, workers int, per, first, end uint64) (sample.Drawer, error) {
	if c.Macro > 1 {
		return bulk.NewMacro(bulk.MacroConfig{
			Sampler: func() (*sample.Sampler, error) {
				return s.samplerOf(s.Topology, c)
			},
			Workers: c.PassWorkers, Order: c.order,
			PerEpoch: per, Batches: uint64(c.Macro),
			End: c.firstEpoch()*per + end, Budget: s.Budget}), nil
	}
	if c.Draws != nil {
		host, err := s.samplers(s.Topology, c, workers)
		if err != nil {
			return nil, err
		}
		return c.Draws(host), nil
	}
	bytes, held, err := s.windows()
	if err != nil {
		return nil, err
	}
	samplers, err := s.samplers(s.Topology, c, workers)
	if err != nil || bytes == 0 {
		return samplers, err
	}
	cfg := bulk.PassesConfig{
		Samplers: samplers,
		Windows: func() (*topology.Windows, error) {
			w, _, err := topology.NewWindows(s.Topology, bytes)
			return w, err
		},
		Sampler: func(t topology.Reader) (*sample.Sampler, error) {
			return s.samplerOf(t, c)
		},
		Order: c.order, PerEpoch: per, First: first, End: end, Workers: c.PassWorkers,
		FirstEpoch: c.firstEpoch(),
		Room:       bulk.PassRoom(s.Graph.PassBytes, held), WindowBytes: held, Budget: s.Budget}
	if s.staged != nil && c.Superbatch == nil && !c.Later {
		cfg.Stage = s.staged
	}
	return bulk.NewPasses(cfg), nil
}

// firstEpoch returns the epoch of the first step.
func (c *Config) firstEpoch() uint64 {
	if c.Same != nil {
		return c.Same.Epoch()
	}
	return 0
}

// samplers returns samplers of a topology, one for each worker.
func (s *Source) samplers(t topology.Reader, c *Config, workers int) (*sample.Samplers, error) {
	return sample.NewSamplers(workers, func() (*sample.Sampler, error) {
		return s.samplerOf(t, c)
	})
}

// extras returns what batches have besides nodes and neighbors.
func (s *Source) extras(c *Config) sample.Extras {
	x := s.Extras
	x.Places = x.Places || c.Places
	return x
}

// windows returns the bytes of windows for passes, and those that are held by them; both are 0 if
// batches are not drawn in passes.
func (s *Source) windows() (bytes, held int64, err error) {
	if s.Graph.Resident || s.Graph.PassBytes == 0 || !s.Passes() || s.Topology == nil {
		return 0, 0, nil
	}
	bytes = bulk.PassWindowsBytes(s.Graph.PassBytes)
	w, ok, err := topology.NewWindows(s.Topology, bytes)
	if err == nil && !ok { // a list may be longer than that many bytes
		bytes = s.Graph.PassBytes / 2
		w, ok, err = topology.NewWindows(s.Topology, bytes)
	}
	if err != nil || !ok {
		return 0, 0, err
	}
	held = w.Stats().Bytes
	return bytes, held, w.Close()
}

// stagedRows reads ahead the rows that a static cache does not keep, or all without a cache. It
// implements bulk.PassStage.
type stagedRows struct {
	*rowcache.Staged
	cache *rowcache.Cache // or nil
	split *rowfile.Split
}

// Ready waits until the cache is filled, since the device is faster if one reads after the other.
func (s *stagedRows) Ready(ctx context.Context) error {
	if s.cache == nil {
		return nil
	}
	return s.cache.Filled(ctx)
}

// Absent appends the rows of nodes that the cache does not keep to the list to.
func (s *stagedRows) Absent(nodes, to []sample.NodeID) []sample.NodeID {
	n := len(to)
	if s.split != nil {
		to = s.split.Append(nodes, slices.Grow(to, s.split.Count(nodes)))
	} else {
		to = append(to, nodes...)
	}
	if s.cache == nil {
		return to
	}
	return s.cache.Absent(to[n:], to[:n]) // it writes behind what it reads
}

// Passes reports whether batches of the source can be drawn in passes. They cannot if layers are
// drawn, which need sums over all lists of a batch, if edges are cut off at a time, which is found
// list by list, or if columns of edges are read, batch by batch.
func (s *Source) Passes() bool {
	return s.Meta.Coded && len(s.LayerSize) == 0 && s.Before == nil &&
		s.Seeding == nil && s.Columns == nil
}
