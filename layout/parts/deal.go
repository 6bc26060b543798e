package parts

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"

	"github.com/RoaringBitmap/roaring/v2"
)

// lookMost bounds how many in-neighbors of a training node its score considers, the nearest first.
// The score counts which of them were dealt already; where there are more, as around the hubs of a
// graph with a power law, all parts have such nodes, and balance decides.
const lookMost = 4096

// dealer deals training nodes to parts: Algorithm 1 of "PaGraph" (Bai et al., section 3.2). A node
// v goes to the part i with the largest
//
//	|TV_i ∩ IN(v)| · (TV_avg - |TV_i|) / |PV_i|
//
// where TV_i are the training nodes of the part, PV_i all its nodes, and IN(v) the in-neighbors of
// v within hops hops. Where scores are equal, as in the beginning, the smaller PV_i is chosen. A
// part that has its share gets no more. It takes 2 bytes of memory per node, and 1/8 byte per node
// for each part and for IN(v).
type dealer struct {
	ses   topology.Session
	hops  int
	owner []uint16   // part that trains each node, from 1 on; 0 for none
	has   []*nodeSet // PV_i
	size  []uint64   // |PV_i|
	own   []uint64   // |TV_i|
	share float64    // TV_avg
	most  uint64     // most training nodes of a part

	seen   *nodeSet
	near   []layout.NodeID // IN(v)
	common []uint64        // |TV_i ∩ IN(v)|
	deg    []uint32
	off    []uint32
	pos    []uint32
	found  []layout.NodeID
	arena  *mem.Arena
}

func newDealer(ses topology.Session, nodes uint64, train uint64, opt *Options,
	budget *mem.Budget) (d *dealer, err error) {
	k := opt.Parts
	d = &dealer{ses: ses, hops: opt.Hops, size: make([]uint64, k), own: make([]uint64, k),
		common: make([]uint64, k), share: float64(train) / float64(k),
		most: (train + uint64(k) - 1) / uint64(k)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.free())
		}
	}()
	if d.arena, err = mem.NewArena(budget, "parts of nodes", int64(2*nodes)); err != nil {
		return d, err
	}
	d.owner = mem.View[uint16](d.arena.Bytes())
	if d.seen, err = newNodeSet(nodes, budget); err != nil {
		return d, err
	}
	for range k {
		set, err := newNodeSet(nodes, budget)
		if err != nil {
			return d, err
		}
		d.has = append(d.has, set)
	}
	return d, nil
}

func (d *dealer) free() (err error) {
	for _, s := range append(d.has, d.seen) {
		if s != nil {
			err = errors.Join(err, s.free())
		}
	}
	if d.arena != nil {
		err = errors.Join(err, d.arena.Free())
	}
	return err
}

// deal deals all training nodes, in ascending order.
func (d *dealer) deal(ctx context.Context, train *roaring.Bitmap,
	progress func(done uint64)) error {
	done := uint64(0)
	for it := train.Iterator(); it.HasNext(); done++ {
		if done%1024 == 0 {
			progress(done)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		v := layout.NodeID(it.Next())
		if err := d.look(ctx, v); err != nil {
			return err
		}
		d.give(v, d.best())
	}
	progress(done)
	return nil
}

// look finds the in-neighbors of v, hop by hop, up to lookMost.
func (d *dealer) look(ctx context.Context, v layout.NodeID) error {
	d.near = append(d.near[:0], v)
	d.seen.add(v)
	for hop, first := 0, 0; hop < d.hops && len(d.near) < lookMost; hop++ {
		last := len(d.near)
		if err := d.draw(ctx, d.near[first:last], lookMost-last); err != nil {
			return err
		}
		for _, u := range d.found {
			if d.seen.add(u) {
				d.near = append(d.near, u)
			}
		}
		first = last
	}
	for _, u := range d.near {
		d.seen.remove(u)
	}
	return nil
}

// draw reads the neighbors of nodes: all or, if these are more than most, evenly spaced ones.
func (d *dealer) draw(ctx context.Context, nodes []layout.NodeID, most int) error {
	d.deg, d.off = mem.Resize(d.deg, len(nodes)), mem.Resize(d.off, len(nodes)+1)
	if err := d.ses.Degrees(ctx, nodes, d.deg); err != nil {
		return fmt.Errorf("partition: neighbors: %w", err)
	}
	total := uint64(0)
	for _, n := range d.deg {
		total += uint64(n)
	}
	step := max(1, (total+uint64(most)-1)/uint64(most))
	d.pos, d.off[0] = d.pos[:0], 0
	next := uint64(0) // position in the current list
	for i, n := range d.deg {
		for ; next < uint64(n); next += step {
			d.pos = append(d.pos, uint32(next))
		}
		next -= uint64(n)
		d.off[i+1] = uint32(len(d.pos))
	}
	d.found = mem.Resize(d.found, len(d.pos))
	if err := d.ses.Gather(ctx, d.off, d.pos, d.found); err != nil {
		return fmt.Errorf("partition: neighbors: %w", err)
	}
	return nil
}

// best returns the part with the best score for the node that was looked at.
func (d *dealer) best() int {
	clear(d.common)
	for _, u := range d.near {
		if part := d.owner[u]; part > 0 {
			d.common[part-1]++
		}
	}
	best, most := -1, math.Inf(-1)
	for i, common := range d.common {
		if d.own[i] == d.most {
			continue
		}
		score := float64(common) * (d.share - float64(d.own[i])) / float64(max(1, d.size[i]))
		if score > most || score == most && d.size[i] < d.size[best] {
			best, most = i, score
		}
	}
	return best
}

// give gives a node and its in-neighbors to a part.
func (d *dealer) give(v layout.NodeID, part int) {
	d.owner[v] = uint16(part + 1)
	d.own[part]++
	for _, u := range d.near {
		if d.has[part].add(u) {
			d.size[part]++
		}
	}
}
