package plan

import (
	"cmp"
	"math"
	"slices"

	"gdb/layout/topology"
)

// Costs holds what the stages of a run cost for a batch, as a function of the memory they are
// given, as measured by package probe. Times are seconds.
type Costs struct {
	Sampled              int     // batches that were measured
	Batches              uint64  // in an epoch
	Full                 float64 // batches of an epoch, the last one as a fraction
	Nodes, Edges, Unique float64
	RowBytes             float64
	StoredBytes          float64 // of a row in the store
	TopologyBytes        int64   // of the file
	OnDevice             float64 // share of a batch's rows that the device keeps
	Inner                float64 // share of rows that are copied when others are read in place
	Device               *Profile
	Step, StepInPlace    Work // a step that copies its rows, and one that reads them in place

	Resident Price             // of lists, sampled from a resident topology
	Paged    []PagedPrice      // by size of the block cache, ascending
	NoPaged  bool              // no split with a paged topology is worth measuring
	Floor    *ReadFloor        // of paged lists; nil if not known
	Tried    *ListTable        // of neighbor caches; nil if none is worth it
	ListsWhy string            // why no neighbor cache was tried
	Kept     map[int64]bool    // sizes of neighbor caches that the store has
	Curves   map[string]*Curve // by Split.CurveName

	// ScanSeconds is how long reading and scoring all lists takes. Scans returns how often that is
	// done to make a neighbor cache when scratch bytes of memory are free for it.
	ScanSeconds float64
	Scans       func(scratch int64) int

	Grows       Footprint
	Apart, Once ReadTable // rows of a batch that were not seen before, and all in one pass
}

// Price is what reading lists costs a batch. Bytes are read, Wait is the time spent waiting for
// them, and CPU the core time that goes into reading; Own is the core time of sampling itself.
// Times are seconds.
type Price struct{ Bytes, Wait, CPU, Own float64 }

// work returns the price as Work: reading and sampling follow each other, shared by a number of
// workers that sample different batches.
func (p Price) work(workers float64) Work {
	return Work{(p.Wait + p.Own) / workers, p.CPU + p.Own}
}

// PagedPrice is what lists cost with a block cache of Blocks bytes.
type PagedPrice struct {
	Blocks int64
	Price
}

// Choose forecasts every split and returns the one whose epoch takes least. It records the best
// split of each other kind in its Rivals.
func (s *Costs) Choose(splits []*Split) *Split {
	splits = slices.DeleteFunc(slices.Clone(splits), func(p *Split) bool {
		return s.NoPaged && !p.Resident && !p.passes || s.Tried == nil && p.quarters > 0
	})
	for _, p := range splits {
		p.Forecast = s.forecast(p)
		if p.quarters > 0 {
			p.Lists.Make = s.MakeSeconds(p)
		}
	}
	slices.SortStableFunc(splits, func(a, b *Split) int {
		return cmp.Compare(a.epochSeconds(), b.epochSeconds())
	})
	best := splits[0]
	const rivals = 3
	seen := map[string]bool{best.kind(): true}
	for _, p := range splits[1:] {
		if kind := p.kind(); !seen[kind] && len(best.Rivals) < rivals {
			seen[kind] = true
			best.Rivals = append(best.Rivals, Rival{What: p.what(), Time: p.Forecast.Time,
				AtLeast: p.Cache != "all" && s.Curves[s.CurveName(p)].Bound})
		}
	}
	return best
}

// kind tells splits apart whose forecasts a user would compare: policies where they are chosen,
// else how lists and batches are held.
func (p *Split) kind() string {
	if p.Facts.Cache == "auto" {
		return p.Cache
	}
	return p.what()
}

// InPlace reports whether steps read rows where they are kept, instead of copying them: see Steps.
func (s *Costs) InPlace(p *Split) bool {
	if p.Superbatch != nil {
		return p.Superbatch.InPlace
	}
	return p.Cache == "all" && p.Facts.InPlaceResident
}

// stepOf returns what a step costs with a split: rows are read in place or copied.
func (s *Costs) stepOf(p *Split) Work {
	if s.InPlace(p) {
		return s.StepInPlace
	}
	return s.Step
}

