package train

import (
	"context"

	"gdb/layout"
	"gdb/sample"
)

const (
	// pilotBatches are sampled at least before the memory is split, to know how large batches are;
	// small ones until they have pilotEdges, but no more than pilotMost.
	pilotBatches, pilotMost = 4, 32
	pilotEdges              = 1 << 20
)

// reach is the range of a size over some batches.
type reach struct{ least, most int64 }

func (r *reach) add(n int64) {
	if r.least == 0 || n < r.least {
		r.least = n
	}
	r.most = max(r.most, n)
}

// reserve is a size that hardly a batch passes: beyond the largest seen by twice the range, which
// is four standard deviations if four were seen, and a little for a range that is small by chance;
// but by no more than an eighth. Beyond it the feature cache gives way, and batches wait.
func (r reach) reserve() int64 {
	return r.most + min(r.most/8, r.most/64+2*(r.most-r.least))
}

// pilotSizes are those of some batches.
type pilotSizes struct {
	nodes, edges reach
	inner        reach         // of the nodes, those with neighbors
	sampled      int           // edges of all
	largest      *sample.Dense // of most nodes
}

// inner is how many nodes of a batch have neighbors in it.
func inner(d *sample.Dense) int64 { return int64(len(d.NodeIDs)) - int64(d.NodeIDOffsets[1]) }

func (p *pilotSizes) add(d *sample.Dense) {
	p.nodes.add(int64(len(d.NodeIDs)))
	p.edges.add(int64(len(d.Nbrs)))
	p.inner.add(inner(d))
	p.sampled += len(d.Nbrs)
	if p.largest == nil || len(d.NodeIDs) > len(p.largest.NodeIDs) {
		p.largest = d
	}
}

// pilot samples the first batches of an epoch, and of those after it if that has few, to see how
// large they are. The last of an epoch, which may be small, is left out unless it is the only one.
func (in *inputs) pilot(ctx context.Context, c *Config, train []sample.NodeID) (p pilotSizes,
	err error) {
	s, err := sample.NewSampler([]layout.Topology{in.topology},
		sample.Config{Fanout: c.Fanout, Seed: c.Seed, Budget: in.budget})
	if err != nil {
		return p, err
	}
	defer s.Close()
	for n, epoch := 0, uint64(0); ; epoch++ {
		order, err := sample.EpochOrder(train, c.Seed, epoch, c.Batch)
		if err != nil {
			return p, err
		}
		for i := range max(1, order.Batches()-1) {
			d := &sample.Dense{}
			if err := s.Sample(ctx, epoch, i, order.Seeds(i, nil), d); err != nil {
				return p, err
			}
			p.add(d)
			n++
			if n == pilotMost || n >= pilotBatches && p.sampled >= pilotEdges {
				return p, nil
			}
		}
	}
}
