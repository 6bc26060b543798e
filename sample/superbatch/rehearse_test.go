package superbatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/sample"

	"pgregory.net/rapid"
)

// runHops is the k-hop approximation written plainly: the cache stays as it is for hop batches, and
// then, of the rows that it held and theirs, keeps those that later ones ask for soonest. Of rows
// that come next in the same ones keep has which stay: only there it makes a difference which.
func runHops(t *rapid.T, batches [][]sample.NodeID, slots, hop int,
	keep func(group int) []sample.NodeID) (hits int) {
	var groups [][]sample.NodeID
	for b := range slices.Chunk(batches, hop) {
		group := slices.Concat(b...)
		slices.Sort(group)
		groups = append(groups, slices.Compact(group))
	}
	var held []sample.NodeID
	for i, group := range groups {
		for _, b := range batches[i*hop : min(i*hop+hop, len(batches))] {
			for _, v := range b {
				if slices.Contains(held, v) {
					hits++
				}
			}
		}
		all := slices.Clone(held)
		for _, v := range group {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		next := func(v sample.NodeID) int { return nextUse(groups[i+1:], v) }
		by := func(a, b sample.NodeID) int { return next(a) - next(b) }
		slices.SortFunc(all, by)
		want := all[:min(slots, len(all))]
		held = slices.Clone(keep(i))
		slices.SortFunc(held, by)
		for k, v := range held {
			if len(held) != len(want) || next(v) != next(want[k]) || !slices.Contains(all, v) {
				t.Fatalf("after %d batches %v are held, want such as %v", i*hop+hop, held, want)
			}
		}
	}
	return hits
}

// TestRehearse: with any hop the rows are held, and the hits had, that the plain rule says. With a
// hop of 1 they are Belady's; with a larger one no more than Belady's in a cache with room for the
// rows of the batches taken as one, which wait beside the cache; and there are none if these are
// all batches.
func TestRehearse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 60).Draw(t, "nodes")
		slots := rapid.IntRange(0, nodes+2).Draw(t, "slots")
		batches := drawBatches(t, nodes, 20, 12)
		belady := func(slots int) (hits int) {
			for _, h := range (&minCache{slots: slots}).run(batches) {
				hits += h
			}
			return hits
		}
		for _, hop := range []int{1, 2, 3, 8, len(batches)} {
			budget := mem.NewBudget(0)
			p, state, err := newRehearsal(batches, uint64(nodes), slots, hop, budget)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.findNextUses(context.Background(), batches, hop); err != nil {
				t.Fatal(err)
			}
			if err := state.Begin(len(p.turns), p.bits); err != nil {
				t.Fatal(err)
			}
			sum, most := uint64(0), slots
			for _, turn := range p.turns {
				most = max(most, slots+len(turn.nodes))
			}
			want := runHops(t, batches, slots, hop, func(group int) []sample.NodeID {
				n, err := p.step(state, group)
				if err != nil {
					t.Fatal(err)
				}
				sum += n
				return state.Rows()
			})
			if int(sum) != want || hop == 1 && want != belady(slots) || want > belady(most) {
				t.Fatalf("hop %d: %d hits, want %d; Belady's are %d", hop, sum, want,
					belady(slots))
			}
			if hop == len(batches) && sum != 0 {
				t.Fatalf("%d hits in an empty cache", sum)
			}
			if err := errors.Join(p.arena.Free(), state.Close()); err != nil || budget.Used() != 0 {
				t.Fatalf("%v, %d bytes still counted", err, budget.Used())
			}
			r, err := Rehearse(context.Background(), batches, uint64(nodes), slots, hop, budget)
			if err != nil || r.Hits != sum || budget.Used() != 0 {
				t.Fatalf("%+v, %v; want %d hits; %d bytes still counted", r, err, sum,
					budget.Used())
			}
		}
	})
}

func TestRehearseErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	one := [][]sample.NodeID{{1, 2}}
	for name, c := range map[string]struct {
		ctx     context.Context
		batches [][]sample.NodeID
		hop     int
		budget  int64
		want    string
	}{
		"no hop":  {batches: one, want: "hop of 0"},
		"nothing": {batches: [][]sample.NodeID{{}}, hop: 1, want: "of 0 requests"},
		"out of range": {batches: [][]sample.NodeID{{3}, {2, 9}}, hop: 2,
			want: "batch 1 has node 9"},
		"twice": {batches: [][]sample.NodeID{{3}, {2, 2}}, hop: 1,
			want: "batch 1 has a node twice"},
		"memory":    {batches: one, hop: 1, budget: 10, want: "--memory"},
		"cancelled": {ctx: cancelled, batches: one, hop: 1, want: "cancel"},
	} {
		if c.ctx == nil {
			c.ctx = context.Background()
		}
		_, err := Rehearse(c.ctx, c.batches, 9, 3, c.hop, mem.NewBudget(c.budget))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
