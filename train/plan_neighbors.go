package train

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
)

// ListPlan is how the memory of a paged topology is split between its caches.
type ListPlan struct {
	Blocks    int64 `json:"block_cache_bytes"`
	Neighbors int64 `json:"neighbor_cache_bytes"`
	// Hit is the share of lists that is expected in the neighbor cache, where it was chosen.
	Hit float64 `json:"neighbor_hit"`
	// Make is how long it takes to make it before the first epoch, in seconds: 0 if it is kept.
	Make float64 `json:"make_s"`
	// Why says why this size was chosen, or none.
	Why string `json:"why,omitempty"`
}

const (
	// neighborsLeast is the smallest neighbor cache that is chosen.
	neighborsLeast = 256 << 10
	// triedLists and triedBatches bound the trial of caches.
	triedLists, triedBatches = 1 << 20, 16
	// triedSizes of each cache are tried: between them costs lie on a line.
	triedSizes = 4
)

// neighborQuarters are the shares of a paged topology's memory that its neighbor cache may get.
func (p *planner) neighborQuarters() []int64 {
	if p.c.NeighborCache != runs.NeighborAuto {
		return []int64{0}
	}
	return []int64{0, 1, 2, 3}
}

// setLists splits what the caches of a paged topology have, whatever the shares: a neighbor cache
// whose size was given is besides. Blocks lie in whole arenas.
func (p *planner) setLists(sum int64) {
	whole := func(n int64) int64 {
		if n > arenaUnit {
			n &^= arenaUnit - 1
		}
		return n
	}
	sum = whole(sum)
	p.listCaches, p.blockCache = sum, sum
	p.Topology = p.store.PagedBytes(layout.In, sum)
	if p.c.NeighborCache == runs.NeighborAuto {
		p.neighborCache = neighborSize(sum * p.quarters / 4)
		taken := neighborBytes(p.neighborCache)
		p.blockCache, p.Topology = whole(sum-taken), p.Topology-taken
	}
	p.Neighbor = neighborBytes(p.neighborCache)
	p.Lists = &ListPlan{Blocks: p.blockCache, Neighbors: p.neighborCache}
}

// joinLists counts the neighbor cache with the topology, which takes turns with batches.
func (p *planner) joinLists() {
	p.Topology, p.Neighbor = p.Topology+p.Neighbor, 0
}

// neighborBytes is what a neighbor cache takes: the lists, and the directory of less than a
// sixteenth.
func neighborBytes(size int64) int64 { return arenaBytes(size) + arenaBytes(size/16) }

// neighborSize is the largest neighbor cache whose lists take so many bytes, with three leading
// bits, so that runs with nearly the same memory find the one that is kept. 0 is none.
func neighborSize(most int64) int64 {
	n := most
	for n >= neighborsLeast {
		n &^= 1<<(bits.Len64(uint64(n))-3) - 1
		if arenaBytes(n) <= most {
			return n
		}
		n--
	}
	return 0
}

// epochSeconds is what splits are compared by: an epoch, with its share of what is made once.
func (p *planner) epochSeconds() float64 {
	t := p.Forecast.Time
	if p.Lists != nil {
		t += p.Lists.Make / float64(p.c.Epochs)
	}
	return t
}

// loaded is how many bytes are read when the topology is opened for a superbatch.
func (s *prices) loaded(p *planner) float64 {
	switch {
	case p.Superbatch.Overlap:
		return 0
	case p.Resident:
		return float64(s.topologyBytes)
	}
	return float64(p.neighborCache)
}

// listTrial has what sampling reads with caches of lists of some sizes, for a batch.
type listTrial struct {
	s         *prices
	open      func() (*layout.ListTrial, error)
	trial     *layout.ListTrial // nil until a size is tried that was not before
	name      string            // of the trace, in the profile
	batches   float64           // that are counted
	from      int               // the first hop that is
	block     float64           // bytes
	workers   int
	blocks    []int64 // sizes of caches, ascending
	neighbors []int64
	reads     map[layout.ListCaches]listReads
}

