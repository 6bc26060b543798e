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

// drawing is a group of batches that are drawn together, hop by hop.
type drawing struct {
	*Passes
	windows  *topology.Windows
	samplers []*sample.Sampler // one per worker
	members  []*member
	before   int64 // bytes of batches that earlier groups drew and nobody took yet
}

// member is a batch of a group.
type member struct {
	sample.Partial
	nodes []layout.NodeID // lists of the frontier, ascending
	order []uint32        // their indexes in the frontier
	ends  []uint32        // where each window's lists end in nodes
	parts []sample.Drawn  // what was drawn in the windows passed so far that have lists
	held  int64           // bytes of parts

	absent []layout.NodeID // nodes whose rows are to be staged
}

// open opens the windows and makes the samplers.
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

// close closes what open opened.
func (d *drawing) close() error {
	for _, s := range d.samplers {
		s.Close()
	}
	if d.windows == nil {
		return nil
	}
	return d.windows.Close()
}

// hand hands the drawn batches over to Passes.
func (d *drawing) hand() {
	for _, m := range d.members {
		d.drawn[d.cfg.step(m.Epoch, m.Batch)] = &m.Partial
		if d.cfg.Stage != nil {
			d.Passes.absent = append(d.Passes.absent, m.absent)
		}
	}
	d.next += uint64(len(d.members))
}

// run draws the next batches, at most this number, and fewer if there is no room.
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

// start starts the batches and their frontiers, as many as there is room for.
func (d *drawing) start(ctx context.Context, most uint64) error {
	var order *sample.Order
	room := d.cfg.Room - d.before
	for step := d.next; step < d.next+most; step++ {
		epoch, batch := d.cfg.FirstEpoch+step/d.cfg.PerEpoch, step%d.cfg.PerEpoch
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
	nodeBytes = 16 // memory per list of the frontier: its place in order, and what is drawn of it
	edgeBytes = 8  // memory per edge: its index, and its node, which may be new
)

// needOf estimates the bytes that a member takes at the end of a hop.
func (d *drawing) needOf(m *member, hop int) int64 {
	n := int64(len(m.Frontier()))
	return m.Bytes() + n*d.lists()*nodeBytes + int64(float64(n)*d.perNode(hop))*edgeBytes
}

// perNode estimates how many edges are drawn per node at a hop.
func (d *drawing) perNode(hop int) float64 {
	if hop < len(d.edges) {
		return d.edges[hop]
	}
	if f := d.samplers[0].Fanout(hop); f != sample.All {
		return float64(f) * float64(d.lists())
	}
	return float64(d.lists()) * float64(d.windows.Edges()) / float64(max(1, d.windows.Nodes()))
}

// lists returns the most lists that a node has.
func (d *drawing) lists() int64 {
	if _, numbers := topology.ByList(d.windows); numbers != nil {
		return int64(numbers.Most())
	}
	return 1
}

// trim leaves out the last batches if there would be no room for all. They are drawn later.
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

// hop draws a hop of all members in one pass through the lists.
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

// note keeps the number of edges drawn per node at a hop, for later estimates.
func (d *drawing) note(hop int) {
	nodes, edges := 0, 0
	for _, m := range d.members {
		nodes += len(m.Frontier())
		for i := range m.parts {
			edges += len(m.parts[i].Nbrs)
		}
	}
	if hop == len(d.edges) {
		d.edges = append(d.edges, 0)
	}
	d.edges[hop] = float64(edges) / float64(max(1, nodes))
}

// sort sorts the frontier of a member in the order of the lists in the file.
func (d *drawing) sort(_ context.Context, s *sample.Sampler, m *member) error {
	front, err := s.Lists(&m.Partial)
	if err != nil {
		return err
	}
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

// endsOf returns where each window's nodes end in nodes, which ascend. after returns the first node
// after a window. The last window has all that are left, since no node is after the largest id.
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

// of returns the nodes of the frontier whose lists are in a window.
func (m *member) of(window int) []layout.NodeID {
	first := uint32(0)
	if window > 0 {
		first = m.ends[window-1]
	}
	return m.nodes[first:m.ends[window]]
}

// draw draws the neighbors of the frontier nodes whose lists are in this window.
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

// extend joins what was drawn, in the order of the frontier, and ends the hop of a member.
func extend(ctx context.Context, s *sample.Sampler, m *member) error {
	d := m.joined()
	m.order, m.nodes, m.ends, m.parts, m.held = nil, nil, nil, nil, 0
	return s.Extend(ctx, &m.Partial, &d)
}

// joined returns what was drawn of the whole frontier, in its order.
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

// put writes one kind of values of edges to to, in the order of the frontier.
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

// anyOf reports whether values of one kind were drawn at all.
func anyOf[T any](m *member, of func(d *sample.Drawn) []T) bool {
	for i := range m.parts {
		if len(of(&m.parts[i])) > 0 {
			return true
		}
	}
	return false
}

// putNodes writes one kind of values of nodes to to, in the order of the frontier.
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

// count counts the memory of batches: those of this group, and those drawn before.
func (d *drawing) count() error {
	bytes := d.before
	for _, m := range d.members {
		bytes += m.Bytes() + m.held + 4*int64(cap(m.order)+cap(m.nodes)+cap(m.ends)+
			cap(m.absent))
	}
	return d.room.Add(bytes - d.room.Bytes())
}

// each calls fn with every member, on all workers at the same time.
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
