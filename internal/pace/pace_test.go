package pace

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// endingContext is a context that is over after left checks.
type endingContext struct {
	context.Context
	left, looks int
}

func (c *endingContext) Err() error {
	if c.looks++; c.looks > c.left {
		return context.Canceled
	}
	return nil
}

func TestSteps(t *testing.T) {
	ctx, s := &endingContext{Context: t.Context(), left: 2}, Steps(0)
	for range 3*Every/8 - 1 {
		if err := s.Took(ctx, 8); err != nil {
			t.Fatalf("ended after %d looks: %v", ctx.looks, err)
		}
	}
	if err := s.Took(ctx, 8); err == nil || ctx.looks != 3 {
		t.Errorf("after 3 times Every: %d looks, %v", ctx.looks, err)
	}
}

func TestClear(t *testing.T) {
	s := make([]int, 40*Every)
	for i := range s {
		s[i] = i
	}
	ctx := &endingContext{Context: t.Context(), left: 1}
	if err := Clear(ctx, s); err == nil || ctx.looks != 2 {
		t.Errorf("%d looks, %v", ctx.looks, err)
	}
	if err := Clear(t.Context(), s); err != nil || slices.Max(s) != 0 {
		t.Errorf("cleared to at most %d, %v", slices.Max(s), err)
	}
}

// TestSort compares with the standard library, and holds that a sort ends at the look that tells it
// to.
func TestSort(t *testing.T) {
	const seed, n = 7, 1 << 18
	r := rand.New(rand.NewPCG(seed, 0))
	type pair struct{ key, place int }
	in := make([]pair, n)
	for i := range in {
		in[i] = pair{r.IntN(n / 4), i}
	}
	byKey := func(a, b pair) int { return cmp.Compare(a.key, b.key) }
	want := slices.Clone(in)
	slices.SortStableFunc(want, byKey)
	for name, sort := range map[string]func(context.Context, []pair, func(a, b pair) int) error{
		"stable": SortStableFunc[pair], "any": SortFunc[pair]} {
		got, by := slices.Clone(in), byKey
		if name == "any" {
			by = func(a, b pair) int { return cmp.Or(byKey(a, b), cmp.Compare(a.place, b.place)) }
		}
		ctx := &endingContext{Context: t.Context(), left: 1 << 30}
		if err := sort(ctx, got, by); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: seed %d: not sorted as by the standard library: %v", name, seed, err)
		}
		if ctx.looks < n*sorted/Every {
			t.Errorf("%s: %d looks", name, ctx.looks)
		}
		ctx = &endingContext{Context: t.Context(), left: 2}
		compared := 0
		err := sort(ctx, slices.Clone(in), func(a, b pair) int { compared++; return by(a, b) })
		if err == nil || compared > 3*Every/sorted {
			t.Errorf("%s: %d comparisons with two looks, %v", name, compared, err)
		}
	}
}
