package plan

import (
	"slices"

	"gdb/internal/mem"
	"gdb/train/setting"
)

// AutoCaches lists the policies that --cache auto chooses from: on the graphs that were tried no
// other policy hits more often than the best of these.
var AutoCaches = []string{"static", "sieve", setting.CacheBelady}

// blockShares lists the shares, in sixteenths, of the memory left beside batches that the caches of
// a paged topology may get.
var blockShares = []int64{4, 0, 1, 2, 8, 12}

// splitWay names one way to split the memory; Split.take works out its sizes.
type splitWay struct {
	cache    string
	resident bool
	form     int   // index into Facts.residentForms
	blocks   int64 // sixteenths of the memory left that the caches of a paged topology get
	quarters int64 // quarters of that which the neighbor cache gets
	passes   bool  // batches are drawn together, in passes through the lists
	staged   bool  // rows outside the static cache are read ahead for many batches at once
	ready    int   // gathered batches that wait for the step, or inTurn

	overlap, inPlace, sweepAhead bool  // of superbatches
	stage                        int64 // one in stage of a batch's rows may wait after reading
}

// ways lists the ways to split the memory that the settings allow. The order matters where costs
// are not known: the first that fits is taken.
func (p *Split) ways() (all []splitWay) {
	caches := []string{p.Facts.Cache}
	if p.Facts.Cache == "auto" {
		caches = p.autoCaches()
	}
	if p.Facts.Dim == 0 {
		caches = []string{"none"}
	}
	var topologies []splitWay
	for i := range p.Facts.residentForms() {
		topologies = append(topologies, splitWay{resident: true, form: i})
	}
	if p.Facts.mayPage() {
		for _, n := range blockShares {
			for _, q := range p.neighborQuarters() {
				topologies = append(topologies, splitWay{blocks: n, quarters: q})
			}
			if p.Facts.Passes && p.Facts.NeighborCache <= 0 {
				topologies = append(topologies, splitWay{blocks: n, passes: true})
			}
		}
	}
	for _, w := range topologies {
		for _, w.ready = range []int{inTurn, 0, 1, readyBatches} {
			if w.ready == inTurn && p.Facts.Lent > 0 {
				continue // the next is gathered while others have this one
			}
			for _, w.cache = range caches {
				if w.cache != setting.CacheBelady {
					all = append(all, w)
					if staged := w; w.passes && w.cache == "static" && p.Facts.Lent == 0 &&
						p.OnDevice.Cached() == 0 {
						staged.staged = true
						all = append(all, staged)
					}
				} else if w.ready < readyBatches && w.ready != 0 && (w.resident || w.blocks == 0) {
					all = append(all, p.superbatchWays(w)...)
				}
			}
		}
	}
	return all
}

// autoCaches returns the policies to choose from. A superbatch plans all rows of its batches, so
// where a device keeps some rows the other policies read less; and superbatches cannot serve
// batches that are lent.
func (p *Split) autoCaches() []string {
	if p.OnDevice.Cached() == 0 && p.Facts.Lent == 0 {
		return AutoCaches
	}
	return slices.DeleteFunc(slices.Clone(AutoCaches), func(cache string) bool {
		return cache == setting.CacheBelady
	})
}

// take fills in the sizes of a way to split the memory, and returns the least memory with which
// that way would work. The split does not fit if afterwards Left is below 0 or short is set.
func (p *Split) take(w splitWay) (least int64, err error) {
	p.quarters, p.passes = w.quarters, w.passes
	if w.resident {
		p.setResident(p.Facts.residentForms()[w.form])
	} else {
		p.setPaged(pagedCacheLeast)
	}
	if w.cache == setting.CacheBelady {
		return p.takeSuperbatch(w)
	}
	p.Step = p.Facts.StepCopied
	p.setReady(w.ready)
	least = p.Memory - p.Left()
	if room := p.Left(); !w.resident && room > 0 {
		p.setPaged(pagedCacheLeast + room*w.blocks/16)
	}
	p.takeFeatures(w.cache)
	p.short = !p.drawsTogether() || w.staged && !p.stage()
	return least, nil
}

