package superbatch

import (
	"testing"

	"gdb/layout/rowfile"
)

// TestTailRoom: files may take more than their share if all batches that are wanted are written
// then, but no more than a quarter of it, nor than the storage.
func TestTailRoom(t *testing.T) {
	for _, c := range []struct{ share, storage, used, left, want int64 }{
		{1000, 4000, 990, 20, 1250}, {1000, 4000, 990, 26, 1250}, {1000, 4000, 990, 27, 1000},
		{1000, 1000, 990, 1, 1000}, {1000, 1000, 990, 5, 1000}, {1000, 4000, 100, 400, 1000},
	} {
		o := &batchWriter{s: &superbatch{want: wanted{until: uint64(c.left),
			storage: c.storage}}, share: c.share, largest: 10}
		if got := o.room(c.used); got != c.want {
			t.Errorf("%+v: files may take %d", c, got)
		}
	}
}

// TestLeastWith: what is skipped when it is weighed for how many batches a sweep pays would not
// have been chosen.
func TestLeastWith(t *testing.T) {
	costs := Costs{Read: 1, Step: 2}
	all := load{}
	for i := range 40 {
		all.apart = append(all.apart, rowfile.ReadCost{Reads: uint64(40 - i)})
		all.packed = append(all.packed, rowfile.ReadCost{Reads: uint64(i % 5)})
	}
	for _, ahead := range []bool{false, true} {
		for _, once := range []uint64{1, 30, 90, 200, 500} {
			weigh := func(n int) Weighed {
				l := load{apart: all.apart[:n], packed: all.packed[:n]}
				l.once.Reads = once * uint64(n+10) / 50
				return costs.weigh(l, &Reading{})
			}
			want := Part(40, 0, ahead, func(n float64) Weighed { return weigh(int(n)) })
			whole := weigh(40).Once(0)
			got := Part(40, 0, ahead, func(n float64) Weighed {
				if n < 40 && costs.leastWith(all, int(n), ahead) >= whole {
					return Weighed{Packed: 1e300}
				}
				return weigh(int(n))
			})
			if got != want {
				t.Errorf("ahead %v, %d reads: a sweep for %v batches, want %v", ahead, once, got,
					want)
			}
		}
	}
}
