package bf16

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"gdb/compute/kernel"
)

// Rate is how fast a level multiplies, on one thread.
type Rate struct {
	Level  string  `json:"level"`
	GFLOPS float64 `json:"gflops"`
}

// Choice is the level that is used, of those that come into question on this processor.
type Choice struct {
	// Rates holds the rate of each level, the fastest first: the one that is used. Where there is
	// but one, it was not measured.
	Rates []Rate
	// Kept says that they were measured before; NotKept is why they could not be kept.
	Kept    bool
	NotKept error
	// NoAMX is why AMX does not come into question; nil: it does.
	NoAMX error

	ops *ops
}

// Keeper keeps what was measured of this machine.
type Keeper interface {
	// Kept returns what was kept for levels of these names, or nil.
	Kept(levels []string) []Rate
	Keep(levels []string, rates []Rate) error
}

// keeper is set before the first product.
var keeper Keeper

// KeepWith has the choice of a level kept: it is to be called before the first product. Else each
// process measures.
func KeepWith(k Keeper) { keeper = k }

// chosen chooses the level, once a process.
var chosen = sync.OnceValue(func() *Choice {
	all, noAMX := candidates()
	return choose(all, noAMX, keeper)
})

// Chosen returns the choice, which it makes if there was no product before.
func Chosen() Choice { return *chosen() }

// choose takes the fastest level: as was kept, or by measuring.
func choose(all []*ops, noAMX error, k Keeper) *Choice {
	c := &Choice{NoAMX: noAMX, ops: all[0]}
	var names []string
	for _, o := range all {
		names = append(names, o.name)
	}
	if len(all) == 1 {
		c.Rates = []Rate{{Level: names[0]}}
		return c
	}
	if k != nil {
		c.Rates = k.Kept(names)
	}
	if c.Kept = len(c.Rates) > 0; !c.Kept {
		c.Rates = measured(all)
		c.NotKept = errors.New("nothing was to keep it")
		if k != nil {
			c.NotKept = k.Keep(names, c.Rates)
		}
	}
	if i := slices.Index(names, c.Rates[0].Level); i >= 0 {
		c.ops = all[i]
	}
	return c
}

// measured times a product at each level: the least time of some rounds, in which they take turns.
// It takes some milliseconds. The fastest is the first.
func measured(all []*ops) []Rate {
	const m, k, n, rounds = 384, 128, 256, 8
	best := slices.Repeat([]float64{math.Inf(1)}, len(all))
	c, x, w := make([]float32, m*n), make([]Number, m*k), make([]Number, k*n)
	for range rounds {
		for i, o := range all {
			begin := time.Now()
			gemm(nil, o, c, x, w, kernel.Shape{M: m, K: k, N: n})
			best[i] = min(best[i], time.Since(begin).Seconds())
		}
	}
	var rates []Rate
	for i, o := range all {
		rates = append(rates, Rate{o.name, 2e-9 * m * k * n / best[i]})
	}
	slices.SortStableFunc(rates, func(a, b Rate) int { return cmp.Compare(b.GFLOPS, a.GFLOPS) })
	return rates
}

// ChoiceText says what products of bfloat16 are computed with on this processor, and why.
func ChoiceText(c Choice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "products of bf16 on the CPU: %s", c.Rates[0].Level)
	if len(c.Rates) > 1 {
		fmt.Fprintf(&b, ", %.0f GFLOP/s a thread", c.Rates[0].GFLOPS)
		for _, r := range c.Rates[1:] {
			fmt.Fprintf(&b, "; %s %.0f", r.Level, r.GFLOPS)
		}
		switch {
		case c.Kept:
			b.WriteString(" (measured once on this machine)")
		case c.NotKept != nil:
			fmt.Fprintf(&b, " (measured now, not kept: %v)", c.NotKept)
		default:
			b.WriteString(" (measured now, and kept)")
		}
	}
	if c.NoAMX != nil {
		fmt.Fprintf(&b, "; not AMX: %v", c.NoAMX)
	}
	return b.String()
}
