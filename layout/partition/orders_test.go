package partition

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawSpec draws a spec of links that is right.
func drawSpec(t *rapid.T) OrderSpec {
	s := OrderSpec{Policy: rapid.SampledFrom([]Policy{InMemory, Beta, TwoLevel}).Draw(t, "policy"),
		Parts: rapid.IntRange(1, 30).Draw(t, "parts"), Seed: rapid.Uint64().Draw(t, "seed")}
	s.Capacity = rapid.IntRange(min(2, s.Parts), s.Parts).Draw(t, "capacity")
	group := rapid.IntRange(1, max(1, s.Capacity/2)).Draw(t, "group")
	s.Logical = (s.Parts + group - 1) / group
	return s
}

func mustEpoch(t interface{ Fatal(...any) }, s OrderSpec, epoch int) *Epoch {
	o, err := NewOrder(s)
	if err != nil {
		t.Fatal(s, err)
	}
	return o.Epoch(epoch)
}

// TestLinks: each bucket is trained on once an epoch, in a set that has both of its partitions; a
// set fits in the buffer; sets of BETA differ by one group; and all is the same for the same seed.
func TestLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		epoch := rapid.IntRange(0, 5).Draw(t, "epoch")
		e, again := mustEpoch(t, s, epoch), mustEpoch(t, s, epoch)
		seen, before := map[Bucket]int{}, []int(nil)
		for i := range e.Sets() {
			parts := e.Partitions(i)
			if s.Policy != InMemory && len(parts) > s.Capacity {
				t.Fatalf("set %d has %d partitions, the buffer %d", i, len(parts), s.Capacity)
			}
			if !slices.IsSorted(parts) || len(slices.Compact(slices.Clone(parts))) != len(parts) {
				t.Fatalf("set %d is %v", i, parts)
			}
			for _, k := range e.Buckets(i) {
				seen[k]++
				if !slices.Contains(parts, int(k.From)) || !slices.Contains(parts, int(k.To)) {
					t.Fatalf("bucket %v is trained on in set %d, which is %v", k, i, parts)
				}
			}
			if fmt.Sprint(e.Buckets(i)) != fmt.Sprint(again.Buckets(i)) {
				t.Fatalf("set %d differs for the same seed", i)
			}
			entering := e.Entering(i)
			if group := (s.Parts + s.Logical - 1) / s.Logical; i > 0 && (len(entering) == 0 ||
				len(entering) > group) {
				t.Fatalf("%d partitions enter set %d, want 1 to %d", len(entering), i, group)
			}
			now := slices.Concat(without(slices.Clone(before), leavingOf(e, i)), entering)
			slices.Sort(now)
			if !slices.Equal(now, parts) {
				t.Fatalf("set %d is %v, those that stay and enter are %v", i, parts, now)
			}
			before = parts
		}
		for x := range s.Parts {
			for y := range s.Parts {
				if n := seen[bucket(x, y)]; n != 1 {
					t.Fatalf("bucket %d,%d is trained on %d times", x, y, n)
				}
			}
		}
		if bias := e.Bias(nil); bias < 0 || bias > 1 || math.IsNaN(bias) {
			t.Fatalf("bias %v", bias)
		}
	})
}

// leavingOf are the partitions that leave as set i comes.
func leavingOf(e *Epoch, i int) []int {
	if i == 0 {
		return nil
	}
	return e.Leaving(i - 1)
}

// TestEntering holds that the buckets that enter over an epoch are all between partitions that
// meet, each as often as one of them enters while the other is there.
func TestEntering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := mustEpoch(t, drawSpec(t), 1)
		held := map[Bucket]bool{}
		for i := range e.Sets() {
			eachEntering(e.Partitions(i), e.Entering(i), func(k Bucket) {
				if held[k] {
					t.Fatalf("bucket %v enters set %d, and was there", k, i)
				}
				held[k] = true
			})
			parts := e.Partitions(i)
			for k := range held {
				if !slices.Contains(parts, int(k.From)) || !slices.Contains(parts, int(k.To)) {
					delete(held, k)
				}
			}
			if len(held) != len(parts)*len(parts) {
				t.Fatalf("set %d of %d partitions has %d buckets", i, len(parts), len(held))
			}
		}
	})
}

// TestNodes: each partition with training nodes is in a set, and a node is trained on in a set that
// has its partition.
func TestNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.Policy = Dispersed
		trained := s.Parts
		if rapid.Bool().Draw(t, "sequential") {
			s.Policy = Sequential
			s.TrainParts = rapid.IntRange(1, s.Capacity).Draw(t, "train")
			trained = s.TrainParts
		}
		e := mustEpoch(t, s, 3)
		if s.Policy == Sequential && (e.Sets() != 1 || len(e.Partitions(0)) != s.Capacity) {
			t.Fatalf("%d sets, the first of %d", e.Sets(), len(e.Partitions(0)))
		}
		loads := e.Cost(func(int) int64 { return 1 }, func(Bucket) int64 { return 0 },
			false)
		if s.Policy == Dispersed && (loads.ReadBytes != int64(s.Parts) || loads.WriteBytes != 0) {
			t.Fatalf("%+v for %d partitions, each of which is read once", loads, s.Parts)
		}
		for part := range trained {
			for node := range uint32(5) {
				set := e.SetOf(part, node*977+uint32(part))
				if set < 0 || !slices.Contains(e.Partitions(set), part) {
					t.Fatalf("a node of partition %d is trained on in set %d", part, set)
				}
			}
		}
	})
}

