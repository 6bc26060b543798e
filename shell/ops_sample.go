package shell

import (
	"context"
	"fmt"

	"gdb/layout"
	"gdb/sample"
)

// defaultSeed is the seed of SAMPLE without SEED, as that of gdb train without --seed.
const defaultSeed = 1

// runSample draws one batch with the sampler that training uses.
func runSample(ctx context.Context, x *execution) error {
	seeds, err := x.engine.resolve(ctx, x.operand.nodes)
	if err != nil {
		return err
	}
	var topos []layout.Topology
	for _, dir := range x.directions(layout.In) {
		t, err := x.engine.topology(ctx, dir)
		if err != nil {
			return err
		}
		topos = append(topos, t)
	}
	cfg := sample.Config{Fanout: x.args["FANOUT"].list, Seed: uint64(x.intOr("SEED", defaultSeed)),
		Budget: x.engine.budget}
	s, err := sample.NewSampler(topos, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	before := topologyReads(topos)
	var d sample.Dense
	epoch, batch := uint64(x.intOr("EPOCH", 0)), uint64(x.intOr("BATCH", 0))
	if err := s.Sample(ctx, epoch, batch, seeds, &d); err != nil {
		return err
	}
	switch x.args["SHOW"].text {
	case "dense":
		return x.showDense(ctx, &d)
	case "edges":
		return x.showEdges(ctx, &d)
	case "io":
		return x.showIO(&d, before, topologyReads(topos))
	}
	return x.showLayers(&d)
}

// hopName names delta i of a sample of k hops: the last delta is the seeds.
func hopName(i, k int) string {
	if i == k {
		return "seeds"
	}
	return fmt.Sprint(k - i)
}

func (x *execution) showLayers(d *sample.Dense) error {
	if err := x.header("layer", "inputs", "outputs", "edges", "first output"); err != nil {
		return err
	}
	var off, idx []uint32
	for l := range d.Layers() {
		v := d.LayerView(l, off[:0], idx[:0])
		if l > 0 {
			off, idx = v.Off, v.Idx
		}
		if err := x.row(l+1, v.In, v.Out, len(v.Idx), v.Base+v.Skip); err != nil {
			return err
		}
	}
	return nil
}

// showDense shows a row for each node, outermost hop first, with its list as local numbers.
func (x *execution) showDense(ctx context.Context, d *sample.Dense) error {
	err := x.header("local", "hop", "node", "nbr_offset", "nbrs (local)", "nbrs (node)")
	if err != nil {
		return err
	}
	nbrNames, err := x.engine.names(ctx, d.Nbrs)
	if err != nil {
		return err
	}
	hop, sampled := 0, int(d.NodeIDOffsets[1])
	local := 0
	return x.engine.inBatches(ctx, d.NodeIDs, func(part []layout.NodeID, names []string) error {
		for _, name := range names {
			for uint32(local) >= d.NodeIDOffsets[hop+1] {
				hop++
			}
			var offset any
			var loc, nbr []byte
			if local >= sampled {
				lo, hi := d.NbrOffsets[local-sampled], d.NbrOffsets[local-sampled+1]
				offset = lo
				for k := lo; k < hi; k++ {
					loc = fmt.Appendf(loc, "%d ", d.ReprMap[k])
					nbr = fmt.Appendf(nbr, "%s ", nbrNames[k])
				}
			}
			err := x.row(local, hopName(hop, d.Layers()), name, offset, trimmed(loc), trimmed(nbr))
			if err != nil {
				return err
			}
			local++
		}
		return nil
	})
}

func trimmed(b []byte) string { return string(b[:max(len(b)-1, 0)]) }

func (x *execution) showEdges(ctx context.Context, d *sample.Dense) error {
	if err := x.header("hop", "node", "neighbor"); err != nil {
		return err
	}
	names, err := x.engine.names(ctx, d.NodeIDs)
	if err != nil {
		return err
	}
	first := d.NodeIDOffsets[1]
	for hop := d.Layers(); hop > 0; hop-- {
		for v := d.NodeIDOffsets[hop]; v < d.NodeIDOffsets[hop+1]; v++ {
			for k := d.NbrOffsets[v-first]; k < d.NbrOffsets[v-first+1]; k++ {
				err := x.row(d.Layers()-hop+1, names[v], names[d.ReprMap[k]])
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// topologyReads sums the counters of some topologies.
func topologyReads(topos []layout.Topology) (sum layout.TopologyStats) {
	for _, t := range topos {
		s := t.Stats()
		sum.Hits += s.Hits
		sum.Misses += s.Misses
		sum.BlocksRead += s.BlocksRead
		sum.BytesRead += s.BytesRead
	}
	return sum
}

func (x *execution) showIO(d *sample.Dense, before, after layout.TopologyStats) error {
	if err := x.header("what", "count"); err != nil {
		return err
	}
	for _, r := range [][2]any{{"nodes", len(d.NodeIDs)}, {"edges", len(d.Nbrs)},
		{"blocks", after.Hits - before.Hits + after.Misses - before.Misses},
		{"cached", after.Hits - before.Hits},
		{"read", after.BlocksRead - before.BlocksRead},
		{"bytes read", after.BytesRead - before.BytesRead}} {
		if err := x.row(r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}

func runStatsCache(_ context.Context, x *execution) error {
	if err := x.header("cache", "bytes", "requests", "hits", "hit ratio"); err != nil {
		return err
	}
	for _, dir := range []layout.Direction{layout.In, layout.Out} {
		t := x.engine.topo[dir]
		if t == nil {
			continue
		}
		s := t.Stats()
		var ratio any
		if n := s.Hits + s.Misses; n > 0 {
			ratio = float64(s.Hits) / float64(n)
		}
		err := x.row("blocks of "+dir.String()+"-lists", s.Bytes, s.Hits+s.Misses, s.Hits, ratio)
		if err != nil {
			return err
		}
	}
	return nil
}

func runStatsIO(_ context.Context, x *execution) error {
	if err := x.header("backend", "reads", "bytes", "errors", "wait_s"); err != nil {
		return err
	}
	s := x.engine.dev.Stats()
	return x.row(string(x.engine.dev.Info().Backend), s.Reads, s.Bytes, s.Errors, s.Wait.Seconds())
}
