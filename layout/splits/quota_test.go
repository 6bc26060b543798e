package splits

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// plan returns how many nodes of each class go to each split.
func plan(shares Shares, seed uint64, nodes ...uint64) *drawing {
	d := &drawing{rnd: rand.New(rand.NewPCG(seed, 1)), shares: shares}
	for range Names {
		d.sets = append(d.sets, roaring.New())
	}
	d.setClasses(append([]uint64(nil), nodes...))
	return d
}

// TestQuotas: each class gives each split its share to within a node, and all of them together do.
func TestQuotas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 3000 {
		train := 1 + r.IntN(99)
		val := r.IntN(101 - train)
		shares := Shares{float64(train), float64(val), float64(r.IntN(101 - train - val))}
		nodes := make([]uint64, 1+r.IntN(40))
		sum := uint64(0)
		for c := range nodes {
			nodes[c] = uint64(r.IntN(1 + r.IntN(30)))
			sum += nodes[c]
		}
		d := plan(shares, uint64(round), nodes...)
		slack := 1.0 // and what goes to splits that would be empty
		for _, share := range shares {
			if share > 0 && float64(sum)*share/100 < 1 {
				slack++
			}
		}
		var total counts
		for c, lack := range d.lack {
			got := uint64(0)
			for i, n := range lack {
				got += n
				total[i] += n
				if q := d.quota(c, i); math.Abs(float64(n)-q) > slack+rounding {
					t.Fatalf("%v of %v: split %d has %d of class %d, quota %g", shares, nodes, i, n,
						c, q)
				}
			}
			if got != nodes[c] {
				t.Fatalf("%v of %v: class %d has %d nodes", shares, nodes, c, got)
			}
		}
		for i, share := range shares {
			if q := float64(sum) * share / 100; math.Abs(float64(total[i])-q) > slack+rounding {
				t.Errorf("%v of %v: split %d has %d nodes in all, quota %g", shares, nodes, i,
					total[i], q)
			}
			if total[i] == 0 && share > 0 && sum >= uint64(len(shares)) {
				t.Errorf("%v of %v: split %d is empty: %v", shares, nodes, i, total)
			}
		}
	}
}

// TestTinyClasses: no split is empty where there is a node for each, and train is the last to be.
func TestTinyClasses(t *testing.T) {
	for _, c := range []struct {
		shares Shares
		nodes  []uint64
		want   counts
	}{
		{Shares{60, 20, 20}, []uint64{1, 1, 1, 1}, counts{2, 1, 1, 0}},
		{Shares{60, 20, 20}, []uint64{3}, counts{1, 1, 1, 0}},
		{Shares{60, 20, 20}, []uint64{1, 1, 1}, counts{1, 1, 1, 0}},
		{Shares{60, 20, 20}, []uint64{1, 1}, counts{1, 1, 0, 0}},
		{Shares{10, 45, 45}, []uint64{1}, counts{1, 0, 0, 0}},
		{Shares{80, 10, 10}, []uint64{2, 2, 2}, counts{4, 1, 1, 0}},
		{Shares{60, 20, 20}, []uint64{0, 0}, counts{}},
		{Shares{1, 1, 1}, []uint64{2, 2}, counts{1, 1, 1, 1}},
		{Shares{50, 0, 50}, []uint64{2}, counts{1, 0, 1, 0}},
	} {
		for seed := range uint64(20) {
			d := plan(c.shares, seed, c.nodes...)
			var total counts
			for _, lack := range d.lack {
				for i, n := range lack {
					total[i] += n
				}
			}
			if total != c.want {
				t.Errorf("%v of %v, seed %d: %v, want %v", c.shares, c.nodes, seed, total, c.want)
			}
		}
	}
	// Which class gives its node to val is drawn.
	drawn := map[string]bool{}
	for seed := range uint64(20) {
		drawn[fmt.Sprint(plan(Shares{60, 20, 20}, seed, 1, 1, 1, 1).lack)] = true
	}
	if len(drawn) < 5 {
		t.Errorf("%d ways to split in 20 seeds", len(drawn))
	}
}