// lists returns what sampling a batch costs with a split.
func (s *Costs) lists(p *Split) Price {
	switch {
	case p.passes:
		return s.passed(p)
	case p.Resident:
		price := s.Resident
		price.Own *= p.slowdown()
		return price
	case s.Tried != nil:
		return s.Tried.price(s, p)
	}
	price, floor := s.paged(p), s.Floor.price(s, p)
	if price.Wait < floor.Wait {
		price.Bytes, price.Wait, price.CPU = floor.Bytes, floor.Wait, max(price.CPU, floor.CPU)
	}
	return price
}

// paged returns what sampling costs with a paged topology, on a line between the block caches that
// were measured. Where none was, it counts no reading at all: a lower bound.
func (s *Costs) paged(p *Split) Price {
	if len(s.Paged) == 0 {
		return Price{Own: s.ownLeast(p)}
	}
	first, last := s.Paged[0], s.Paged[len(s.Paged)-1]
	at := 0.0
	if last.Blocks > first.Blocks {
		at = float64(p.BlockCache-first.Blocks) / float64(last.Blocks-first.Blocks)
	}
	at = min(1, max(0, at))
	mix := func(a, b float64) float64 { return a + at*(b-a) }
	return Price{Bytes: mix(first.Bytes, last.Bytes), Wait: mix(first.Wait, last.Wait),
		CPU: mix(first.CPU, last.CPU), Own: mix(first.Own, last.Own)}
}

// formSlowdown says how many times as long sampling takes from lists of a form as from plain ones,
// as docs/format/topology.md has it measured.
var formSlowdown = map[topology.Form]float64{topology.Plain: 1, topology.Packed: 1.1,
	topology.Compact: 2.3}

// Slowdown returns how many times as long sampling takes from lists of a form as from plain ones.
// Paged lists have the form "": if the file's lists are coded they are decoded in the same way as
// the compact form, and cost the same.
func (s *Store) Slowdown(form topology.Form) float64 {
	coded := slices.ContainsFunc(s.Forms, func(f topology.FormBytes) bool {
		return f.Form == topology.Compact
	})
	if form == "" && coded {
		form = topology.Compact
	}
	return max(1, formSlowdown[form])
}

// slowdown returns how many times as long sampling takes with the split's lists as with plain ones.
func (p *Split) slowdown() float64 { return p.Facts.Slowdown(p.Form) }

// known returns the shortest epoch, in seconds, among the splits whose cost is known before paged
// lists are priced; infinity if there is none.
func (s *Costs) known(splits []*Split) float64 {
	least := math.Inf(1)
	for _, p := range splits {
		if (p.Resident || p.passes) && (p.Cache == "all" || !s.Curves[s.CurveName(p)].Bound) {
			least = min(least, s.forecast(p).Time)
		}
	}
	return least
}

// MayWin reports whether a split with a policy whose costs are only a lower bound may still
// be the fastest.
func (s *Costs) MayWin(cache string, splits []*Split) bool {
	known := s.known(splits)
	return slices.ContainsFunc(splits, func(p *Split) bool {
		return p.Cache == cache && s.forecast(p).Time <= known
	})
}

// worthALook is how far below the best known time the lower bound of a split has to be for it to be
// measured: forecasts are not more exact than that.
const worthALook = 0.97

// Hopeful returns the two splits with a paged topology that are worth measuring: the ones with the
// smallest and with the largest block cache among those whose lower bound beats the best time known
// so far. Both are nil if there is none.
func (s *Costs) Hopeful(splits []*Split) (least, most *Split) {
	resident := worthALook * s.known(splits)
	for _, p := range splits {
		if p.Resident || p.passes || p.quarters > 0 || s.forecast(p).Time > resident {
			continue
		}
		if least == nil || p.BlockCache < least.BlockCache {
			least = p
		}
		if most == nil || p.BlockCache > most.BlockCache {
			most = p
		}
	}
	return least, most
}

// Complete fills in what the best split tells the user of its lists, and forecasts it again, once
// costs were measured at its exact sizes.
func (s *Costs) Complete(best *Split, splits []*Split) {
	s.tellLists(best, splits)
	best.Forecast = s.forecast(best)
}
