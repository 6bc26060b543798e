package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/plan"
)

const (
	// pilotBatches is the least number of batches that are sampled to learn their sizes before the
	// memory is split. Small batches are sampled until they have pilotEdges edges together, but no
	// more than pilotMost of them.
	pilotBatches, pilotMost = 4, 32
	pilotEdges              = 1 << 20
	// pagedPilot stands in for pilotBatches where the topology is paged: a large batch takes a
	// second there, and sizes of large batches hardly differ.
	pagedPilot = 2
)

// meterSampling starts to measure, and returns a function that ends it and returns the cost.
func (m *Probe) meterSampling() func() sampledCost {
	src := m.src
	begun, bytes, waited := time.Now(), src.Topology.Stats().BytesRead, src.Device.Stats().Wait
	return func() sampledCost {
		return sampledCost{took: time.Since(begun), waited: src.Device.Stats().Wait - waited,
			listBytes: src.Topology.Stats().BytesRead - bytes}
	}
}

// pilotSizes holds the range of sizes of some batches.
type pilotSizes struct {
	nodes, edges plan.Reach
	pieces       plan.Reach    // of the rows of nodes, if they are split
	inner        plan.Reach    // nodes that have neighbors
	drawing      plan.Reach    // bytes of scratch of a sampler that draws layers
	sampled      int           // edges of all batches
	largest      *sample.Dense // the batch with most nodes
	batches      []pilotBatch
	// padded are the largest sizes of the first pagedPilot batches, which are sampled whatever the
	// memory is.
	padded program.Sizes
}

func (p *pilotSizes) add(d *sample.Dense, drawing int64, split *rowfile.Split) {
	p.drawing.Add(drawing)
	p.nodes.Add(int64(len(d.NodeIDs)))
	if split != nil {
		p.pieces.Add(int64(split.Count(d.NodeIDs)))
	}
	p.edges.Add(int64(len(d.Nbrs)))
	p.inner.Add(int64(d.Inner()))
	p.sampled += len(d.Nbrs)
	if len(p.batches) <= pagedPilot {
		s := program.SizesOf(&d.Lists)
		p.padded.Raise(&s)
	}
	if p.largest == nil || len(d.NodeIDs) > len(p.largest.NodeIDs) {
		p.largest = d
	}
}

// sampler returns a sampler of the run's batches.
func (m *Probe) sampler() (*sample.Sampler, error) {
	return m.src.Sampler(&loader.Config{Fanout: m.cfg.Fanout, ByRelation: m.cfg.ByRelation,
		Seed: m.cfg.Seed})
}

// pilot samples the first batches of an epoch, and of later epochs if it has few, to learn their
// sizes. The last batch of an epoch, which may be small, is left out unless it is the only one.
func (m *Probe) pilot(ctx context.Context, batch int) (p pilotSizes, err error) {
	s, err := m.sampler()
	if err != nil {
		return p, err
	}
	defer s.Close()
	for n, epoch := 0, uint64(0); ; epoch++ {
		order, err := sample.EpochOrder(m.cfg.Seeds, m.cfg.Seed, epoch, batch)
		if err != nil {
			return p, err
		}
		for i := range max(1, order.Batches()-1) {
			d, meter := &sample.Dense{}, m.meterSampling()
			if err := s.Sample(ctx, epoch, i, order.Seeds(i, nil), d); err != nil {
				return p, err
			}
			p.batches = append(p.batches, pilotBatch{epoch, i, d.NodeIDs, d.NodeIDOffsets,
				len(d.Nbrs), meter()})
			p.add(d, m.src.LayerBytes(s), m.src.Split)
			if n++; m.knowsSizes(n, p.sampled) {
				return p, nil
			}
		}
	}
}

// knowsSizes reports whether enough batches, with enough edges, were sampled to know their sizes.
func (m *Probe) knowsSizes(batches, edges int) bool {
	least, enough := pilotBatches, pilotEdges
	if !m.src.Graph.Resident {
		least = pagedPilot
	}
	if m.cfg.Unpriced { // those of partitions have fewer nodes
		enough /= 8
	}
	return batches == pilotMost || batches >= least && edges >= enough
}

// sampleBatches samples batches to learn their sizes. If a batch does not fit in memory beside a
// resident topology, the topology is paged. If it does not fit then either, the least memory that
// would do is estimated from a part of a batch: a whole one has at most as many times its nodes.
func (m *Probe) sampleBatches(ctx context.Context) error {
	first, otherwise := plan.Sampling(m.facts)
	if err := m.src.OpenGraph(ctx, m.graph(first)); err != nil {
		return err
	}
	scale, part := int64(1), m.facts.Batch
	for {
		p, err := m.pilot(ctx, part)
		var full *mem.LimitError
		switch {
		case err == nil:
			return m.sized(p, scale)
		case errors.As(err, &full) && otherwise != nil:
			err := m.src.ChangeGraph(ctx, m.graph(*otherwise))
			if otherwise = nil; err != nil {
				return err
			}
			continue
		case !errors.As(err, &full) || part == 1:
			return fmt.Errorf("probe: sample a batch to size the memory: %w", err)
		}
		part = (part + 3) / 4
		scale = int64(m.facts.Batch+part-1) / int64(part)
	}
}

// sized takes over the sizes of batches. If scale is above 1 they are the sizes of parts, of which
// a batch has at most scale.
func (m *Probe) sized(p pilotSizes, scale int64) error {
	f := m.facts
	f.BatchNodes = min(p.nodes.Reserve()*scale, int64(f.Nodes))
	f.BatchPieces = min(p.pieces.Reserve()*scale, int64(f.AllPieces))
	f.BatchEdges, f.BatchInner = p.edges.Reserve()*scale, p.inner.Reserve()*scale
	f.LayerBytes = p.drawing.Reserve() * scale
	f.Sampled = &plan.BatchSizes{Nodes: p.padded.Nodes, Entries: p.padded.Entries}
	m.dense = p.largest
	if m.model != nil {
		f.StepInPlace = m.model.Size(m.dense, f.BatchInner, scale, true).Host
		copied := m.model.Size(m.dense, f.BatchInner, scale, f.Cut)
		f.StepCopied, f.Device.Step, f.Device.Given = copied.Host, copied.Device, copied.Given
		f.PreparedBytes = copied.Prepared
	}
	m.src.OnDevice = int(f.DeviceRows())
	if scale == 1 {
		m.pilots, m.piloted = p.batches, m.src.Graph
		return nil
	}
	if _, err := plan.Plans(f); err != nil {
		return err
	}
	sizes := "--fanout"
	if len(m.src.LayerSize) > 0 {
		sizes = "--layer-size"
	}
	return fmt.Errorf("probe: memory %s is too small to sample a batch: raise --memory, or lower "+
		"--batch or %s", mem.FormatSize(f.Memory), sizes)
}
