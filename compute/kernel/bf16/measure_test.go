package bf16

import (
	"errors"
	"slices"
	"testing"
)

// TestMeasured measures the highest level against plain Go.
func TestMeasured(t *testing.T) {
	all := levels()
	if len(all) == 1 {
		t.Skip("no level but plain")
	}
	rates := measured([]*ops{&plainOps, all[len(all)-1]})
	if rates[1].Level != "plain" || !(rates[1].GFLOPS > 0) {
		t.Errorf("rates %v: plain Go is not the slower one", rates)
	}
	if Level() != level().name {
		t.Errorf("the level is %s, and named %s", level().name, Level())
	}
}

// kept is a Keeper in memory.
type kept struct {
	rates []Rate
	asked []string
	err   error
}

func (k *kept) Kept(levels []string) []Rate { k.asked = levels; return k.rates }

func (k *kept) Keep(levels []string, rates []Rate) error {
	if k.err == nil {
		k.rates = rates
	}
	return k.err
}

// TestChoose: what is measured is kept, and what is kept decides.
func TestChoose(t *testing.T) {
	best := levels()[len(levels())-1]
	fast, slow := *best, *best
	fast.name, slow.name = "fast", "slow"
	all, none := []*ops{&slow, &fast}, errors.New("none")
	k := &kept{}
	c := choose(all, none, k)
	if c.Kept || c.NotKept != nil || len(c.Rates) != 2 || !errors.Is(c.NoAMX, none) ||
		c.ops.name != c.Rates[0].Level || !slices.Equal(k.asked, []string{"slow", "fast"}) {
		t.Fatalf("chosen %+v, asked for %v", c, k.asked)
	}
	k.rates = []Rate{{"fast", 2}, {"slow", 1}}
	if c := choose(all, nil, k); !c.Kept || c.ops != &fast {
		t.Errorf("chosen %+v of what was kept", c)
	}
	if c := choose(all, nil, &kept{err: none}); c.Kept || !errors.Is(c.NotKept, none) {
		t.Errorf("chosen %+v where nothing can be kept", c)
	}
	if c := choose(all, nil, nil); c.NotKept == nil || len(c.Rates) != 2 {
		t.Errorf("chosen %+v without a keeper", c)
	}
	if c := choose(all[:1], nil, k); c.ops != &slow || c.Rates[0].GFLOPS != 0 {
		t.Errorf("chosen %+v of one", c)
	}
}