// TestBetaSwaps compares the swaps of BETA with the least that there can be, of pairs that a swap
// can bring together (Mohoney et al., "Marius", section 4.1).
func TestBetaSwaps(t *testing.T) {
	for _, c := range []struct{ p, hold int }{{6, 3}, {8, 2}, {16, 4}, {32, 8}, {64, 16}} {
		e := mustEpoch(t, OrderSpec{Policy: Beta, Parts: c.p, Capacity: c.hold}, 0)
		swaps := e.Cost(func(int) int64 { return 1 },
			func(Bucket) int64 { return 1 }, true)
		pairs := c.p * (c.p - 1) / 2
		least := (pairs - c.hold*(c.hold-1)/2 + c.hold - 2) / (c.hold - 1)
		t.Logf("p=%d c=%d: %d swaps, at least %d", c.p, c.hold, swaps.Swaps, least)
		if swaps.Swaps < least || float64(swaps.Swaps) > 1.25*float64(least) {
			t.Errorf("p=%d c=%d: %d swaps, the least is %d", c.p, c.hold, swaps.Swaps, least)
		}
		if swaps.ReadBytes != swaps.WriteBytes || swaps.Loads != swaps.Swaps+c.hold ||
			swaps.Sets != swaps.Swaps+1 {
			t.Errorf("%+v", swaps)
		}
	}
}

// TestBias: all at once has none; BETA with greedy assignment has much; two levels have less, and
// less with more physical partitions and with fewer logical ones (Figure 4 of Marius++).
func TestBias(t *testing.T) {
	mean := func(s OrderSpec) (sum float64) {
		for epoch := range 10 {
			sum += mustEpoch(t, s, epoch).Bias(nil) / 10
		}
		return sum
	}
	memory := mean(OrderSpec{Policy: InMemory, Parts: 16})
	var greedy, parts, logical []float64
	for _, p := range []int{8, 16, 32, 64} {
		greedy = append(greedy, mean(OrderSpec{Policy: Beta, Parts: p, Capacity: p / 2}))
		parts = append(parts, mean(OrderSpec{Policy: TwoLevel, Parts: p, Capacity: p / 2,
			Logical: 4}))
	}
	for _, l := range []int{4, 8, 16, 32} {
		logical = append(logical, mean(OrderSpec{Policy: TwoLevel, Parts: 64, Capacity: 32,
			Logical: l}))
	}
	t.Logf("in memory %.3f; p = 8, 16, 32, 64: BETA %.3f, two levels, l = 4: %.3f; "+
		"p = 64, l = 4, 8, 16, 32: %.3f", memory, greedy, parts, logical)
	if memory != 0 {
		t.Errorf("all edges at once have a bias of %v", memory)
	}
	for i := range 3 {
		if parts[i] < parts[i+1] {
			t.Errorf("the bias grows with physical partitions: %.3f", parts)
		}
		if logical[i] > logical[i+1] {
			t.Errorf("the bias shrinks with logical partitions: %.3f", logical)
		}
		if parts[i] > greedy[i] {
			t.Errorf("two levels have more bias than BETA: %.3f, %.3f", parts, greedy)
		}
	}
	// Two logical partitions of four are in memory: half of the edges of the first one, and the
	// two of three sets in which those within it can be, come before any of the last one.
	if limit := 1.0/2 + 1.0/4*2/3; parts[3] < limit {
		t.Errorf("the bias of 64 partitions is %.3f, below its limit %.3f", parts[3], limit)
	}
	skewed := mustEpoch(t, OrderSpec{Policy: TwoLevel, Parts: 8, Capacity: 4, Logical: 4}, 0)
	one := func(k Bucket) uint64 { return uint64(k.From / 7 * k.To / 7) }
	if b := skewed.Bias(one); b != 0 {
		t.Errorf("all edges are of one partition, and the bias is %v", b)
	}
}

// TestAssignment: buckets that several sets have are in each of them equally often.
func TestAssignment(t *testing.T) {
	s := OrderSpec{Policy: TwoLevel, Parts: 12, Capacity: 8, Logical: 3}
	counts := map[int]int{}
	for epoch := range 200 {
		e := mustEpoch(t, s, epoch)
		for i := range e.Sets() {
			counts[i] += len(e.Buckets(i))
		}
	}
	// Three sets of two of three groups: a bucket within a group is in two of the sets, of 16
	// buckets of each of 3 groups; one between groups in one set.
	for i, n := range counts {
		if want := 200 * 144 / 3; n < want*9/10 || n > want*11/10 {
			t.Errorf("set %d has %d buckets in 200 epochs, want about %d", i, n, want)
		}
	}
}

