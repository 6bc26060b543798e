package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
)

// Choose forecasts every split and returns the one whose epoch takes least. It records the best
// split of each other kind in its Rivals.
func (s *Costs) Choose(splits []*Plan) *Plan {
	splits = slices.DeleteFunc(slices.Clone(splits), func(p *Plan) bool {
		return s.NoPaged && !p.Resident && p.PassBytes() == 0 || s.Tried == nil && p.quarters > 0
	})
	for _, p := range splits {
		p.Forecast = s.forecast(p)
		if p.quarters > 0 {
			p.Lists.Make = s.MakeSeconds(p)
		}
	}
	slices.SortStableFunc(splits, func(a, b *Plan) int {
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

// epochSeconds returns the time by which splits are compared: an epoch, plus its share of
// what is done once.
func (p *Plan) epochSeconds() float64 {
	once := p.Forecast.Start
	if p.Lists != nil {
		once += p.Lists.Make
	}
	return p.Forecast.Time + once/float64(max(1, p.facts.Epochs))
}

// kind tells splits apart whose forecasts a user would compare: policies where they are chosen,
// else how lists and batches are held.
func (p *Plan) kind() string {
	if p.facts.Cache == "auto" {
		return p.Cache
	}
	return p.what()
}

// known returns the shortest epoch, in seconds, among the splits whose cost is known before paged
// lists are priced; infinity if there is none.
func (s *Costs) known(splits []*Plan) float64 {
	least := math.Inf(1)
	for _, p := range splits {
		listed := p.Resident || p.PassBytes() > 0
		if listed && (p.Cache == "all" || !s.Curves[s.CurveName(p)].Bound) {
			least = min(least, s.forecast(p).Time)
		}
	}
	return least
}

// MayWin reports whether a split with a policy whose costs are only a lower bound may still
// be the fastest.
func (s *Costs) MayWin(cache string, splits []*Plan) bool {
	known := s.known(splits)
	return slices.ContainsFunc(splits, func(p *Plan) bool {
		return p.Cache == cache && s.forecast(p).Time <= known
	})
}

// worthALook is how far below the best known time the lower bound of a split has to be for it to be
// measured: forecasts are not more exact than that.
const worthALook = 0.97

// Hopeful returns the two splits with a paged topology that are worth measuring: the ones with the
// smallest and with the largest block cache among those whose lower bound beats the best time known
// so far. Both are nil if there is none.
func (s *Costs) Hopeful(splits []*Plan) (least, most *Plan) {
	resident := worthALook * s.known(splits)
	for _, p := range splits {
		if p.Resident || p.PassBytes() > 0 || p.quarters > 0 || s.forecast(p).Time > resident {
			continue
		}
		if least == nil || p.Lists.Blocks < least.Lists.Blocks {
			least = p
		}
		if most == nil || p.Lists.Blocks > most.Lists.Blocks {
			most = p
		}
	}
	return least, most
}

// WorthTrying returns the splits with a neighbor cache that would be the fastest if reading lists
// cost nothing, and the most seconds that the run would save in that case.
func (s *Costs) WorthTrying(splits []*Plan) (wanted []*Plan, saved float64) {
	if s.NoPaged {
		return nil, 0
	}
	best := 0.0
	for _, p := range splits {
		if time := s.forecast(p).Time; p.quarters == 0 && (best == 0 || time < best) {
			best = time
		}
	}
	best *= worthALook
	free := *s
	free.Tried = nil
	for _, p := range splits {
		if p.Resident || p.quarters == 0 {
			continue
		}
		free.Paged = []PagedPrice{{Price: Price{Own: s.ownLeast(p)}}}
		if time := free.forecast(p).Time; time < best {
			wanted = append(wanted, p)
			saved = max(saved, (best-time)*float64(p.facts.Epochs))
		}
	}
	return wanted, saved
}

// Complete fills in what the best split tells the user of its lists, and forecasts it again, once
// costs were measured at its exact sizes.
func (s *Costs) Complete(best *Plan, splits []*Plan) {
	s.tellLists(best, splits)
	best.Forecast = s.forecast(best)
}

// tellLists fills in what the best split tells the user of its lists: why it has a neighbor cache
// of that size, or what one would have cost.
func (s *Costs) tellLists(best *Plan, splits []*Plan) {
	l := best.Lists
	switch {
	case l == nil:
	case s.Tried == nil:
		l.Why = s.ListsWhy
	case best.quarters > 0:
		r := s.Tried.at(l.Blocks, l.Neighbors)
		l.Hit = r.Hits / max(1, r.Lists)
		made := "kept from before"
		if best.facts.NeighborsAhead {
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
}

// bestNeighbors says how long an epoch would take with the best split that has a neighbor cache.
func (s *Costs) bestNeighbors(splits []*Plan) string {
	var best *Plan
	for _, p := range splits {
		if p.quarters > 0 && p.Forecast != nil &&
			(best == nil || p.epochSeconds() < best.epochSeconds()) {
			best = p
		}
	}
	if best == nil {
		return "none was tried"
	}
	what := fmt.Sprintf("with %s %s an epoch", mem.FormatSize(best.Lists.Neighbors),
		seconds(best.Forecast.Time))
	if best.Lists.Make > 0 {
		what += fmt.Sprintf(", and %s to make it", seconds(best.Lists.Make))
	}
	return what
}

// Record returns the part of a chosen plan that the catalog keeps, so that a run of the same
// settings gets the same plan without measuring again. The device has a place of its own.
func (p *Plan) Record() Plan {
	record := *p
	if p.Forecast != nil {
		f := *p.Forecast
		f.Device = nil
		record.Forecast = &f
	}
	return record
}

// Again makes the plan again from its record, with runtime files as large as the disk has room for
// now. It returns nil where the program has grown so that the plan does not fit any more, or where
// the disk has less than half of the room.
func (p Plan) Again(f *Facts, d *Profile) *Plan {
	p.facts, p.Fixed = f, f.Program
	if p.Forecast != nil {
		forecast := *p.Forecast
		forecast.Device = d
		p.Forecast = &forecast
	}
	if p.OnDevice != nil {
		f.Device.Step, f.Device.Given = p.OnDevice.Step, p.OnDevice.Given
		f.BatchNodes, f.BatchEdges = p.BatchNodes, p.BatchEdges
		f.Device.Launches = p.OnDevice.Launches
	}
	if p.OnDevice = f.planDevice(); p.Left() < 0 || p.OnDevice.fits() != nil {
		return nil
	}
	if s := p.Superbatch; s != nil {
		if f.Storage < s.Storage/2 {
			return nil
		}
		less := *s
		less.Storage = min(s.Storage, f.Storage)
		p.Superbatch = &less
	}
	return &p
}