// listReads are layout.ListReads of a batch.
type listReads struct {
	Lists float64 `json:"lists"`
	Hits  float64 `json:"hits"`
	Reads float64 `json:"reads"`
}

// priceNeighbors tries neighbor caches, if one could save more in all epochs than it takes to make
// it. Memory: what is free.
func (t *trainer) priceNeighbors(ctx context.Context, s *prices, tr *trace,
	splits []*planner) error {
	wanted, saved := s.worthTrying(splits)
	if len(wanted) == 0 {
		return nil
	}
	if err := t.in.dropGraph(); err != nil {
		return err
	}
	cheapest := 0.0
	for i, p := range wanted {
		if err := t.priceMaking(ctx, s, p); err != nil {
			return err
		}
		if i == 0 || p.Lists.Make < cheapest {
			cheapest = p.Lists.Make
		}
	}
	if cheapest += t.trialSeconds(s); cheapest >= saved {
		s.listsWhy = fmt.Sprintf("no neighbor cache: it would take %.2gs to try and make, and "+
			"save less than %.2gs in all epochs", cheapest, saved)
		return nil
	}
	err := t.tryLists(ctx, s, tr, wanted)
	var full *mem.LimitError
	if errors.As(err, &full) {
		s.closeTrial()
		s.listsWhy = "no neighbor cache: there is no memory to try one"
		return nil
	}
	for _, p := range wanted { // a scan may have been timed
		if err == nil {
			err = t.priceMaking(ctx, s, p)
		}
	}
	return err
}

// worthTrying are the splits with a neighbor cache that would be the fastest if lists came for
// nothing, and the seconds that the run would save then.
func (s *prices) worthTrying(splits []*planner) (wanted []*planner, saved float64) {
	if s.noPaged {
		return nil, 0
	}
	best := 0.0
	for _, p := range splits {
		if time := s.forecast(p).Time; p.quarters == 0 && (best == 0 || time < best) {
			best = time
		}
	}
	free := *s
	free.paged, free.resident = nil, price{own: s.ownLeast()}
	for _, p := range splits {
		if p.Resident || p.quarters == 0 {
			continue
		}
		if time := free.forecast(p).Time; time < best {
			wanted = append(wanted, p)
			saved = max(saved, (best-time)*float64(p.c.Epochs))
		}
	}
	return wanted, saved
}

// trialSeconds is what a trial takes.
func (t *trainer) trialSeconds(s *prices) float64 {
	if t.cfg.NeighborsAhead {
		return 0
	}
	_, scans := t.in.store.NeighborScans((t.in.budget.Limit() - t.in.budget.Used()) / 2)
	return float64(scans) * t.scanSeconds(s)
}

// scanLists is the name in a profile of reading and scoring all lists.
const scanLists = "scan lists"

// scanSeconds is what reading and scoring all lists took; no less than reading if it was not done.
func (t *trainer) scanSeconds(s *prices) float64 {
	return max(float64(s.topologyBytes)/s.device.Sequential, s.device.Timed[scanLists].Seconds)
}

// priceMaking finds out what the neighbor cache of a split takes to make.
func (t *trainer) priceMaking(ctx context.Context, s *prices, p *planner) error {
	kept, err := t.in.store.NeighborsKept(ctx, t.in.dev, layout.In, p.neighborCache)
	if err != nil {
		return err
	}
	if kept || t.cfg.NeighborsAhead {
		return nil
	}
	scratch := p.blockCache // as layout takes it
	if p.Superbatch == nil || p.Superbatch.Overlap {
		scratch = max(scratch, (p.Memory-p.Fixed-p.Model-p.Neighbor)/2)
	}
	scans, _ := t.in.store.NeighborScans(scratch)
	p.Lists.Make = float64(scans)*t.scanSeconds(s) + float64(p.neighborCache)/s.device.Sequential
	return nil
}

