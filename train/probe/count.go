package probe

import (
	"context"
	"math"
	"math/bits"
	"sort"

	"gdb/sample"
	"gdb/train/plan"
)

// countRows counts the different nodes of a trace, and finds what reading costs: for a batch, the
// rows of its nodes that no batch before had; and in one pass, the rows of all nodes seen.
func (m *Probe) countRows(ctx context.Context, s *plan.Costs, tr *trace) error {
	src := m.src
	seen, err := sample.NewNodeSet(src.RowCount(), src.Budget)
	if err != nil {
		return err
	}
	defer seen.Free()
	var fresh [][3]float64
	s.Once = plan.ReadTable{}
	s.Grows, err = tr.countFootprint(seen, func(nodes []sample.NodeID) error {
		if src.Rows == nil {
			return nil
		}
		reads, bytes, err := src.Rows.Cost(ctx, nodes)
		fresh = append(fresh, [3]float64{float64(len(nodes)), float64(reads), float64(bytes)})
		if err == nil {
			m.addOnce(s, seen)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.Unique = s.Grows.After(float64(len(tr.batches))) / float64(tr.rows)
	if src.Rows == nil {
		return nil
	}
	sort.Slice(fresh, func(i, k int) bool { return fresh[i][0] < fresh[k][0] })
	s.Apart = plan.ReadTable{}
	for _, f := range fresh {
		s.Apart.Add(f[0], f[1], f[2])
	}
	file := float64(src.RowCount()) * s.StoredBytes
	s.Once.Add(float64(src.RowCount()), file/sweepExtent, file)
	return err
}

const (
	// sweepExtent is the longest read of a sweep, in bytes.
	sweepExtent = 256 << 10
	// onceParts and onceRows bound what is looked at to estimate the cost of a pass: a share of
	// each of onceParts parts of the graph, onceRows rows in all.
	onceParts, onceRows = 16, 1 << 20
	// onceAtOnce is how many keys are handed over at a time.
	onceAtOnce = 1 << 14
)

// addOnce estimates what a pass over the nodes of a set costs, and adds it to the table.
func (m *Probe) addOnce(s *plan.Costs, seen *sample.NodeSet) {
	seen.Number()
	looked := 0
	once, _ := m.src.Rows.SweepCost(func(yield func([]uint64) bool) {
		parts(seen, min(1, onceRows/float64(max(1, seen.Count()))), func(keys []uint64) bool {
			looked += len(keys)
			return yield(keys)
		})
	}, 1)
	k := float64(seen.Count()) / float64(max(1, looked))
	s.Once.Add(float64(seen.Count()), k*float64(once.Reads), k*float64(once.Bytes))
}

// parts divides the graph into parts and calls each with the first nodes of every part, a share of
// it, as keys of a sweep for one list. It hands over some keys at a time.
func parts(s *sample.NodeSet, share float64, each func(keys []uint64) bool) {
	words := len(s.Words()) / onceParts
	keys := make([]uint64, 0, onceAtOnce+64)
	for part := range onceParts + 1 {
		first := part * words
		end := min(first+int(math.Ceil(share*float64(words))), len(s.Words()))
		for i := first; i < end; i++ {
			for w := s.Words()[i]; w != 0; w &= w - 1 {
				keys = append(keys, uint64(64*i+bits.TrailingZeros64(w))<<32)
			}
			if len(keys) >= onceAtOnce {
				if !each(keys) {
					return
				}
				keys = keys[:0]
			}
		}
	}
	each(keys)
}

// countFootprint counts the different nodes of a trace. It uses the set seen, which it empties
// first. After each number of batches that is counted it calls look, unless that is nil, with the
// new nodes of the last batch.
func (t *trace) countFootprint(seen *sample.NodeSet,
	look func(fresh []sample.NodeID) error) (plan.Footprint,
	error) {
	g := plan.Footprint{Most: float64(seen.Total())}
	seen.Clear()
	count, whole := 0, len(t.of)
	var fresh []sample.NodeID
	for i, b := range t.of {
		fresh = fresh[:0]
		for _, v := range b {
			if !seen.Has(uint32(v)) {
				seen.Add(uint32(v))
				fresh = append(fresh, v)
			}
		}
		count += len(fresh)
		n := i + 1
		if n > 1 && !halved(whole, n) {
			continue
		}
		g.Batches = append(g.Batches, float64(n))
		g.Unique = append(g.Unique, float64(count))
		if look != nil {
			if err := look(fresh); err != nil {
				return g, err
			}
		}
	}
	g.Extrapolate()
	return g, nil
}

// halved reports whether n is whole, a half of it, a quarter, …, rounded down.
func halved(whole, n int) bool {
	for ; whole > n; whole /= 2 {
	}
	return whole == n
}