// TestOrderRefused: specs that cannot be, each with what to do.
func TestOrderRefused(t *testing.T) {
	for want, s := range map[string]OrderSpec{
		"want 1 to":          {Policy: Beta},
		"buffer of 0":        {Policy: Beta, Parts: 4},
		"needs 2":            {Policy: Beta, Parts: 4, Capacity: 1},
		"0 logical":          {Policy: TwoLevel, Parts: 4, Capacity: 2},
		"a larger buffer":    {Policy: TwoLevel, Parts: 9, Capacity: 3, Logical: 3},
		"use dispersed":      {Policy: Sequential, Parts: 9, Capacity: 3, TrainParts: 4},
		"no policy":          {Policy: "x", Parts: 9, Capacity: 3},
		"needs 1":            {Policy: Dispersed, Parts: 9, Capacity: 2, Logical: 2},
		"training nodes are": {Policy: Sequential, Parts: 9, Capacity: 3},
	} {
		if _, err := NewOrder(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// TestDispersedReplacesAny: what comes into the buffer takes the place of any group that is there,
// each of them equally often, whether it has been there for long or has just come.
func TestDispersedReplacesAny(t *testing.T) {
	const parts, hold, epochs = 16, 4, 300
	var replaced [hold]int // by age: the oldest first
	for epoch := range epochs {
		e := mustEpoch(t, OrderSpec{Policy: Dispersed, Parts: parts, Capacity: hold,
			Logical: parts},
			epoch)
		held := e.Partitions(0) // in the order in which they came
		for set := 1; set < e.Sets(); set++ {
			now := e.Partitions(set)
			age := slices.IndexFunc(held, func(p int) bool { return !slices.Contains(now, p) })
			replaced[age]++
			held = slices.Delete(slices.Clone(held), age, age+1)
			for _, p := range now {
				if !slices.Contains(held, p) {
					held = append(held, p)
				}
			}
		}
	}
	for age, n := range replaced {
		if want := epochs * (parts - hold) / hold; n < want*9/10 || n > want*11/10 {
			t.Errorf("group %d in memory, by age, was replaced %d times, want about %d: %v", age,
				n, want, replaced)
		}
	}
}

// TestStrata: groups of partitions of uneven weights have each partition once, about equally many,
// and none weighs more than the bound, which some come close to and which is far below what the
// heaviest partitions weigh; they are the same for the same seed and others in each epoch; and all
// but the heaviest partitions meet.
func TestStrata(t *testing.T) {
	const epochs = 200
	for _, c := range []struct{ parts, groups int }{{256, 32}, {61, 7}, {64, 64}, {9, 2}, {8, 1}} {
		s := OrderSpec{Policy: Dispersed, Parts: c.parts, Logical: c.groups,
			Capacity: (c.parts + c.groups - 1) / c.groups, Seed: 5}
		all := uint64(0)
		for p := range c.parts {
			s.Weights = append(s.Weights, 1_000_000/uint64(p*7%c.parts+1))
			all += s.Weights[p]
		}
		o, err := NewOrder(s)
		if err != nil {
			t.Fatal(err)
		}
		most, met := uint64(0), map[[2]int]bool{}
		for epoch := range epochs {
			e, again := o.Epoch(epoch), o.Epoch(epoch)
			seen := make([]int, c.parts)
			for i := range e.Sets() {
				parts, sum := e.Partitions(i), uint64(0)
				for _, p := range parts {
					seen[p]++
					sum += s.Weights[p]
					for _, q := range parts {
						met[[2]int{p, q}] = true
					}
				}
				most = max(most, sum)
				if len(parts) > s.Capacity || len(parts) < c.parts/c.groups {
					t.Fatalf("%+v: a group of %d partitions", c, len(parts))
				}
				if !slices.Equal(parts, again.Partitions(i)) {
					t.Fatalf("%+v: set %d differs for the same seed", c, i)
				}
			}
			if slices.Min(seen) != 1 || slices.Max(seen) != 1 {
				t.Fatalf("%+v: partitions are in %v sets", c, seen)
			}
		}
		bound, heaviest := o.Heaviest(), slices.Sorted(slices.Values(s.Weights))
		top := uint64(0)
		for _, w := range heaviest[c.parts-s.Capacity:] {
			top += w
		}
		t.Logf("%+v: up to %d, bound %d, all %d, the heaviest %d", c, most, bound, all, top)
		if most > bound || bound > top || most < bound*9/10 {
			t.Errorf("%+v: groups weigh up to %d, the bound is %d of %d", c, most, bound, top)
		}
		for p, q := range s.Weights {
			if p > 0 && q < heaviest[c.parts*3/4] && !met[[2]int{p, p - 1}] && c.groups < 9 {
				t.Errorf("%+v: partitions %d and %d never meet", c, p-1, p)
			}
		}
	}
	if _, err := NewOrder(OrderSpec{Policy: Dispersed, Parts: 4, Logical: 4, Capacity: 2,
		Weights: make([]uint64, 4)}); err == nil {
		t.Error("weights of groups of which two are in memory")
	}
}
