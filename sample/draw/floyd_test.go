package draw

import (
	"testing"

	"gdb/internal/rng"
	"gdb/sample/sampletest"
)

// chooser draws len(take) of d positions.
type chooser func(draw *drawer, d uint32, take []uint32)

// ours chooses as the sampler does.
func ours(draw *drawer, d uint32, take []uint32) {
	if len(take) <= scanMax {
		floydScan(draw, d, take)
		return
	}
	var slots [256]uint32
	floydSet(draw, d, take, slots[:])
}

// biased is the variant of Floyd's algorithm whose draw leaves out the last position.
func biased(draw *drawer, d uint32, take []uint32) {
	for j := range take {
		limit := d - uint32(len(take)) + uint32(j) + 1
		p := draw.below(limit - 1)
		for _, q := range take[:j] {
			if q == p {
				p = limit - 1
				break
			}
		}
		take[j] = p
	}
}

// uniformTrials is enough to see the biased variant at every degree: it gives each of the last k
// positions the probability (k-1)/d, so the fewer the larger the list is.
func uniformTrials(d uint32) uint64 { return 20000 + 500*uint64(d) }

const pairTrials = 20000

// positionsStatistic is chi-square with d-1 degrees of freedom for uniform choices without
// replacement: the counts of positions vary by the factor (1-k/d) less than independent ones, and
// their sum is fixed.
func positionsStatistic(choose chooser, d uint32, k int) (statistic, dof float64) {
	counts, take := make([]float64, d), make([]uint32, k)
	for trial := range uniformTrials(d) {
		draw := drawer{stream: rng.NewStream(rng.Sub(rng.Key(11, uint64(d), uint64(k)), trial))}
		choose(&draw, d, take)
		for _, p := range take {
			counts[p]++
		}
	}
	share, trials := float64(k)/float64(d), float64(uniformTrials(d))
	for _, n := range counts {
		diff := n - trials*share
		statistic += diff * diff
	}
	dof = float64(d) - 1
	return statistic / (trials * share * (1 - share)) * dof / float64(d), dof
}

// pairsStatistic takes one pair of each choice, at places drawn apart from it: all pairs of
// positions are equally likely, and trials are independent. Positions are put in at most eight
// groups.
func pairsStatistic(choose chooser, d uint32, k int) (statistic, dof float64) {
	groups := min(d, 8)
	group := func(p uint32) uint32 { return uint32(uint64(p) * uint64(groups) / uint64(d)) }
	size := make([]float64, groups)
	for p := range d {
		size[group(p)]++
	}
	counts, take := make([]float64, groups*groups), make([]uint32, k)
	for trial := range uint64(pairTrials) {
		draw := drawer{stream: rng.NewStream(rng.Sub(rng.Key(12, uint64(d), uint64(k)), trial))}
		choose(&draw, d, take)
		other := rng.NewStream(rng.Key(13, trial))
		i := other.Below(uint64(k))
		j := (i + 1 + other.Below(uint64(k-1))) % uint64(k)
		a, b := group(take[i]), group(take[j])
		counts[min(a, b)*groups+max(a, b)]++
	}
	pairs := float64(d) * float64(d-1) / 2
	for a := range groups {
		for b := a; b < groups; b++ {
			cell := size[a] * size[b]
			if a == b {
				cell = size[a] * (size[a] - 1) / 2
			}
			if cell == 0 {
				continue
			}
			want := pairTrials * cell / pairs
			diff := counts[a*groups+b] - want
			statistic += diff * diff / want
			dof++
		}
	}
	return statistic, dof - 1
}

func TestChoiceIsUniform(t *testing.T) {
	for _, c := range []struct {
		d uint32
		k int
	}{{2, 1}, {3, 1}, {3, 2}, {5, 2}, {10, 3}, {16, 15}, {33, 32}, {64, 10}, {65, 10}, {100, 32},
		{100, 33}, {100, 64}, {200, 100}, {1000, 25}} {
		if testing.Short() && c.d > 100 {
			continue
		}
		got, dof := positionsStatistic(ours, c.d, c.k)
		if bound := sampletest.ChiSquareBound(dof); got > bound {
			t.Errorf("%d of %d: positions: chi-square %.1f over %.1f", c.k, c.d, got, bound)
		}
		// The same test must see the biased variant, or it shows nothing.
		wrong, _ := positionsStatistic(biased, c.d, c.k)
		if wrong <= sampletest.ChiSquareBound(dof) {
			t.Errorf("%d of %d: chi-square %.1f of the biased variant is taken for uniform",
				c.k, c.d, wrong)
		}
		t.Logf("%d of %d: positions: %.1f, biased variant %.0f, bound %.1f", c.k, c.d, got, wrong,
			sampletest.ChiSquareBound(dof))
		if c.k < 2 || c.d < 4 {
			continue // one pair, or all pairs alike
		}
		got, dof = pairsStatistic(ours, c.d, c.k)
		if bound := sampletest.ChiSquareBound(dof); got > bound {
			t.Errorf("%d of %d: pairs: chi-square %.1f over %.1f", c.k, c.d, got, bound)
		}
		wrong, _ = pairsStatistic(biased, c.d, c.k)
		t.Logf("%d of %d: pairs: %.1f, biased variant %.0f, bound %.1f", c.k, c.d, got, wrong,
			sampletest.ChiSquareBound(dof))
	}
}

// Draws below 3*2^30 are where leaving out the rejection shows most: a third of the results would
// come twice as often.
func TestDrawsAreUniform(t *testing.T) {
	const n, trials = 3 << 30, 30000
	statistic := func(below func(*drawer) uint32) (x float64) {
		counts := [3]float64{}
		draw := drawer{stream: rng.NewStream(rng.Key(21))}
		for range trials {
			counts[below(&draw)%3]++
		}
		for _, c := range counts {
			x += (c - trials/3) * (c - trials/3) / (trials / 3)
		}
		return x
	}
	bound := sampletest.ChiSquareBound(2)
	if x := statistic(func(w *drawer) uint32 { return w.below(n) }); x > bound {
		t.Errorf("chi-square %.1f over %.1f", x, bound)
	}
	if x := statistic(func(w *drawer) uint32 {
		return uint32(uint64(w.next()) * n >> 32)
	}); x <= bound {
		t.Errorf("chi-square %.1f without rejection is taken for uniform", x)
	}
}

// Every part of the counter changes the draws.
func TestDrawsDependOnAllParts(t *testing.T) {
	type parts struct {
		seed, epoch, batch, hop uint64
		node                    uint32
	}
	seen := map[[8]uint32]parts{}
	for i := range 3 * 3 * 3 * 3 * 3 {
		c := parts{uint64(i % 3), uint64(i / 3 % 3), uint64(i / 9 % 3), uint64(i / 27 % 3),
			uint32(i / 81)}
		key := rng.Key(c.seed, c.epoch, c.batch, c.hop)
		draw := drawer{stream: rng.NewStream(rng.Sub(key, uint64(c.node)))}
		var take [8]uint32
		floydScan(&draw, 1<<30, take[:])
		if other, ok := seen[take]; ok {
			t.Errorf("%v and %v draw the same", c, other)
		}
		seen[take] = c
	}
}
