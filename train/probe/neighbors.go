package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/neighborcache"
	"gdb/sample"
	"gdb/train/plan"
)

const (
	// triedLists and triedBatches bound what is played to try caches.
	triedLists, triedBatches = 1 << 20, 16
	// triedEdges is the number of edges up to which a graph's lists are scanned to try
	// neighbor caches.
	triedEdges = 1 << 28
	// flooredBatches is how many batches are played to find what block caches read at least; the
	// first half of them warms the caches.
	flooredBatches = 8
)

// floorLists finds how much paged lists read at least, with block caches of some sizes. It needs
// only the index of the lists, and no other reads.
func (m *Probe) floorLists(ctx context.Context, s *plan.Costs, tr *trace,
	splits []*plan.Plan) (err error) {
	var sizes []int64
	for _, p := range splits {
		if !p.Resident {
			sizes = append(sizes, plan.FloorSize(p))
		}
	}
	hops, from, counted := tr.frontiers(m.fanout(), flooredBatches)
	trial, err := neighborcache.NewBlockTrial(ctx, m.src.Store, m.src.Device, layout.In, hops,
		m.src.Budget)
	var full *mem.LimitError
	if errors.As(err, &full) { // nothing is known then
		return nil
	}
	if err != nil {
		return fmt.Errorf("probe: try block caches: %w", err)
	}
	defer trial.Close()
	f := &plan.ReadFloor{Blocks: plan.Spread(sizes),
		BlockBytes: float64(m.src.Meta.BlockBytes)}
	for _, bytes := range f.Blocks {
		got, err := trial.Reads(neighborcache.Caches{Blocks: bytes,
			Sessions: plan.Samplers(m.facts.Threads)}, from)
		if err != nil {
			return fmt.Errorf("probe: try block caches: %w", err)
		}
		f.Reads = append(f.Reads, float64(got.Reads)/float64(counted))
	}
	s.Floor = f
	return nil
}

// listTrial plays a trace through caches of lists of some sizes.
type listTrial struct {
	*plan.ListTable
	probe   *Probe
	open    func() (*neighborcache.Trial, error)
	trial   *neighborcache.Trial // nil until a size is tried that the profile does not have
	name    string               // of the trace, as part of the key in the profile
	batches float64              // that are counted
	from    int                  // the first hop that is counted
	workers int
}

// priceNeighbors tries neighbor caches, if one could save more time in all epochs than making it
// takes, and returns the trial, which may be nil. It uses what memory is free.
func (m *Probe) priceNeighbors(ctx context.Context, s *plan.Costs, tr *trace,
	splits []*plan.Plan) (*listTrial, error) {
	wanted, saved := s.WorthTrying(splits)
	if len(wanted) == 0 {
		return nil, nil
	}
	if edges := m.src.Meta.Edges; edges > triedEdges {
		s.ListsWhy = fmt.Sprintf("no neighbor cache: to try one takes a scan of %d edges; "+
			"--neighbor-cache may give its size", edges)
		return nil, nil
	}
	if err := m.src.DropGraph(); err != nil {
		return nil, err
	}
	cheapest, err := m.cheapest(ctx, s, wanted)
	if err != nil {
		return nil, err
	}
	if cheapest += m.trialSeconds(s); cheapest >= saved {
		s.ListsWhy = fmt.Sprintf("no neighbor cache: it would take %.2gs to try and make, and "+
			"save less than %.2gs in all epochs", cheapest, saved)
		return nil, nil
	}
	l, err := m.tryLists(ctx, s, tr, wanted)
	var full *mem.LimitError
	if errors.As(err, &full) {
		s.Tried, s.ListsWhy = nil, "no neighbor cache: there is no memory to try one"
		return l, nil
	}
	s.ScanSeconds = m.scanSeconds(s) // a scan may have been timed
	return l, err
}

// cheapest returns the least time, in seconds, that making the neighbor cache of one of
// the splits takes.
func (m *Probe) cheapest(ctx context.Context, s *plan.Costs, splits []*plan.Plan) (least float64,
	err error) {
	s.Kept, s.ScanSeconds = map[int64]bool{}, m.scanSeconds(s)
	for i, p := range splits {
		size := p.Lists.Neighbors
		s.Kept[size], err = neighborcache.Kept(ctx, m.src.Store, m.src.Device, layout.In, size)
		if err != nil {
			return 0, err
		}
		if seconds := s.MakeSeconds(p); i == 0 || seconds < least {
			least = seconds
		}
	}
	return least, nil
}

// trialSeconds returns how long a trial takes; 0 where caches are made ahead of the run anyway.
func (m *Probe) trialSeconds(s *plan.Costs) float64 {
	if m.facts.NeighborsAhead {
		return 0
	}
	_, scans := neighborcache.Scans(m.src.Store, (m.src.Budget.Limit()-m.src.Budget.Used())/2)
	return float64(scans) * m.scanSeconds(s)
}

// scanLists is the key in a profile for the time of reading and scoring all lists.
const scanLists = "scan lists"

