package plan

import (
	"math"
	"slices"
)

// Samplers returns how many goroutines sample beside compute threads where nothing was measured: a
// batch takes about a tenth of the core time to sample that it takes the CPU to compute.
func Samplers(compute int) int { return max(1, compute/8) }

// samplersSpare is how much faster than the other stages all samplers should be together, since
// batches differ in size.
const samplersSpare = 1.25

// Samplers returns how many goroutines have to sample so that the other stages of a split do not
// wait for them: as many as sampling takes times as long as a batch takes in the slowest other
// stage or, if cores are short, as all cores take for the batch together. A thread computes, so
// there are no more samplers than threads.
func (s *Costs) Samplers(p *Plan) int {
	sample, gather, step := s.listPrice(p).work(1), s.gathering(p, s.rows(p)), s.stepOf(p)
	cycle := max(gather.Seconds, step.Seconds)
	if p.InTurn {
		cycle = gather.Seconds + step.Seconds
	}
	cycle = max(cycle, (sample.CPU+gather.CPU+step.CPU)/s.Device.Cores)
	if cycle <= 0 {
		return p.Samplers
	}
	n := math.Ceil(samplersSpare * sample.Seconds / cycle)
	return int(max(1, min(n, float64(p.facts.Threads))))
}

// WithSamplers returns a chosen split with as many samplers as its costs ask for. It returns best
// itself where that has them, where all threads sample in any case, and where no split that has
// them is forecast to be faster in the same memory.
func (s *Costs) WithSamplers(best *Plan) *Plan {
	n := s.Samplers(best)
	if best.Superbatch != nil || best.PassBytes() > 0 || n == best.Samplers {
		return best
	}
	f := *best.facts
	f.Samplers = n
	splits, err := Plans(&f)
	if err != nil { // it does not fit
		return best
	}
	splits = slices.DeleteFunc(splits, func(p *Plan) bool { return !s.priced(p) })
	if len(splits) == 0 {
		return best
	}
	more := s.Choose(splits)
	if more.epochSeconds() >= best.epochSeconds() {
		return best
	}
	more.Rivals = best.Rivals
	return more
}

// priced reports whether all that a split's forecast is made of was measured.
func (s *Costs) priced(p *Plan) bool {
	return p.Superbatch == nil && p.PassBytes() == 0 && (p.Resident || len(s.Paged) > 0) &&
		(p.Cache == "all" || s.Curves[s.CurveName(p)] != nil)
}
