package bulk

import (
	"context"
	"slices"
	"sync/atomic"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"

	"golang.org/x/sync/errgroup"
)

// drawing is a group of batches that are being drawn, a hop of all of them after the other.
type drawing struct {
	*Passes
	windows  *topology.Windows
	samplers []*sample.Sampler // one a worker
	members  []*member
	before   int64 // bytes of batches that were drawn before
}

// member is a batch of a group.
type member struct {
	sample.Partial
	nodes []layout.NodeID // of the frontier, ascending
	order []uint32        // their indexes in the frontier
	ends  []uint32        // in nodes, of each window
	parts []sample.Drawn  // of the windows that were passed, those that have nodes
	held  int64           // bytes of parts

	absent []layout.NodeID // whose rows are to be staged
}

// open makes what batches are drawn with.
func (d *drawing) open() (err error) {
	if d.windows, err = d.cfg.Windows(); err != nil {
		return err
	}
	for range max(1, d.cfg.Workers) {
		s, err := d.cfg.Sampler(d.windows)
		if err != nil {
			return err
		}
		d.samplers = append(d.samplers, s)
	}
	return nil
}

// close frees what open made.
func (d *drawing) close() error {
	for _, s := range d.samplers {
		s.Close()
	}
	if d.windows == nil {
		return nil
	}
	return d.windows.Close()
}

// hand gives the batches, which are drawn, to the group.
func (d *drawing) hand() {
	for _, m := range d.members {
		d.drawn[m.Epoch*d.cfg.PerEpoch+m.Batch] = &m.Partial
		if d.cfg.Stage != nil {
			d.Passes.absent = append(d.Passes.absent, m.absent)
		}
	}
	d.next += uint64(len(d.members))
}

// run draws the next batches, at most so many.
func (d *drawing) run(ctx context.Context, most uint64) error {
	if err := d.start(ctx, most); err != nil {
		return err
	}
	hops, last := d.samplers[0].Hops()
	if last {
		hops++
	}
	for hop := range hops {
		d.trim(hop)
		if err := d.hop(ctx, hop); err != nil {
			return err
		}
	}
	if err := d.listAbsent(ctx); err != nil {
		return err
	}
	return d.count()
}

// start begins the batches.
func (d *drawing) start(ctx context.Context, most uint64) error {
	var order *sample.Order
	room := d.cfg.Room - d.before
	for step := d.next; step < d.next+most; step++ {
		epoch, batch := step/d.cfg.PerEpoch, step%d.cfg.PerEpoch
		if order == nil || order.Epoch() != epoch {
			var err error
			if order, err = d.cfg.Order(epoch); err != nil {
				return err
			}
		}
		m := &member{}
		err := d.samplers[0].Start(ctx, epoch, batch, order.Seeds(batch, nil), &m.Partial)
		if err != nil {
			return err
		}
		d.members = append(d.members, m)
		if room -= d.needOf(m, 0); room < 0 {
			break
		}
	}
	return d.count()
}

const (
	nodeBytes = 16 // of a node of the frontier: where it is in order, and what is drawn of it
	edgeBytes = 8  // of an edge: its index, and the node, which may be new
)

// needOf is about how many bytes a member takes at the end of a hop.
func (d *drawing) needOf(m *member, hop int) int64 {
	n := int64(len(m.Frontier()))
	return m.Bytes() + n*nodeBytes + int64(float64(n)*d.perNode(hop))*edgeBytes
}

// perNode is about how many edges are drawn of a node of a hop.
func (d *drawing) perNode(hop int) float64 {
	if hop < len(d.edges) {
		return d.edges[hop]
	}
	if f := d.samplers[0].Fanout(hop); f != sample.All {
		return float64(f)
	}
	return float64(d.windows.Edges()) / float64(max(1, d.windows.Nodes()))
}

// trim leaves out the last batches if there would not be room for all: they are drawn later.
func (d *drawing) trim(hop int) {
	room, n := d.cfg.Room-d.before, 0
	for _, m := range d.members {
		if room -= d.needOf(m, hop); room < 0 {
			break
		}
		n++
	}
	d.members = slices.Delete(d.members, max(1, n), len(d.members))
}

// hop draws a hop of all members in a pass.
func (d *drawing) hop(ctx context.Context, hop int) error {
	if err := d.each(ctx, d.sort); err != nil {
		return err
	}
	if err := d.count(); err != nil {
		return err
	}
	wanted := make([][]layout.NodeID, len(d.members))
	err := d.windows.Each(ctx, func(window int) [][]layout.NodeID {
		for i, m := range d.members {
			wanted[i] = m.of(window)
		}
		return wanted
	}, func(window int) error {
		err := d.each(ctx, func(ctx context.Context, s *sample.Sampler, m *member) error {
			return m.draw(ctx, s, window)
		})
		if err != nil {
			return err
		}
		return d.count()
	})
	if err != nil {
		return err
	}
	d.note(hop)
	if err := d.each(ctx, extend); err != nil {
		return err
	}
	return d.count()
}

// note keeps how many edges were drawn of a node of a hop.
func (d *drawing) note(hop int) {
	nodes, edges := 0, 0
	for _, m := range d.members {
		nodes += len(m.nodes)
		for i := range m.parts {
			edges += len(m.parts[i].Nbrs)
		}
	}
	if hop == len(d.edges) {
		d.edges = append(d.edges, 0)
	}
	d.edges[hop] = float64(edges) / float64(max(1, nodes))
}

