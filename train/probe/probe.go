// Package probe measures what a plan is made from: how large batches are, how fast the disk and the
// processor are, and which rows and lists a run will need. It asks package plan for the ways to
// split the memory, and measures what decides between them. Its terms: the pilot is the first few
// batches, sampled to learn their sizes; the trace is the nodes of more batches, through which
// caches are played; the profile holds the speeds of the device. It closes all that it opens,
// except the topology.
package probe

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/plan"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config says what to plan for.
type Config struct {
	// Facts holds what is known before anything is measured: the memory, the settings, the model
	// and its evaluation. The probe fills in the rest.
	plan.Facts
	// Seeds, Fanout, ByRelation and Seed determine the batches: see loader.Config. Layer sizes are
	// set in the source.
	Seeds      []sample.NodeID
	Fanout     []int
	ByRelation [][]int
	Seed       uint64
	// Places has batches that Open makes keep where their edges stand: see loader.Config.
	Places bool
	// Spare is memory beyond the plan that a feature cache uses until its budget wants it back.
	// Caches that cannot give memory back do not get it.
	Spare int64
	// StepName names all settings that the time of a step or of sampling depends on: what was
	// measured under this name is not measured again.
	StepName string
	// Unpriced says that batches are drawn of partitions in memory: what it would cost to draw them
	// of the graph decides nothing, and only their sizes are learned.
	Unpriced bool
	// Remeasure measures the device again, although the catalog has a profile of it.
	Remeasure bool
	// Profiles is the directory where profiles of devices are kept for a day, for all stores of
	// this machine; "" keeps none there.
	Profiles string
}

// Probe measures one source for one run. It may be used by one goroutine.
type Probe struct {
	*profiler
	cfg   Config
	facts *plan.Facts   // apart: a plan refers to it for the whole run, and to no batch
	dense *sample.Dense // a large batch
	// pilots are the batches that were sampled to learn their sizes; a trace begins with them.
	// piloted says how the topology was open then.
	pilots  []pilotBatch
	piloted topology.Options
	name    string // key of the plan: see planName
}

// New returns a probe of a source whose features are open. model is nil where batches are loaded
// and no model is trained.
func New(src *loader.Source, cfg Config, model Model) (*Probe, error) {
	facts := cfg.Facts
	m, f := &Probe{cfg: cfg, facts: &facts}, &facts
	f.Program, f.Store = src.ProgramBytes(), StoreFacts(src)
	m.profiler = &profiler{src: src, model: model, threads: f.Threads, dim: f.RowDim(),
		again: cfg.Remeasure, kept: cfg.Profiles}
	f.Hops = max(len(cfg.Fanout), len(src.LayerSize))
	f.TrainBatches = int64((len(cfg.Seeds) + f.Batch - 1) / f.Batch)
	f.SeedBytes = 8
	if l := src.Meta.Labels; l != nil && l.Kind == "multi" {
		f.SeedBytes += 4 * int64(len(l.Classes))
	}
	var err error
	if f.Storage, err = storage(src.Store); err != nil {
		return nil, err
	}
	m.name = m.planName()
	return m, nil
}

// planName returns a hash of all that a plan is made from, except measurements.
func (m *Probe) planName() string {
	h := sha256.New()
	fmt.Fprint(h, m.facts.Name(), m.cfg.StepName, m.cfg.Fanout, m.cfg.Seed, m.src.Extras,
		m.src.Draw, m.src.LayerSize)
	if limit := m.src.Before; limit != nil {
		fmt.Fprint(h, " before ", *limit)
	}
	if len(m.cfg.ByRelation) > 0 {
		fmt.Fprint(h, " by relation ", m.cfg.ByRelation)
	}
	h.Write(mem.BytesOf(m.cfg.Seeds))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// StoreFacts returns what is known of the graph and its files before anything is measured, except
// the room on the disk. Where the features of the source are open, they are counted.
func StoreFacts(src *loader.Source) plan.Store {
	s := plan.Store{Nodes: src.Meta.Nodes, Forms: src.Forms(), Passes: src.Passes()}
	if src.Rows != nil {
		s.Dim = src.Rows.Meta().Dim
	}
	if p := src.Split; p != nil {
		s.Dim, s.PieceDim, s.AllPieces, s.Unpacked = p.Wide, p.Dim, p.Rows, p.Floats(1)
		if s.Cut = src.Cut; s.Cut {
			s.Unpacked = p.Wide
		}
	}
	s.PagedBytes = func(cache int64) int64 {
		return topology.PagedBytes(src.Store, layout.In, cache)
	}
	return s
}

const (
	// storageShare and storageMost bound the runtime files of superbatches: one part in
	// storageShare of the free disk, and storageMost bytes.
	storageShare, storageMost = 4, 64 << 30
	// storageUnknown bounds them on a file system that does not report its free space.
	storageUnknown = 1 << 30
)

// storage returns how many bytes of runtime files the store's disk has room for.
func storage(s *layout.Store) (int64, error) {
	usage, err := s.FS().GetDiskUsage(s.Path())
	if errors.Is(err, vfs.ErrUnsupported) {
		return storageUnknown, nil
	}
	if err != nil {
		return 0, fmt.Errorf("probe: ask for the free space of %s: %w", s.Path(), err)
	}
	return int64(min(usage.AvailBytes/storageShare, storageMost)), nil
}

// CheckLeast returns an error if the memory is too small whatever the batches are: it cannot hold
// the program, what is open, a paged topology, and extra bytes.
func CheckLeast(src *loader.Source, memory, extra int64) error {
	least := src.ProgramBytes() + topology.PagedBytes(src.Store, layout.In, 1<<20) + extra
	if memory < least {
		return &plan.TooSmallError{Memory: memory, Least: least}
	}
	return nil
}

// roomy calls do while the topology is open, as it will be in the run. If memory is too short for
// both it closes the topology and calls do again.
func (m *Probe) roomy(do func() error) error {
	err := do()
	var full *mem.LimitError
	if m.src.Topology == nil || !errors.As(err, &full) {
		return err
	}
	if err := m.src.DropGraph(); err != nil {
		return err
	}
	return do()
}

// graph returns options with which the topology is opened, its memory being counted.
func (m *Probe) graph(o topology.Options) topology.Options {
	o.Budget = m.src.Budget
	return o
}
