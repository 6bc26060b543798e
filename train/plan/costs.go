package plan

import (
	"cmp"
	"math"
	"slices"

	"gdb/layout/topology"
)

// Costs are what the stages of a run cost for a batch, by what they are given, as measured.
type Costs struct {
	Sampled              int     // batches
	Batches              uint64  // of an epoch
	Full                 float64 // batches of an epoch, the last one in part
	Nodes, Edges, Unique float64
	RowBytes             float64
	StoredBytes          float64 // of a row in the store
	TopologyBytes        int64   // of the file
	OnDevice             float64 // share of rows that a device keeps
	Inner                float64 // share of rows that are copied if others are read in place
	Device               *Profile
	Step, StepInPlace    Work // of a step, also with rows read in place

	Resident Price             // of lists, sampled from a resident topology
	Paged    []PagedPrice      // by size, ascending
	NoPaged  bool              // none is worth it
	Floor    *ReadFloor        // of paged lists; nil if not known
	Tried    *ListTable        // of neighbor caches; nil if none is worth it
	ListsWhy string            // why none was tried
	Kept     map[int64]bool    // sizes of neighbor caches that the store has
	Curves   map[string]*Curve // by Split.CurveName

	// ScanSeconds is what it takes to read and score all lists, and Scans how often that is done
	// to make a neighbor cache with so much memory.
	ScanSeconds float64
	Scans       func(scratch int64) int

	Grows       Footprint
	Apart, Once ReadTable // rows of a batch that were not seen before, and all in one pass
}

// Price is what lists cost a batch: reading so many bytes, for which it waits, and cores work; and
// what cores do of their own.
type Price struct{ Bytes, Wait, CPU, Own float64 }

// work is both, one after the other, of so many workers.
func (p Price) work(workers float64) Work {
	return Work{(p.Wait + p.Own) / workers, p.CPU + p.Own}
}

// PagedPrice is what lists cost with a block cache.
type PagedPrice struct {
	Blocks int64
	Price
}

// Choose returns the split with the least time; of the others the best of each kind are its rivals.
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

// InPlace says whether steps read rows where they are kept: see Facts.
func (s *Costs) InPlace(p *Split) bool {
	if p.Superbatch != nil {
		return p.Superbatch.InPlace
	}
	return p.Cache == "all" && p.Facts.InPlaceResident
}

// stepOf is what a step takes with a split.
func (s *Costs) stepOf(p *Split) Work {
	if s.InPlace(p) {
		return s.StepInPlace
	}
	return s.Step
}

// lists is what sampling costs with a split.
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

// paged is what sampling costs with a paged topology by what was measured; if nothing was, as if
// lists came for nothing.
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

// formSlowdown is how many times as long sampling takes with lists of a form as with plain ones, as
// docs/format/topology.md has it measured.
var formSlowdown = map[topology.Form]float64{topology.Plain: 1, topology.Packed: 1.1,
	topology.Compact: 2.3}

// Slowdown is that of a form; of none, as of paged lists, it is that of the form in which blocks of
// the file are as they are, if lists are coded: they are decoded in the same way.
func (s *Store) Slowdown(form topology.Form) float64 {
	coded := slices.ContainsFunc(s.Forms, func(f topology.FormBytes) bool {
		return f.Form == topology.Compact
	})
	if form == "" && coded {
		form = topology.Compact
	}
	return max(1, formSlowdown[form])
}

// slowdown is that of the form of the split's lists.
func (p *Split) slowdown() float64 { return p.Facts.Slowdown(p.Form) }

// known is the least time of a split of which all is known before lists are priced.
func (s *Costs) known(splits []*Split) float64 {
	least := math.Inf(1)
	for _, p := range splits {
		if (p.Resident || p.passes) && (p.Cache == "all" || !s.Curves[s.CurveName(p)].Bound) {
			least = min(least, s.forecast(p).Time)
		}
	}
	return least
}

// MayWin says whether a policy whose costs are a bound may be the fastest.
func (s *Costs) MayWin(cache string, splits []*Split) bool {
	known := s.known(splits)
	return slices.ContainsFunc(splits, func(p *Split) bool {
		return p.Cache == cache && s.forecast(p).Time <= known
	})
}

// worthALook is the share of the time of the best that is known that others have to stay below to
// be measured: a forecast is not better than that.
const worthALook = 0.97

// Hopeful are, of the splits with a paged topology that may cost less than all others by what is
// known, those with the least and the largest block cache; nil for none.
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

// Complete fills in what the best of the splits says of itself, once costs are known at its very
// sizes.
func (s *Costs) Complete(best *Split, splits []*Split) {
	s.tellLists(best, splits)
	best.Forecast = s.forecast(best)
}