// scanSeconds returns how long reading and scoring all lists took, and at least the time that
// reading them takes.
func (m *Probe) scanSeconds(s *plan.Costs) float64 {
	return max(float64(s.TopologyBytes)/s.Device.Sequential, m.device.Timed[scanLists].Seconds)
}

// tryLists plays the trace through caches of some of the sizes that the splits have, unless the
// profile has the results.
func (m *Probe) tryLists(ctx context.Context, s *plan.Costs, tr *trace,
	wanted []*plan.Plan) (*listTrial, error) {
	hops, from, counted := tr.frontiers(m.fanout(), triedBatches)
	l := &listTrial{probe: m, batches: float64(counted), from: from,
		ListTable: &plan.ListTable{BlockBytes: float64(m.src.Meta.BlockBytes),
			Reads: map[plan.ListCaches]plan.ListReads{}},
		name:    fmt.Sprint(m.cfg.StepName, m.cfg.Seed, len(tr.batches)),
		workers: plan.Samplers(m.facts.Threads),
		open:    func() (*neighborcache.Trial, error) { return m.openTrial(ctx, hops) }}
	s.Tried = l.ListTable
	for _, p := range wanted {
		l.Neighbors = append(l.Neighbors, p.Lists.Neighbors)
		l.Blocks = append(l.Blocks, p.Lists.Blocks)
	}
	for _, p := range s.Paged { // so that the measured sizes lie within
		l.Blocks = append(l.Blocks, p.Blocks)
	}
	l.Blocks = plan.Thinned(l.Blocks)
	l.Neighbors = append([]int64{0}, plan.Thinned(l.Neighbors)...)
	for _, n := range l.Neighbors {
		for _, b := range l.Blocks {
			if err := l.try(b, n); err != nil {
				return l, err
			}
		}
	}
	return l, nil
}

// fanout returns how many entries of a list each hop reads. Layers are drawn from whole lists.
func (m *Probe) fanout() []int {
	if n := len(m.src.LayerSize); n > 0 {
		return slices.Repeat([]int{sample.All}, n)
	}
	return m.cfg.Fanout
}

// openTrial scores all lists for a trial, and records how long that took.
func (m *Probe) openTrial(ctx context.Context,
	hops []neighborcache.Frontier) (trial *neighborcache.Trial, err error) {
	_, scans := neighborcache.Scans(m.src.Store, (m.src.Budget.Limit()-m.src.Budget.Used())/2)
	w, err := Clocked(1, func() error {
		trial, err = neighborcache.NewTrial(ctx, m.src.Store, m.src.Device, layout.In, hops,
			m.src.Budget)
		return err
	})
	if err == nil {
		_, err = m.timed(scanLists, func() (plan.Work, error) {
			return w.Times(1 / float64(max(1, scans))), nil
		})
	}
	return trial, err
}

// close releases the trial. It may be called on nil.
func (l *listTrial) close() {
	if l != nil && l.trial != nil {
		l.trial.Close()
	}
}

// frontiers returns the hops of the last batches of a trace, at most most batches. The later half
// of the batches is counted: these begin at hop number from.
func (t *trace) frontiers(fanout []int, most int) (hops []neighborcache.Frontier, from,
	counted int) {
	first, lists := len(t.batches), 0
	for first > 0 && len(t.batches)-first < most {
		off := t.hops[first-1]
		lists += int(off[len(off)-1] - off[1])
		if len(t.batches)-first >= traceLeast && lists > triedLists {
			break
		}
		first--
	}
	counted = (len(t.batches) - first + 1) / 2
	for i := first; i < len(t.batches); i++ {
		if len(t.batches)-i == counted {
			from = len(hops)
		}
		nodes, off := t.batches[i], t.hops[i]
		for h, draws := range fanout {
			k := len(fanout) - h
			if draws == sample.All {
				draws = neighborcache.AllEntries
			}
			hops = append(hops, neighborcache.Frontier{Nodes: nodes[off[k]:off[k+1]], Draws: draws})
		}
	}
	return hops, from, counted
}

// try plays the trace through caches of two sizes, or takes the result from the profile.
func (l *listTrial) try(blocks, neighbors int64) error {
	at := plan.ListCaches{Blocks: blocks, Neighbors: neighbors}
	if _, ok := l.Reads[at]; ok {
		return nil
	}
	c := neighborcache.Caches{Blocks: blocks, Neighbors: neighbors, Sessions: l.workers}
	r, err := l.probe.tried(fmt.Sprint(l.name, c), func() (plan.ListReads, error) {
		return l.play(c)
	})
	if err == nil {
		l.Reads[at] = r
	}
	return err
}

// play plays the trace through caches and returns the mean reads of a batch.
func (l *listTrial) play(c neighborcache.Caches) (r plan.ListReads, err error) {
	if l.trial == nil {
		if l.trial, err = l.open(); err != nil {
			return r, err
		}
	}
	got, err := l.trial.Reads(c, l.from)
	if err != nil {
		return r, fmt.Errorf("probe: try caches of lists: %w", err)
	}
	return plan.ListReads{Lists: float64(got.Lists) / l.batches,
		Hits:  float64(got.Hits) / l.batches,
		Reads: float64(got.Reads) / l.batches}, nil
}