// takeFeatures gives the memory that is left to the feature cache, and settles its policy: all rows
// where they fit, none where a cache would be too small to help.
func (p *Split) takeFeatures(cache string) {
	dim := int64(p.Facts.Dim)
	all, room := mem.ArenaBytes(int64(p.Facts.Nodes)*dim*4), max(0, p.Left())
	if p.Facts.FeatureCache > 0 {
		room = min(room, p.Facts.FeatureCache)
	}
	step := p.Step
	if p.Facts.InPlaceResident {
		step = p.Facts.StepInPlace
	}
	p.Cache, p.Features = cache, room
	switch {
	case dim == 0 || cache == "none" || room < dim*4*rowsLeast:
		p.Cache, p.Features = "none", 0
	case all+step-p.Step <= room:
		p.Cache, p.Features, p.Step = "all", all, step
	case p.OnDevice.Cached() == int64(p.Facts.Nodes): // there are no others
		p.Cache, p.Features = "none", 0
	}
}

// holdsAll returns the split that keeps the lists and all features in memory, with the fastest form
// of lists that fits; nil if none does.
func (p *Split) holdsAll() *Split {
	if p.Facts.Cache == "none" && p.Facts.Dim > 0 {
		return nil
	}
	for form := range p.Facts.residentForms() {
		for _, ready := range []int{readyBatches, 1, 0} {
			try := p.copied()
			_, err := try.take(splitWay{cache: "static", resident: true, form: form, ready: ready})
			if err == nil && try.Left() >= 0 && (try.Cache == "all" || p.Facts.Dim == 0) {
				return try
			}
		}
	}
	return nil
}

// copied returns a copy of the split that can be changed without changing p.
func (p *Split) copied() *Split {
	c, plan := *p, *p.Plan
	c.Plan = &plan
	return &c
}

// Splits returns the ways to split the memory that fit, without those that another one beats in
// every respect. If none fits the error is a TooSmallError.
func Splits(f *Facts) (all []*Split, err error) {
	if err := f.checkTopology(); err != nil {
		return nil, err
	}
	p := begin(f)
	if err := p.OnDevice.fits(); err != nil {
		return nil, err
	}
	if one := p.holdsAll(); one != nil {
		return []*Split{one}, nil
	}
	small := &TooSmallError{Memory: f.Memory}
	for _, w := range p.ways() {
		try := p.copied()
		need, err := try.take(w)
		if err != nil {
			return nil, err
		}
		if small.Least == 0 || need < small.Least {
			small.Least, small.Nearest = need, try.Plan
		}
		if !try.short && try.Left() >= 0 && !try.beaten(all) {
			all = append(all, try)
		}
	}
	if len(all) == 0 {
		return nil, small
	}
	return all, nil
}

// beaten reports whether one of the others, of the same kind, holds the topology in a form that is
// no slower and holds at least as many features.
func (p *Split) beaten(others []*Split) bool {
	for _, o := range others {
		same := o.Cache == p.Cache && o.Ready == p.Ready && o.InTurn == p.InTurn &&
			(o.Superbatch == nil) == (p.Superbatch == nil)
		if s, q := o.Superbatch, p.Superbatch; same && s != nil {
			same = s.Overlap == q.Overlap && s.InPlace == q.InPlace &&
				s.SweepAhead == q.SweepAhead && s.StageRows == q.StageRows
		}
		if same && o.CacheBytes() >= p.CacheBytes() &&
			(o.Resident && o.slowdown() <= p.slowdown() || !o.Resident && !p.Resident &&
				o.passes == p.passes && o.Staged() == p.Staged() &&
				o.PassBytes() >= p.PassBytes() &&
				o.BlockCache >= p.BlockCache &&
				o.NeighborCache >= p.NeighborCache) {
			return true
		}
	}
	return false
}