// tryLists plays the trace through caches of some of the sizes that splits have, unless the profile
// has what came of it.
func (t *trainer) tryLists(ctx context.Context, s *prices, tr *trace, wanted []*planner) error {
	hops, from, counted := tr.frontiers(t.cfg.Fanout)
	l := &listTrial{s: s, batches: float64(counted), from: from,
		name:  fmt.Sprint(t.stepName(), t.cfg.Seed, len(tr.batches)),
		block: float64(t.in.meta.BlockBytes), workers: samplers(t.cfg.Threads),
		reads: map[layout.ListCaches]listReads{}}
	l.open = func() (*layout.ListTrial, error) { return t.openTrial(ctx, s, hops) }
	s.tried = l
	for _, p := range wanted {
		l.neighbors = append(l.neighbors, p.neighborCache)
		l.blocks = append(l.blocks, p.blockCache)
	}
	for _, p := range s.paged { // what was measured is within
		l.blocks = append(l.blocks, p.blocks)
	}
	l.blocks = thinned(l.blocks)
	l.neighbors = append([]int64{0}, thinned(l.neighbors)...)
	for _, n := range l.neighbors {
		for _, b := range l.blocks {
			if _, err := l.try(b, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// openTrial scores all lists, and times that.
func (t *trainer) openTrial(ctx context.Context, s *prices,
	hops []layout.Frontier) (trial *layout.ListTrial, err error) {
	_, scans := t.in.store.NeighborScans((t.in.budget.Limit() - t.in.budget.Used()) / 2)
	w, err := clocked(1, func() error {
		trial, err = t.in.store.TryLists(ctx, t.in.dev, layout.In, hops, t.in.budget)
		return err
	})
	if err == nil {
		_, err = s.device.timed(scanLists, func() (work, error) {
			return w.times(1 / float64(max(1, scans))), nil
		})
	}
	return trial, err
}

// closeTrial ends the trial.
func (s *prices) closeTrial() {
	if s.tried != nil && s.tried.trial != nil {
		s.tried.trial.Close()
	}
	s.tried = nil
}

// frontiers are the hops of the last batches of a trace, of which the later half is counted: from
// hop number from on.
func (t *trace) frontiers(fanout []int) (hops []layout.Frontier, from, counted int) {
	first, lists := len(t.batches), 0
	for first > 0 && len(t.batches)-first < triedBatches {
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
				draws = layout.AllEntries
			}
			hops = append(hops, layout.Frontier{Nodes: nodes[off[k]:off[k+1]], Draws: draws})
		}
	}
	return hops, from, counted
}

// thinned picks some sizes, with the smallest and the largest.
func thinned(sizes []int64) (picked []int64) {
	sizes = slices.Compact(slices.Sorted(slices.Values(sizes)))
	for i := range triedSizes {
		picked = append(picked, sizes[i*(len(sizes)-1)/(triedSizes-1)])
	}
	return slices.Compact(picked)
}

// try plays the trace through caches of some sizes, or finds in the profile what came of it.
func (l *listTrial) try(blocks, neighbors int64) (r listReads, err error) {
	c := layout.ListCaches{Blocks: blocks, Neighbors: neighbors, Sessions: l.workers}
	if r, ok := l.reads[c]; ok {
		return r, nil
	}
	r, err = l.s.device.tried(fmt.Sprint(l.name, c), func() (listReads, error) {
		return l.play(c)
	})
	if err == nil {
		l.reads[c] = r
	}
	return r, err
}

// play plays the trace through caches.
func (l *listTrial) play(c layout.ListCaches) (r listReads, err error) {
	if l.trial == nil {
		if l.trial, err = l.open(); err != nil {
			return r, err
		}
	}
	got, err := l.trial.Reads(c, l.from)
	if err != nil {
		return r, fmt.Errorf("train: try caches of lists: %w", err)
	}
	return listReads{Lists: float64(got.Lists) / l.batches, Hits: float64(got.Hits) / l.batches,
		Reads: float64(got.Reads) / l.batches}, nil
}

// at is what a batch takes of caches of any sizes.
func (l *listTrial) at(blocks, neighbors int64) listReads {
	if r, ok := l.reads[layout.ListCaches{Blocks: blocks, Neighbors: neighbors,
		Sessions: l.workers}]; ok {
		return r
	}
	b0, b1, x := around(l.blocks, blocks)
	n0, n1, y := around(l.neighbors, neighbors)
	at := func(b, n int64) listReads {
		return l.reads[layout.ListCaches{Blocks: b, Neighbors: n, Sessions: l.workers}]
	}
	return at(b0, n0).mix(at(b1, n0), x).mix(at(b0, n1).mix(at(b1, n1), x), y)
}

// around finds the neighbors of a size, and where it is between them.
func around(sizes []int64, size int64) (a, b int64, at float64) {
	i, _ := slices.BinarySearch(sizes, size)
	a, b = sizes[max(0, i-1)], sizes[min(i, len(sizes)-1)]
	if a >= b || size <= a {
		return a, b, 0
	}
	return a, b, min(1, float64(size-a)/float64(b-a))
}

// mix is the way from r to o by a share.
func (r listReads) mix(o listReads, at float64) listReads {
	mix := func(a, b float64) float64 { return a + at*(b-a) }
	return listReads{Lists: mix(r.Lists, o.Lists), Hits: mix(r.Hits, o.Hits),
		Reads: mix(r.Reads, o.Reads)}
}

// price is what lists cost a batch with the caches of a split. What cores do of their own goes by
// the blocks read, as it was measured with the least and the largest block cache: a list takes the
// same wherever it is found.
func (l *listTrial) price(p *planner) price {
	reads, s := l.at(p.blockCache, p.neighborCache).Reads, l.s
	c := s.device.reading(reads, reads*l.block)
	least, most := s.paged[0], s.paged[len(s.paged)-1]
	many, few := l.at(least.blocks, 0).Reads, l.at(most.blocks, 0).Reads
	c.own = most.own
	if many > few {
		c.own += (reads - few) * max(0, least.own-most.own) / (many - few)
	}
	c.own = max(c.own, s.ownLeast())
	return c
}

// ownLeast is what sampling takes of cores at least.
func (s *prices) ownLeast() float64 {
	least := s.resident.own
	for _, p := range s.paged {
		least = min(least, p.own)
	}
	return least
}

// tellLists completes what the best split says of its lists: what neighbor caches would bring. They
// are tried at the very sizes.
func (s *prices) tellLists(best *planner, splits []*planner) error {
	l := best.Lists
	if l != nil && s.tried != nil {
		if _, err := s.tried.try(l.Blocks, l.Neighbors); err != nil {
			return err
		}
	}
	switch {
	case l == nil:
	case s.tried == nil:
		l.Why = s.listsWhy
	case best.quarters > 0:
		r := s.tried.at(best.blockCache, best.neighborCache)
		l.Hit = r.Hits / max(1, r.Lists)
		made := "kept from before"
		if best.c.NeighborsAhead {
			made = "made before the run"
		}
		if l.Make > 0 {
			made = fmt.Sprintf("%.2gs to make", l.Make)
		}
		l.Why = fmt.Sprintf("neighbor cache %s, %s: %.0f%% of the lists",
			mem.FormatSize(l.Neighbors), made, 100*l.Hit)
	default:
		l.Why = "no neighbor cache: " + s.bestNeighbors(splits)
	}
	return nil
}

// bestNeighbors says what the best of the splits with a neighbor cache would take.
func (s *prices) bestNeighbors(splits []*planner) string {
	var best *planner
	for _, p := range splits {
		if p.quarters > 0 && p.Forecast != nil &&
			(best == nil || p.epochSeconds() < best.epochSeconds()) {
			best = p
		}
	}
	if best == nil {
		return "none was tried"
	}
	what := fmt.Sprintf("with %s %.3gs an epoch", mem.FormatSize(best.neighborCache),
		best.Forecast.Time)
	if best.Lists.Make > 0 {
		what += fmt.Sprintf(", and %.2gs to make it", best.Lists.Make)
	}
	return what
}