// sort puts the frontier of a member in the order of its lists in the file.
func (d *drawing) sort(_ context.Context, _ *sample.Sampler, m *member) error {
	front := m.Frontier()
	keys := make([]uint64, len(front))
	for i, v := range front {
		keys[i] = uint64(v)<<32 | uint64(i)
	}
	pace.RadixSort(keys)
	m.order, m.nodes = make([]uint32, len(front)), make([]layout.NodeID, len(front))
	for i, key := range keys {
		m.order[i], m.nodes[i] = uint32(key), layout.NodeID(key>>32)
	}
	m.ends = endsOf(m.nodes, d.windows.Count(), d.windows.After)
	return nil
}

// endsOf finds where in nodes, which ascend, each window's end. after gives the node after those of
// a window; the last window has all that are left, since no node is after the largest id.
func endsOf(nodes []layout.NodeID, windows int,
	after func(window int) layout.NodeID) []uint32 {
	ends, from := make([]uint32, windows), 0
	for i := range windows - 1 {
		n, _ := slices.BinarySearch(nodes[from:], after(i))
		from += n
		ends[i] = uint32(from)
	}
	ends[windows-1] = uint32(len(nodes))
	return ends
}

// of are the nodes of the frontier that a window has the lists of.
func (m *member) of(window int) []layout.NodeID {
	first := uint32(0)
	if window > 0 {
		first = m.ends[window-1]
	}
	return m.nodes[first:m.ends[window]]
}

// draw draws what the window at hand has.
func (m *member) draw(ctx context.Context, s *sample.Sampler, window int) error {
	nodes := m.of(window)
	if len(nodes) == 0 {
		return nil
	}
	d, err := s.Draw(ctx, &m.Partial, nodes)
	if err != nil {
		return err
	}
	d = d.Clone()
	m.parts, m.held = append(m.parts, d), m.held+d.Bytes()
	return nil
}

// extend puts what was drawn in the order of the frontier, and ends the hop.
func extend(ctx context.Context, s *sample.Sampler, m *member) error {
	d := m.joined()
	m.order, m.nodes, m.ends, m.parts, m.held = nil, nil, nil, nil, 0
	return s.Extend(ctx, &m.Partial, &d)
}

// joined is what was drawn of the whole frontier, in its order.
func (m *member) joined() (all sample.Drawn) {
	all.Off = make([]uint32, len(m.order)+1)
	k := 0
	for i := range m.parts {
		p := &m.parts[i]
		for j := range max(0, len(p.Off)-1) {
			all.Off[m.order[k+j]+1] = p.Off[j+1] - p.Off[j]
		}
		k += max(0, len(p.Off)-1)
	}
	for i := range m.order {
		all.Off[i+1] += all.Off[i]
	}
	edges := int(all.Off[len(m.order)])
	put(m, &all.Nbrs, edges, all.Off, func(d *sample.Drawn) []layout.NodeID { return d.Nbrs })
	put(m, &all.Weights, edges, all.Off, func(d *sample.Drawn) []float32 { return d.Weights })
	put(m, &all.Types, edges, all.Off, func(d *sample.Drawn) []uint32 { return d.Types })
	putNodes(m, &all.Degrees, func(d *sample.Drawn) []uint32 { return d.Degrees })
	putNodes(m, &all.Sums, func(d *sample.Drawn) []float32 { return d.Sums })
	return all
}

// put puts something of edges in the order of the frontier.
func put[T mem.Scalar](m *member, to *[]T, edges int, off []uint32,
	of func(d *sample.Drawn) []T) {
	if !anyOf(m, of) {
		return
	}
	*to = make([]T, edges)
	k := 0
	for i := range m.parts {
		p := &m.parts[i]
		from := of(p)
		for j := range max(0, len(p.Off)-1) {
			copy((*to)[off[m.order[k+j]]:], from[p.Off[j]:p.Off[j+1]])
		}
		k += max(0, len(p.Off)-1)
	}
}

// anyOf says whether something is there: sized as it is asked for.
func anyOf[T any](m *member, of func(d *sample.Drawn) []T) bool {
	for i := range m.parts {
		if len(of(&m.parts[i])) > 0 {
			return true
		}
	}
	return false
}

// putNodes puts something of nodes in the order of the frontier.
func putNodes[T mem.Scalar](m *member, to *[]T, of func(d *sample.Drawn) []T) {
	if !anyOf(m, of) {
		return
	}
	*to = make([]T, len(m.order))
	k := 0
	for i := range m.parts {
		for _, x := range of(&m.parts[i]) {
			(*to)[m.order[k]] = x
			k++
		}
	}
}

// count counts the memory of batches: those of the group, and those drawn before.
func (d *drawing) count() error {
	bytes := d.before
	for _, m := range d.members {
		bytes += m.Bytes() + m.held + 4*int64(cap(m.order)+cap(m.nodes)+cap(m.ends)+
			cap(m.absent))
	}
	return d.room.Add(bytes - d.room.Bytes())
}

// each calls fn with every member, on all workers.
func (d *drawing) each(ctx context.Context, fn func(ctx context.Context, s *sample.Sampler,
	m *member) error) error {
	var next atomic.Int64
	work, ctx := errgroup.WithContext(ctx)
	for _, s := range d.samplers {
		work.Go(func() error {
			defer bug.Catch()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(d.members) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := fn(ctx, s, d.members[i]); err != nil {
					return err
				}
			}
		})
	}
	return work.Wait()
}
