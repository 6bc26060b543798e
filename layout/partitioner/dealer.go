package partitioner

import (
	"context"
	"math"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/listfile"
)

// slack is how much larger than the mean a partition may be: of each label, where labels are
// balanced.
const slack = 1.05

// gamma is the exponent of Fennel's cost of a partition, in section 3 of its paper.
const gamma = 1.5

// labelsRead is how many labels are read at a time.
const labelsRead = 1 << 12

// dealer deals the nodes of a graph, in the order of its lists.
type dealer struct {
	g     *Graph
	opt   *Options
	of    []uint16
	held  mem.Account
	sizes []sizes   // by label; one if labels do not matter
	most  []uint32  // nodes of each label that a partition has at most
	scale []float64 // of each label: how many nodes of the graph there are for each of it
	cost  float64   // of a node in a partition, times the root of its size

	count    []uint32 // neighbors of the node under way, by partition
	adjacent []uint16 // partitions that have some
	node     kv.NodeID
	began    bool

	labels []uint32 // of consecutive nodes
	first  kv.NodeID
	passed uint64 // nodes that were dealt in the passes before
	passes int
}

func newDealer(g *Graph, opt *Options, of []uint16) (*dealer, error) {
	d := &dealer{g: g, opt: opt, of: of, held: mem.NewAccount(opt.Budget, "sizes of partitions")}
	counts := []uint64{g.all()}
	if opt.Method == GAP {
		counts = g.Count
	}
	k := opt.Parts
	if err := d.held.Add(int64(len(counts)*k)*sizeBytes + 4*int64(k) + 4*labelsRead); err != nil {
		return nil, err
	}
	for _, n := range counts {
		d.sizes = append(d.sizes, newSizes(k))
		d.most = append(d.most, uint32(math.Ceil(slack*float64(n)/float64(k))))
		d.scale = append(d.scale, float64(g.all())/float64(max(1, n)))
	}
	n, edges := float64(g.all()), float64(g.Entries)/2
	alpha := math.Sqrt(float64(k)) * edges / math.Pow(n, gamma)
	d.cost, d.count = alpha*gamma, make([]uint32, k)
	return d, nil
}

// begin counts nodes that are dealt already.
func (d *dealer) begin(ctx context.Context) error {
	for v, p := range d.of {
		if p == none {
			return nil // none is dealt
		}
		label, err := d.label(ctx, kv.NodeID(v))
		if err != nil {
			return err
		}
		d.sizes[label].add(int(p), d.g.size(kv.NodeID(v)))
	}
	return nil
}

// run reads the lists a number of times.
func (d *dealer) run(ctx context.Context, passes int) error {
	for d.passes = passes; passes > 0; passes-- {
		d.labels = d.labels[:0]
		if err := d.g.Scan(ctx, func(first kv.NodeID, cont bool, l *listfile.Lists) error {
			return d.lists(ctx, first, cont, l)
		}); err != nil {
			return err
		}
		if err := d.end(ctx); err != nil {
			return err
		}
		d.passed += d.g.Nodes
	}
	return nil
}

// lists deals the nodes of some lists, but for the last, whose list may go on.
func (d *dealer) lists(ctx context.Context, first kv.NodeID, cont bool, l *listfile.Lists) error {
	for i := range len(l.Off) - 1 {
		if i > 0 || !cont {
			if err := d.end(ctx); err != nil {
				return err
			}
			d.node, d.began = first+kv.NodeID(i), true
		}
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			u, n := l.Nbrs[k], d.g.weight(l, k)
			p := d.of[u]
			if p == none || u == d.node {
				continue
			}
			if d.count[p] == 0 {
				d.adjacent = append(d.adjacent, p)
			}
			d.count[p] += n
		}
	}
	if d.opt.Progress != nil {
		d.opt.Progress(d.passed+uint64(d.node), uint64(d.passes)*d.g.Nodes)
	}
	return ctx.Err()
}

// end deals the node whose list ended.
func (d *dealer) end(ctx context.Context) error {
	if !d.began {
		return nil
	}
	d.began = false
	label, err := d.label(ctx, d.node)
	if err != nil {
		return err
	}
	s, n := &d.sizes[label], d.g.size(d.node)
	if p := d.of[d.node]; p != none {
		s.remove(int(p), n)
	}
	p := d.best(label, n)
	s.add(p, n)
	d.of[d.node] = uint16(p)
	for _, p := range d.adjacent {
		d.count[p] = 0
	}
	d.adjacent = d.adjacent[:0]
	return nil
}

// best returns the partition with the best score for the node under way: of those that have
// neighbors and room, and the smallest.
func (d *dealer) best(label int, size uint32) int {
	s := &d.sizes[label]
	best := s.least()
	score := d.score(label, best, size)
	for _, p := range d.adjacent {
		if s.of[p]+size > d.most[label] {
			continue
		}
		got := d.score(label, int(p), size)
		if got > score || got == score && s.less(uint32(p), uint32(best)) {
			best, score = int(p), got
		}
	}
	return best
}

// score returns the score of a partition for the node under way, which stands for more nodes where
// it is a cluster.
func (d *dealer) score(label, part int, nodes uint32) float64 {
	n, size := float64(d.count[part]), float64(d.sizes[label].of[part])
	if d.opt.Method == LDG {
		return n * (1 - size/float64(d.most[label]))
	}
	return n - float64(nodes)*d.cost*math.Sqrt(size*d.scale[label])
}

// label returns the label of a node; 0 where labels do not matter.
func (d *dealer) label(ctx context.Context, v kv.NodeID) (int, error) {
	if d.opt.Method != GAP || d.g.Labels == nil {
		return len(d.sizes) - 1, nil
	}
	if len(d.labels) == 0 || v < d.first || uint64(v) >= uint64(d.first)+uint64(len(d.labels)) {
		d.first = v
		n := min(labelsRead, d.g.Nodes-uint64(v))
		d.labels = mem.Resized(d.labels, int(n))
		if err := d.g.Labels(ctx, v, d.labels); err != nil {
			return 0, err
		}
	}
	return int(d.labels[v-d.first]), nil
}
